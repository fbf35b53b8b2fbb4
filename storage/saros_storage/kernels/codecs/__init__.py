"""Kernels that encode and decode pages: one module per encoding, the bit reader, LZ4, and entire pages."""
