"""Builders of the syntax tree from ANTLR's parse tree, one for each group of statements."""
