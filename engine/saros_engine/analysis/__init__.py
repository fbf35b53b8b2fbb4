"""Analysis: what the names of a statement mean in the schema, and what types its expressions have."""
