"""Log entries (schema changes, deletions, tablets, staged files), and the check that they fit the schema."""
