"""Compiled kernels: the only loops over points in Saros.

Each kernel is a plain function over NumPy arrays in one of this folder's modules, compiled by numba when it is first
called (`jit.kernel`), with a NumPy or plain-Python *twin* of the same signature that serves where numba is absent and
that tests hold the kernel to. Kernels release the GIL, allocate nothing they do not return, and raise nothing: they
answer error codes. They know arrays only; the codecs around them know pages.
"""
