"""Foundations of the engine: errors, the interface to the database below the engine, sessions and their privileges."""
