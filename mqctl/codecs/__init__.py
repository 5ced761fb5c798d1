"""Formats: bytes on the outside, records on the inside, one format per file."""
