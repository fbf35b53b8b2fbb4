"""Analysis: what the names of a statement mean in the schema, and what types its expressions have.

scope      paths and wildcards to devices and series
binding    expressions to typed expressions
sources    what a SELECT reads

Pure: any thread.
"""
