"""Basic vocabulary: types, paths, columns and batches, errors, the clock. Imports nothing else of storage."""
