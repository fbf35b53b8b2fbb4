"""Basic vocabulary: types, paths, batches and their Arrow form, errors, the clock.

The package imports no other part of storage.
"""
