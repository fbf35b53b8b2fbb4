"""Analysis: looks up the names of a statement in the schema, and determines the types of its expressions.

scope      resolves paths and wildcards to devices and series
binding    turns expressions into typed expressions
sources    plans the scans of a SELECT
headers    names the result columns

Pure: any thread.
"""
