"""Records to text. Knows columns and records, never Redis."""
