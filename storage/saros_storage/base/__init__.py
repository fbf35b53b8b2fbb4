"""Basic vocabulary: types, paths, batches and their Arrow form, errors, the clock. Imports no other part of storage."""
