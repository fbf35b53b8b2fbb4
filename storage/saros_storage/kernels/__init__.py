"""Compiled kernels: the only loops over points in Saros.

Each kernel is a plain function over NumPy arrays in one of this folder's modules, compiled by numba when it is first
called (`jit.kernel`). Each has a NumPy or plain-Python *twin* of the same signature, which replaces it where numba is
absent and against which tests compare it. Kernels release the GIL, allocate nothing, and raise nothing: they return
error codes. They know only arrays; the codecs around them know pages.
"""
