from __future__ import annotations

import platform

from saros_storage.base.allocator import keep_freed_memory


def test_glibc_takes_the_settings_and_others_are_left_alone() -> None:
    assert (platform.libc_ver()[0] == "glibc") == keep_freed_memory()
