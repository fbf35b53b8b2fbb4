"""Access control of statements, and the information schema."""
