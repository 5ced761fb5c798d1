"""Behaviour: producing, consuming, settling, looking. Never prints."""
