"""Foundations of the engine: errors, the interface to the database below it, sessions and their privileges."""
