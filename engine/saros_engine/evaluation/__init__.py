"""Compilation of expressions to closures: three-valued logic, arithmetic, CASE, CAST, LIKE, REGEXP."""
