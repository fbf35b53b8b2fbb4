"""Log entries: changes of the schema, deletions, tablets, staged files; and whether they fit the schema."""
