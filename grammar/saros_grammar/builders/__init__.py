"""ANTLR's parse tree to the syntax tree: a builder for each group of statements."""
