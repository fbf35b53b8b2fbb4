"""Basic vocabulary: types, paths, batches and their Arrow form, errors, the clock. Imports nothing else of storage."""
