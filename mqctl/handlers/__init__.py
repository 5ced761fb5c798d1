"""What happens to a delivered message: commands, writers, functions."""
