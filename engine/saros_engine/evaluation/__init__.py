"""Expressions compiled to closures: three-valued logic, arithmetic, CASE, CAST, LIKE, REGEXP."""
