"""Arriving contents: the number of files that a receiver keeps open, and the data that it trusts after a crash."""

from __future__ import annotations

import errno
import zlib
from dataclasses import dataclass
from pathlib import Path

import pytest
from few_files import few_files
from msgspec.structs import replace
from storage.crash_disk import CrashDisk
from sync.sync_world import Late, Unheard

import saros
from saros_storage.io.disk import Disk, LocalDisk
from saros_sync.receiver import incoming as incoming_module
from saros_sync.receiver.checking import Executor
from saros_sync.receiver.incoming import Incoming
from saros_sync.receiver.mirror import MirrorFolder
from saros_sync.round import Round, content_of, encode_round
from saros_sync.sender.live import LiveFolder
from saros_sync.sender.snapshot import SnapshotFolder

_FILES = 150
_SENDER = "0123456789abcdef" * 2


@dataclass(frozen=True)
class Sent:
    """A round, and the bytes of the round's files by SHA-256."""

    round: Round
    files: dict[str, bytes]


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Sent:
    """Return a round with one file for each week."""
    path = tmp_path_factory.mktemp("edge")
    with saros.connect(str(path / "data")) as connection:
        connection.execute("create timeseries root.a.d.x int64")
        rows = ", ".join(f"({604_800_000 * week}, {week})" for week in range(_FILES))
        connection.execute(f"insert into root.a.d(time, x) values {rows}")
        connection.execute("flush")
    snapshots = SnapshotFolder(str(path / "round"), LocalDisk())
    taken = snapshots.take(LiveFolder(str(path / "data"), LocalDisk()), lambda: b"", _SENDER, 1, {})
    names = [content.sha256 for content in taken.keys.values()]
    return Sent(taken.round, {name: Path(snapshots.path(name)).read_bytes() for name in names})


def arriving(folder: str, disk: Disk, chores: Executor, round_: Round) -> Incoming:
    """Return a round whose document and schema have arrived."""
    found = Incoming(MirrorFolder(folder), disk, chores)
    begin(found, round_)
    send(found, b"", 0)
    return found


def begin(incoming: Incoming, round_: Round) -> None:
    document = encode_round(round_)
    incoming.begin(round_.number, content_of(document), "root", "edge")
    send(incoming, document, 0)


def send(incoming: Incoming, data: bytes, start: int, stop: int | None = None) -> int:
    piece = data[start:stop]
    return incoming.chunk(content_of(data).sha256, start, zlib.crc32(piece), piece)


def test_few_files_are_open_however_many_have_begun_and_are_not_looked_at(tmp_path: Path, sent: Sent) -> None:
    incoming = arriving(str(tmp_path / _SENDER), LocalDisk(), Late(), sent.round)
    with few_files(60):
        for size in (50, 100):
            for data in sent.files.values():
                assert size == send(incoming, data, size - 50, size)
        for data in sent.files.values():
            assert len(data) == send(incoming, data, 100)
    assert () == incoming.wants()
    for name, data in sent.files.items():
        assert data == (tmp_path / _SENDER / "data" / f"{name}.tsfile").read_bytes()
    incoming.close()


@pytest.mark.parametrize("between", ["another round", "other files"])
def test_a_part_whose_sync_failed_while_nobody_asked_is_not_believed(sent: Sent, between: str) -> None:
    disk = CrashDisk()
    incoming = arriving(f"x/{_SENDER}", disk, Unheard(), sent.round)
    data, *others = sent.files.values()
    size = incoming_module.GOOD_BYTES
    assert len(data) > size + 1
    disk.fails_at = (disk.operations + 2, errno.EIO)  # opened, written, synced
    send(incoming, data, 0, size)
    assert disk.failed[0].startswith("sync")
    if between == "another round":
        begin(incoming, replace(sent.round, number=2))
    else:
        for other in others:
            send(incoming, other, 0, 1)
    (have,) = [want.have for want in incoming.wants() if want.content == content_of(data)]
    send(incoming, data, have)
    for other in others:
        send(incoming, other, 0 if between == "another round" else 1)
    assert () == incoming.wants()
    name = content_of(data).sha256
    assert data == bytes(disk.after_power_cut().map(f"x/{_SENDER}/data/{name}.tsfile"))
