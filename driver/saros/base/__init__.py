"""Addresses, kinds of statements, rows from Arrow, and the guard of forked processes."""
