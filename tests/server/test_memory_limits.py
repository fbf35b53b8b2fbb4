"""The memory limit of a process: the machine's memory, or the limit of the process's cgroups if that is lower."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from saros_server.config import memory_limits
from saros_server.config.memory_limits import memory_bytes, queries_memory_bytes

MIB = 1 << 20


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_without_a_cgroup_it_is_the_machines(tmp_path: Path) -> None:
    total = memory_bytes(tmp_path)
    listed = Path("/proc/meminfo").read_text(encoding="utf-8").split()
    assert total == int(listed[listed.index("MemTotal:") + 1]) * 1_024
    unlimited = {"proc/self/cgroup": "0::/unit\n", "sys/fs/cgroup/unit/memory.max": "max\n"}
    assert total == memory_bytes(written(tmp_path, unlimited))


def test_the_least_limit_of_its_cgroup_and_those_above_counts(tmp_path: Path) -> None:
    """Test a service in a slice (cgroup version 2), and a container that sees its own cgroup as the root."""
    service = {
        "proc/self/cgroup": "0::/some.slice/saros.service\n",
        "sys/fs/cgroup/some.slice/memory.max": f"{300 * MIB}\n",
        "sys/fs/cgroup/some.slice/saros.service/memory.max": f"{400 * MIB}\n",
    }
    assert 300 * MIB == memory_bytes(written(tmp_path / "service", service))
    container = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{512 * MIB}\n"}
    assert 512 * MIB == memory_bytes(written(tmp_path / "container", container))


def test_version_1_has_a_tree_for_memory(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "5:cpu,cpuacct:/a\n4:memory:/docker/1\n0::/\n",
        "sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": f"{256 * MIB}\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2**63 - 4096}\n",
        "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1\n",
    }
    assert 256 * MIB == memory_bytes(written(tmp_path, files))


@pytest.mark.parametrize(("machine", "queries"), [(8_192, 2_048), (1_024, 256), (128, 64)])
def test_queries_get_a_quarter_and_no_less_than_they_need(
    monkeypatch: pytest.MonkeyPatch, machine: int, queries: int
) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    monkeypatch.setattr(memory_limits, "_limits", lambda _: iter([machine * MIB]))
    monkeypatch.setattr(os, "sysconf", lambda name: page if name == "SC_PAGE_SIZE" else (1 << 40) // page)
    assert queries * MIB == queries_memory_bytes()
