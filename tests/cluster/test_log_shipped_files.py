"""Files sent through a group's log: all members load a file once and alike, with any entries between its parts."""

from __future__ import annotations

import errno
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cluster.test_region_apply import Member, catch_up_by_snapshot, creates, write
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from saros_cluster.data.command import NO_REQUEST, Request, check_command, encode_command, encode_shipping
from saros_cluster.data.log_shipped_files import LOST, Abandon, Piece, shipment_name, staged_name
from saros_storage.base.errors import CorruptFile, UserMistake
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.io.disk import LocalDisk
from saros_storage.mutation.mutation import Deletion, Mutation
from saros_storage.mutation.staged import StagedFile
from saros_storage.scan.reading import TimeRange
from saros_storage.schema import DeleteDatabase
from saros_storage.tsfile.writer import TsFileWriter

PIECES = 3
#: The device and the slice of each file's points.
FILES = (("root.a.d", 0), ("root.a.d", 1), ("root.b.d", 0))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, ...]:
    folder = tmp_path_factory.mktemp("files")
    return tuple(tsfile(folder / str(n), device, 100 * slice_) for n, (device, slice_) in enumerate(FILES))


def tsfile(path: Path, device: str, start: int) -> bytes:
    file = LocalDisk().create(str(path))
    writer = TsFileWriter(file)
    times, values = np.arange(start, start + 50), np.arange(50) + 1_000
    writer.write_series(device, "x", DataType.INT64, Encoding.PLAIN, Compressor.UNCOMPRESSED, times, values)
    writer.finish()
    file.close()
    return path.read_bytes()


class Sender:
    """A sender of files; the test chooses the order of their parts."""

    def __init__(self, files: tuple[bytes, ...]) -> None:
        self.files = files

    def piece(self, number: int, place: int) -> bytes:
        data = self.files[number]
        step = -(-len(data) // PIECES)
        return encode_shipping(Piece(shipment_name(7, number), place * step, data[place * step :][:step]))

    def load(self, number: int, request: Request, seen: int) -> bytes:
        (device, slice_), data = FILES[number], self.files[number]
        name = staged_name(shipment_name(7, number))
        staged = StagedFile(device[:-2], slice_, name, len(data), zlib.crc32(data), 0)
        return encode_command(request, Mutation(loads=[staged]), seen)

    def whole(self, member: Member, number: int, request: Request) -> object:
        for place in range(PIECES):
            assert member.append(self.piece(number, place)) is None
        return member.append(self.load(number, request, len(member.log)))


@pytest.fixture
def sender(files: tuple[bytes, ...]) -> Sender:
    return Sender(files)


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Member]:
    made = Member(tmp_path / "member")
    made.append(encode_command(NO_REQUEST, Mutation(creates("root.a.d"))))
    yield made
    made.machine.close()


def staged(member: Member) -> list[str]:
    return [path.name for path in member.folder.glob("groups/1/*/.staged/*")]


LOADED = {n: 1_000 + n for n in range(50)}


def test_a_file_counts_as_written_when_it_is_loaded(member: Member, sender: Sender) -> None:
    member.append(encode_command(NO_REQUEST, write("root.a.d", 0, 2, 1)))
    for place in range(PIECES):
        member.append(sender.piece(0, place))
    member.append(encode_command(NO_REQUEST, write("root.a.d", 2, 1, 2)))
    assert {0: 1, 1: 1, 2: 2} == member.points("root.a.d")
    member.append(sender.load(0, Request(7, 1), len(member.log)))
    assert LOADED == member.points("root.a.d")
    member.append(encode_command(NO_REQUEST, write("root.a.d", 3, 1, 3)))
    member.restart()
    assert {**LOADED, 3: 3} == member.points("root.a.d")
    member.machine.region.flush()
    member.restart()
    assert {**LOADED, 3: 3} == member.points("root.a.d")
    assert [] == staged(member)


def test_the_log_keeps_a_file_until_a_manifest_has_it(member: Member, sender: Sender) -> None:
    member.append(sender.piece(0, 0))
    member.append(encode_command(NO_REQUEST, write("root.a.d", 150, 1, 1)))
    member.machine.region.flush()
    member.machine.save()
    assert 1 == member.base
    member.append(sender.piece(0, 1))
    member.restart()
    member.append(sender.piece(0, 2))
    assert member.append(sender.load(0, Request(7, 1), len(member.log))) is None
    member.machine.region.flush()
    member.machine.save()
    assert len(member.log) == member.base
    assert {**LOADED, 150: 1} == member.points("root.a.d")


def test_the_log_keeps_a_file_that_is_loaded_and_in_no_manifest_yet(member: Member, sender: Sender) -> None:
    with member.machine.region.flusher.folders:  # the flusher has to wait
        assert sender.whole(member, 0, Request(7, 1)) is None
        member.machine.save()
        assert 1 == member.base
    member.restart()
    assert LOADED == member.points("root.a.d")


def test_what_is_not_whole_is_refused_and_forgotten(member: Member, sender: Sender) -> None:
    for place in (0, 2, 1):
        outcome = member.append(sender.piece(0, place))
        assert (place == 2) == isinstance(outcome, UserMistake)
    outcome = member.append(sender.load(0, Request(7, 1), len(member.log)))
    assert isinstance(outcome, UserMistake)
    assert LOST == outcome.code
    assert [] == staged(member)
    assert {} == member.points("root.a.d")
    assert sender.whole(member, 0, Request(7, 1)) is None
    assert LOADED == member.points("root.a.d")


def test_a_file_that_its_sender_gives_up_is_removed(member: Member, sender: Sender) -> None:
    member.append(sender.piece(0, 0))
    assert [] != staged(member)
    assert member.append(encode_shipping(Abandon(shipment_name(7, 0)))) is None
    assert [] == staged(member)
    assert sender.whole(member, 0, Request(7, 1)) is None
    assert LOADED == member.points("root.a.d")


def test_a_load_that_has_not_seen_a_drop_is_refused(member: Member, sender: Sender) -> None:
    member.add(NO_REQUEST, Mutation([DeleteDatabase("root.a")]), drop=50)
    for place in range(PIECES):
        member.append(sender.piece(0, place))
    outcome = member.append(sender.load(0, Request(7, 1), 49))
    assert isinstance(outcome, UserMistake)
    assert 2021 == outcome.code
    member.restart()
    assert {} == member.points("root.a.d")
    assert [] == staged(member)


def test_what_is_no_tsfile_is_refused_by_all_and_harms_nobody(member: Member) -> None:
    sender = Sender((b"TsFile\x04 and nothing of what should follow",))
    outcome = sender.whole(member, 0, Request(7, 1))
    assert isinstance(outcome, UserMistake)
    assert 2010 == outcome.code
    member.restart()
    assert [] == staged(member)


def test_a_full_disk_is_waited_for(member: Member, sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each attempt, the disk has room for only a few bytes of the piece."""
    monkeypatch.setattr("saros_cluster.data.region_apply._FULL_DISK_SECONDS", 0.001)
    left = 3

    class Full:
        def __init__(self, file: object) -> None:
            self._file = file

        def __getattr__(self, name: str) -> object:
            return getattr(self._file, name)

        def write(self, parts: list[bytes]) -> None:
            nonlocal left
            left -= 1
            if left >= 0:
                self._file.write([bytes(parts[0])[:5]])  # type: ignore[attr-defined]
                raise OSError(errno.ENOSPC, "full")
            self._file.write(parts)  # type: ignore[attr-defined]

    append = LocalDisk.append
    monkeypatch.setattr(LocalDisk, "append", lambda self, path: Full(append(self, path)))
    for place in range(PIECES):
        member.append(sender.piece(0, place))
    assert left < 0
    monkeypatch.undo()
    assert member.append(sender.load(0, Request(7, 1), len(member.log))) is None
    member.machine.region.flush()
    assert LOADED == member.points("root.a.d")


@pytest.mark.parametrize("name", ["../7-1", "7-1/..", "7", "7-1/2.tsfile", ""])
def test_a_name_does_not_become_a_path(name: str) -> None:
    staged_file = StagedFile("root.a", 0, f"{name}/1.tsfile", 1, 1, 0)
    for command in (
        encode_shipping(Piece(name, 0, b"x")),
        encode_shipping(Abandon(name)),
        encode_command(NO_REQUEST, Mutation(loads=[staged_file])),
    ):
        with pytest.raises(CorruptFile):
            check_command(command)


STEP = st.one_of(
    st.tuples(st.just("send"), st.integers(0, len(FILES) - 1), st.integers(0, PIECES - 1)),
    st.tuples(st.just("send all"), st.integers(0, len(FILES) - 1)),
    st.tuples(st.just("load"), st.integers(0, len(FILES) - 1), st.integers(0, 3)),
    st.tuples(st.just("load"), st.integers(0, len(FILES) - 1), st.integers(0, 3)),
    st.tuples(st.just("abandon"), st.integers(0, len(FILES) - 1)),
    st.tuples(st.just("write"), st.integers(0, 250), st.integers(1, 60)),
    st.tuples(st.just("delete"), st.integers(0, 250), st.integers(1, 100)),
    st.tuples(st.just("drop database")),
    st.tuples(st.just("flush")),
    st.tuples(st.just("save")),
    st.tuples(st.just("restart")),
    st.tuples(st.just("snapshot")),
)
Step = tuple[object, ...]


def commands_of(sender: Sender, step: Step, number: int, index: int) -> list[bytes]:
    match step:
        case ["send", int(file), int(place)]:
            return [sender.piece(file, place)]
        case ["send all", int(file)]:
            return [sender.piece(file, place) for place in range(PIECES)]
        case ["load", int(file), int(request)]:
            return [sender.load(file, Request(7, request), index)]
        case ["abandon", int(file)]:
            return [encode_shipping(Abandon(shipment_name(7, file)))]
        case ["write", int(start), int(count)]:
            return [encode_command(Request(3, number), write("root.a.d", start, count, number))]
        case ["delete", int(start), int(count)]:
            deletion = Deletion(("root.**",), TimeRange(start, start + count))
            return [encode_command(Request(3, number), Mutation(deletions=[deletion]))]
        case ["drop database"]:
            drop = encode_command(NO_REQUEST, Mutation([DeleteDatabase("root.a")]), index)
            return [drop, encode_command(NO_REQUEST, Mutation(creates("root.a.d")), index)]
    raise AssertionError(step)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.lists(STEP, max_size=30))
@example([("send all", 0), ("save",), ("load", 0, 1), ("flush",), ("restart",), ("send all", 0), ("load", 0, 2)])
@example([("send all", 0), ("load", 0, 1), ("drop database",), ("restart",), ("snapshot",)])
@example([("write", 0, 60), ("send all", 0), ("load", 0, 1), ("flush",), ("save",), ("send", 0, 0), ("restart",)])
def test_members_come_to_the_same(
    tmp_path_factory: pytest.TempPathFactory, files: tuple[bytes, ...], steps: list[Step]
) -> None:
    """One member flushes, saves, restarts and installs a snapshot; the other member only applies entries."""
    folder, sender = tmp_path_factory.mktemp("members"), Sender(files)
    steady, restless = Member(folder / "steady"), Member(folder / "restless")
    try:
        for member in (steady, restless):
            member.append(encode_command(NO_REQUEST, Mutation(creates("root.a.d"))))
        for number, step in enumerate(steps):
            match step[0]:
                case "flush":
                    restless.machine.region.flush()
                case "save":
                    restless.machine.save()
                case "restart":
                    restless.restart()
                case "snapshot":
                    replaced, restless = restless, Member(folder / f"restless{number}")
                    catch_up_by_snapshot(replaced, restless)
                    replaced.machine.close()
                case _:
                    for command in commands_of(sender, step, number, len(steady.log) + 1):
                        assert str(steady.append(command)) == str(restless.append(command))
            assert steady.state() == restless.state()
        restless.restart()
        assert steady.state() == restless.state()
        assert [] == [problem for member in (steady, restless) for problem in member.machine.region.status(0).problems]
    finally:
        steady.machine.close()
        restless.machine.close()
