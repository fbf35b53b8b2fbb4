"""Builds the syntax tree from ANTLR's parse tree; there is a builder for each group of statements."""
