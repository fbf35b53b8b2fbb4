"""Analysis: resolves the names of a statement in the schema and types its expressions.

scope      paths and wildcards to devices and series
binding    expressions to typed expressions
sources    the scans of a SELECT
headers    names of result columns

Pure: any thread.
"""
