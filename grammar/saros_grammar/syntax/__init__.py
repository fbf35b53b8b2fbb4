"""Statements as values: the syntax tree, literals, errors."""
