"""Kernels that encode and decode pages: modules for each encoding, for bit streams, for LZ4, and for entire pages."""
