"""Keep freed memory in the process: decoding constantly allocates and frees arrays of some hundred kilobytes.

By default glibc maps fresh pages for each such array and returns them to the kernel immediately. The page faults and
the zeroing take a quarter of the time of decoding a wide file. With these settings, freed memory is reused up to a
bound. The defaults of other C libraries are not changed.
"""

from __future__ import annotations

import ctypes
import sys

#: Parameter numbers of glibc's `mallopt`.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
#: Larger arrays still get fresh pages from the kernel. glibc does not allow a higher limit.
_ARRAY_BYTES_MAX = 32 << 20
#: Freed memory beyond this number of bytes is returned to the kernel.
_KEPT_BYTES_MAX = 256 << 20


def keep_freed_memory() -> bool:
    """Configure glibc's allocator for this process. Return False on a system that lacks these settings."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _ARRAY_BYTES_MAX) and mallopt(_TRIM_THRESHOLD, _KEPT_BYTES_MAX))
