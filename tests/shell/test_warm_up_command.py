from __future__ import annotations

from pathlib import Path

import pytest

from saros_shell.main import main
from saros_storage.kernels.cache import KernelCache
from saros_storage.kernels.precompile import all_kernels


def test_a_second_warm_up_has_nothing_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for kernel in all_kernels():
        KernelCache.open().add(kernel.key)
    assert 0 == main(["warm-up"])
    assert f"all {len(all_kernels())} kernels were compiled already in {tmp_path}\n" == capsys.readouterr().out


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert 1 == main(["warm-up"])
    assert f"saros warm-up: cannot compile into {tmp_path / 'file'}: " in capsys.readouterr().err
