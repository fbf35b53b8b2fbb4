"""Compiled kernels: the only loops over points in Saros.

Each kernel is a plain function over NumPy arrays in one of this folder's modules, compiled by numba in the background
(`jit.kernel`). Each has a NumPy or plain-Python *twin* of the same signature. The twin runs until the kernel is
compiled, and always if numba is absent; tests compare the kernel with it. Kernels release the GIL, allocate nothing,
and raise nothing: they return error codes. They handle only arrays; the codecs that call them handle pages.
"""
