"""One process compiles the kernels in the background. No call waits for this process: the twins run until it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import wait_until

from saros_storage.kernels.cache import KernelCache
from saros_storage.kernels.jit import declared_kernels
from saros_storage.kernels.loader import KernelLoader
from saros_storage.kernels.merge import rises


@dataclass
class FakeKernel:
    key: str
    is_loaded: bool = False

    def compile(self) -> None:
        self.is_loaded = True


class Compilers:
    """Replaces the processes that compile kernels: they end with an exit code, and compile nothing."""

    def __init__(self, code: int = 0) -> None:
        self.code = code
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        self.started.append(subprocess.Popen([sys.executable, "-S", "-c", f"raise SystemExit({self.code})"]))
        return self.started[-1]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelCache:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    return KernelCache.open()


def listed(cache: KernelCache, *keys: str) -> None:
    os.makedirs(cache.folder, exist_ok=True)
    for key in keys:
        cache.add(key)


def test_compiled_kernels_are_loaded_without_a_compiler(cache: KernelCache) -> None:
    kernels, compilers = [FakeKernel("a"), FakeKernel("b")], Compilers()
    listed(cache, "a", "b")
    KernelLoader(lambda: kernels, compilers.start).run(threading.Event())
    assert ([True, True], []) == ([kernel.is_loaded for kernel in kernels], compilers.started)


def test_kernels_are_loaded_as_they_are_compiled(cache: KernelCache) -> None:
    kernels, compilers = [FakeKernel("a"), FakeKernel("b")], Compilers()
    listed(cache, "a")
    loader = KernelLoader(lambda: kernels, compilers.start)
    loader.start()
    wait_until(lambda: kernels[0].is_loaded)
    assert (True, False) == (loader.is_cached("a"), loader.is_cached("b"))
    listed(cache, "b")
    wait_until(lambda: kernels[1].is_loaded)
    loader.stop()
    assert all(compiler.wait() == 0 for compiler in compilers.started)


def test_another_process_that_compiles_is_waited_for(cache: KernelCache) -> None:
    kernel, compilers = FakeKernel("a"), Compilers()
    lock = cache.lock(wait=False)
    assert lock is not None
    loader = KernelLoader(lambda: [kernel], compilers.start)
    loader.start()
    listed(cache, "a")
    wait_until(lambda: kernel.is_loaded)
    loader.stop()
    os.close(lock)
    assert [] == compilers.started


def test_a_compiler_that_fails_is_not_started_again(cache: KernelCache, caplog: pytest.LogCaptureFixture) -> None:
    compilers = Compilers(code=1)
    loader = KernelLoader(lambda: [FakeKernel("a")], compilers.start)
    loader.run(threading.Event())
    loader.start()
    assert 1 == len(compilers.started)
    assert [
        "compiling kernels in the background, once on this machine; until then large queries take longer",
        "kernels could not be compiled in the background",
    ] == [record.getMessage() for record in caplog.records]


def test_a_cache_that_cannot_be_written_starts_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "kernels"))
    kernel, compilers = FakeKernel("a"), Compilers()
    KernelLoader(lambda: [kernel], compilers.start).run(threading.Event())
    assert (False, [], ["kernels cannot be compiled in the background"]) == (
        kernel.is_loaded,
        compilers.started,
        [record.getMessage() for record in caplog.records],
    )


def test_it_stops_before_the_next_kernel(cache: KernelCache) -> None:
    stopping = threading.Event()

    class Last(FakeKernel):
        def compile(self) -> None:
            super().compile()
            stopping.set()

    kernels = [Last("a"), FakeKernel("b")]
    listed(cache, "a", "b")
    KernelLoader(lambda: kernels).run(stopping)
    assert [True, False] == [kernel.is_loaded for kernel in kernels]


def run(code: str, folder: Path) -> str:
    """Run a program with an empty cache whose lock is held, as if another process were compiling the kernels."""
    cache = KernelCache(str(folder / "kernels"))
    lock = cache.lock(wait=False)
    assert lock is not None
    environment = {name: value for name, value in os.environ.items() if name != "SAROS_JIT"}
    environment["NUMBA_CACHE_DIR"] = cache.folder
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=folder
    )
    os.close(lock)
    assert "" == done.stderr
    return done.stdout.strip()


FIRST_STATEMENTS = """
import sys
import numpy as np
import saros
with saros.connect("data") as db:
    db.insert("root.a.d", np.arange(10_000), {"s": np.arange(10_000) / 8, "i": np.arange(10_000)})
    print(db.execute("select avg(s), stddev(s), max_value(i) from root.a.d").fetchall())
    db.execute("flush")
    print(db.execute("select count(s) from root.a.d where s > 1000 and i < 9000").fetchall())
print("numba" in sys.modules)
"""


@pytest.mark.slow
def test_first_statements_on_a_new_machine_do_not_wait_for_kernels(tmp_path: Path) -> None:
    assert [
        "[(624.9375, 360.86195998839594, 9999)]",
        "[(999,)]",
        "False",
    ] == run(FIRST_STATEMENTS, tmp_path).splitlines()


LARGE = """
import numpy as np
from saros_storage.kernels.merge import rises
found = [bool(rises(np.arange(1_000))), rises.is_loaded]
rises._twin_s, rises._elements = 0.9, 1_000
print(*found, bool(rises(np.arange(1_000))), rises.is_loaded)
"""


@pytest.mark.slow
def test_a_caller_compiles_what_its_twin_would_take_longer_for(tmp_path: Path) -> None:
    assert "True False True True" == run(LARGE, tmp_path)


FORK = """
import os
import numpy as np
from saros_storage.kernels.jit import LOADER
from saros_storage.kernels.merge import rises
rises(np.arange(9))
child = os.fork()
if child == 0:
    rises(np.arange(9))
    os._exit(0 if LOADER._thread is not None and LOADER._thread.is_alive() else 1)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="a fork beside threads is warned of")
def test_a_forked_child_loads_for_itself(tmp_path: Path) -> None:
    assert "0" == run(FORK, tmp_path)


@pytest.mark.slow
def test_what_is_missing_is_compiled_and_listed(tmp_path: Path) -> None:
    from saros_storage.kernels.precompile import all_kernels

    cache = KernelCache(str(tmp_path))
    listed(cache, *(kernel.key for kernel in all_kernels() if kernel.key != rises.key))
    code = "from saros_storage.kernels.precompile import main; main()"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)})
    assert {kernel.key for kernel in declared_kernels()} == cache.compiled()
    assert [True] == [found.name.startswith("merge.rises") for found in tmp_path.glob("*/*.nbi")]


def test_a_process_that_finds_another_compiling_leaves_it_the_work(cache: KernelCache) -> None:
    from saros_storage.kernels.precompile import precompile

    lock = cache.lock(wait=False)
    assert lock is not None
    assert 0 == precompile(cache, wait=False)
    os.close(lock)
