"""Settings: where each value comes from."""
