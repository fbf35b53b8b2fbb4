"""Options, types, errors, and connections to the database."""
