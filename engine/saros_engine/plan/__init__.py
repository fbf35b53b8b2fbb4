"""Logical plans: nodes, typed expressions, fragments and their instances. Values."""
