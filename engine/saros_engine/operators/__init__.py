"""Operators: one class per plan node, pulled block by block.

operator, base      the contract; the base classes
scan/, join/        operators that read series; operators that join their children
the others          named after their plan nodes; sorted_runs and block_buffer hold rows, and spill
"""
