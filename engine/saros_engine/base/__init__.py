"""Foundations of the engine: errors, interfaces to the database below, sessions and their privileges."""
