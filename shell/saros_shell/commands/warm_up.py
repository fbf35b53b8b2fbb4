"""`saros warm-up`: compiles all numeric kernels and caches them, so that all statements can use them."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from saros_server.config.arguments import CommandParser
from saros_server.sources.plurals import counted
from saros_storage.kernels.cache import KernelCache
from saros_storage.kernels.precompile import all_kernels, precompile


def parser() -> CommandParser:
    """Return the parser of `saros warm-up`."""
    return CommandParser(
        prog="saros warm-up",
        description="Compile all kernels into the cache of this user ($NUMBA_CACHE_DIR, by default"
        " ~/.cache/saros/kernels). Without it, another process does so in the background on the first use.",
    )


def main(arguments: Sequence[str]) -> int:
    """Compile the missing kernels and return the exit code, 1 if the cache cannot be written."""
    parser().parse_args(arguments)
    cache, began = KernelCache.open(), time.monotonic()
    try:
        compiled = precompile(cache, _print_progress)
    except (OSError, RuntimeError, ImportError) as error:
        sys.stderr.write(f"saros warm-up: cannot compile into {cache.folder}: {error}\n")
        return 1
    total = len(all_kernels())
    done = f"compiled {compiled} of {counted(total, 'kernel')} in {time.monotonic() - began:.1f} s into {cache.folder}"
    sys.stdout.write(f"{done}\n" if compiled else f"all {total} kernels were compiled already in {cache.folder}\n")
    return 0


def _print_progress(key: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{key}")
        sys.stderr.flush()
