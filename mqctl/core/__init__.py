"""Values: records and decisions. Standard library only, no I/O, no clock."""
