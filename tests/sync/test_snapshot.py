"""The files that a sender takes from a data folder for a round."""

from __future__ import annotations

from pathlib import Path

from few_files import few_files

import saros
from saros_storage.io.disk import LocalDisk
from saros_sync.sender.live import LiveFolder
from saros_sync.sender.snapshot import SnapshotFolder


def test_a_round_may_have_more_new_files_than_a_process_may_have_open(tmp_path: Path) -> None:
    folder = tmp_path / "edge"
    with saros.connect(str(folder)) as connection:
        connection.execute("create timeseries root.a.d.x int64")
        rows = ", ".join(f"({604_800_000 * week}, {week})" for week in range(150))
        connection.execute(f"insert into root.a.d(time, x) values {rows}")
        connection.execute("flush")
    snapshots = SnapshotFolder(str(tmp_path / "round"), LocalDisk())
    with few_files(80):
        taken = snapshots.take(LiveFolder(str(folder), LocalDisk()), lambda: b"", "edge", 1, {})
    assert len(taken.keys) == 150
    for content in taken.keys.values():
        assert Path(snapshots.path(content.sha256)).stat().st_size == content.size
