"""After a crash at any disk operation, and after another crash during the restart, the log has all durable records.

A fixed sequence of calls is made to a log on a `CrashDisk`, which takes a picture at each operation. For every picture,
the log is opened on each disk that a restart may find, and is compared with the permitted states (`raft_log_model`).
Some of these logs are then used further, on disks that also take pictures. They are opened, written, released and
truncated, with a crash at each disk operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from cluster.raft_log_model import FOLDER, ModelledLog, Note, entries_of, position, vote
from storage.crash_disk import CrashDisk, Picture

from saros_cluster.multiraft.raft_log import RaftLog
from saros_storage.log import Durability, LogOptions

pytestmark = pytest.mark.slow

#: A small segment size: a few writes fill a segment.
SEGMENT_BYTES = 260
#: Crashes leave many different disks. One in `ONE_OF` of these disks is used further, and crashes again.
ONE_OF = 6


def tell(model: ModelledLog) -> None:
    """Write to three groups. One group releases its entries late, and another group begins with a vote.

    The calls include a conflict, a snapshot, and a group that leaves.
    """
    for group in (1, 2, 3):
        model.create(group, position(0, 0))
    model.append(3, vote(1, 2))
    model.wait()
    model.append(1, vote(1, 1), entries=entries_of(1, 1, 3))
    model.append(2, vote(2), entries=entries_of(1, 2, 1))
    model.wait()
    for first in (4, 7, 10):
        model.append(1, entries=entries_of(first, 1, 3))
        model.wait()
    model.append(1, vote(3, 2), entries=entries_of(8, 3, 3))  # entries 8 to 12 are replaced by 8 to 10
    model.append(2, vote(3), entries=entries_of(2, 3, 2))
    model.wait()
    model.release(1, 9)
    model.release(2, 1)
    model.cut()
    model.append(2, vote(4, 3), base=position(9, 4), entries=entries_of(10, 4, 2))  # a snapshot
    model.append(1, entries=entries_of(11, 3, 4))
    model.wait()
    model.create(4, position(0, 0))
    model.append(4, vote(1), entries=entries_of(1, 1, 2))
    model.wait()
    model.append(1, vote(4, 1))
    model.release(2, 10)
    model.wait()
    model.release(1, 14)
    model.drop(4)
    model.cut()
    model.append(1, entries=entries_of(15, 4, 2))
    model.append(2, entries=entries_of(12, 4, 6))
    model.wait()
    model.release(1, 16)
    model.release(2, 17)
    model.append(3, vote(2, 2))
    model.cut()
    model.append(3, entries=entries_of(1, 2, 1))
    model.wait()


def go_on(model: ModelledLog) -> None:
    """Use a log with any content further: write in all groups, release entries, truncate, and write again."""
    for group, state in model.now.items():
        index, term = state.last
        model.append(group, vote(state.hard_state.term + 1), entries=entries_of(index + 1, term + 1, 2, mark=1))
    model.wait()
    for group, state in model.now.items():
        model.release(group, state.last[0] - 1)
    model.cut()
    for group, state in list(model.now.items())[:1]:
        model.append(group, vote(state.hard_state.term, 3))
    model.wait()


def pictures_of(disk: CrashDisk, options: LogOptions, story: Callable[[ModelledLog], None]) -> list[Picture]:
    disk.keeps_pictures = True
    model = ModelledLog(disk, options)
    story(model)
    return [*disk.pictures, disk.picture()]


def crashes(pictures: list[Picture], before: Note | None) -> Iterator[tuple[CrashDisk, Note]]:
    """Check and yield each disk that a restart may find, with its note.

    Pictures that were taken before the log's first note get the note `before`.
    """
    for picture in pictures:
        note = picture.note or before
        assert isinstance(note, Note)
        for how, disk in picture.crashes():
            _, found = RaftLog.open(FOLDER, CrashDisk(disk.picture()), LogOptions())
            assert note.allows(found, how) is not None, (picture.operation, how, found, note)
            yield disk, note


@pytest.mark.parametrize("durability", [Durability.FSYNC, Durability.OS], ids=lambda d: d.name)
def test_no_crash_loses_what_was_waited_for_nor_makes_the_log_unreadable(durability: Durability) -> None:
    options = LogOptions(durability, SEGMENT_BYTES)
    start = Note(({},), {})
    first = list(crashes(pictures_of(CrashDisk(), options, tell), start))
    different = {disk.fingerprint: (disk, replace(note, written=1)) for disk, note in first}
    going_on = list(different.values())[::ONE_OF]
    second = sum(1 for disk, note in going_on for _ in crashes(pictures_of(disk, options, go_on), note))
    print(f"{len(first)} crashes, {len(different)} different, and {second} behind those")
    assert len(first) > 400
    assert second > 4_000
