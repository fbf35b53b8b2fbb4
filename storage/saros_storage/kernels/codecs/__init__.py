"""Kernels that encode and decode pages: a module for each encoding, the bit reader, LZ4, and whole pages at once."""
