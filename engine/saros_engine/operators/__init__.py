"""Operators: one class per plan node, pulled block by block; `operator` is the contract, `build` makes them."""
