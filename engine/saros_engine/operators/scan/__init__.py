"""Operators that read series: rows, or aggregates from statistics and rows."""
