"""The sync tool's state on this instance, for SQL."""
