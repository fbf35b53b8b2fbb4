"""A sender (edge) or a receiver (centre) crashes at each disk operation; after a restart, the round must complete.

    crash       the note of each picture has the states that the centre may show, and the disk of the other side
    restart     the centre shows its state before or after the round; only the latter if the round was acknowledged
    next round  the centre has the same data as the edge, and nothing is left over

With `depth` 2, the side that crashed also crashes during the recovery. Only a random fraction, `share`, of the disk's
possible states is tried.

Instead of a crash, one operation or several in a row may fail with EIO or ENOSPC. The error is raised at the sender or
reported to it; then the disk works again, and the sender continues. A centre whose log has failed is restarted, as its
store requires.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, takewhile
from random import Random

from storage.crash_disk import CrashDisk, Picture
from storage.store_model import Operation, State, delete_database, delete_points, flush, merge, write_rows
from storage.store_opening import FOLDER, Wrong, open_store
from sync.sync_world import CHORES, Centre, Edge, Late, devices_of, sender_beside

from saros_storage.base.errors import StorageError
from saros_sync.receiver.checking import Executor
from saros_sync.sender.folder import SenderFolder

Rounds = Sequence[Sequence[Operation]]
_BLOCK_BYTES = 512
_TEARS = (0.0, 0.5)


def rounds() -> Rounds:
    """Return rounds with new files, merges, deletions of points and files, and changes of the schema."""
    return [
        [write_rows("root.a.d1", range(12), 1), write_rows("root.b.c.d1", [5, 250], 1, ("x", "t"))],
        [write_rows("root.a.d1", range(6), 2), flush(), delete_points(["root.a.d1.x"], 3, 5), merge()],
        [delete_database("root.b.c"), write_rows("root.a.d2", [1], 3)],
    ]


@dataclass(frozen=True)
class Known:
    """The states that the centre may show after a crash, the edge's final state, and the disk of the other side."""

    allowed: tuple[State, ...]
    after: State
    other: Callable[[], Picture]


def centre_crashes(
    rounds: Rounds, chance: Random, share: float = 1.0, depth: int = 1, chores: Executor | None = None
) -> int:
    """Crash the centre at each operation; return how many states of its disk were tried. Raises Wrong."""
    centre = Centre(chores=chores or chance.choice(CHORES))
    edge = Edge(centre.line())
    centre.disk.keeps_pictures = True
    _note(centre.disk, edge, centre, (devices_of(centre.store),))
    for operations in rounds:
        edge.tell(*operations)
        edge.store.flush()
        before, after = devices_of(centre.store), devices_of(edge.store)
        _note(centre.disk, edge, centre, (before, after))
        edge.sending.run_round()
        _note(centre.disk, edge, centre, (after,))
    tried = 0
    for picture, how, found in crashes(centre.disk, chance, share):
        known = picture.note
        assert isinstance(known, Known)
        _go_on_with_centre(f"{picture.operation}, {how}", found, known, chance, share, depth)
        tried += 1
    edge.store.close()
    centre.close()
    return tried


def _note(disk: CrashDisk, edge: Edge, centre: Centre, allowed: tuple[State, ...]) -> None:
    taken = edge.disk.picture()
    known = Known(allowed, devices_of(edge.store), lambda: taken)
    disk.note = lambda: known


def _go_on_with_centre(context: str, disk: CrashDisk, known: Known, chance: Random, share: float, depth: int) -> None:
    deeper = depth > 1
    if deeper:
        disk.keeps_pictures = True
        disk.note = lambda: known
    with no_failure(context):
        centre = Centre(disk, Late())
    try:
        check(context, devices_of(centre.store), known.allowed)
        with no_failure(context):
            sender_beside(CrashDisk(known.other()), centre.line()).run_round()
        if deeper:
            done = Known((known.after,), known.after, known.other)
            disk.note = lambda: done
        check(f"{context}, after the next round", devices_of(centre.store), (known.after,))
        centre.check_nothing_left(context)
    finally:
        centre.close()
    if deeper:
        for picture, how, found in crashes(disk, chance, share):
            again = picture.note
            assert isinstance(again, Known)
            _go_on_with_centre(f"{context}; {picture.operation}, {how}", found, again, chance, share, depth - 1)


def sender_crashes(rounds: Rounds, chance: Random, share: float = 1.0) -> int:
    """Crash the edge, both its store and its sender; return how many states of its disk were tried. Raises Wrong."""
    centre = Centre(chores=Late())
    edge = Edge(centre.line())
    tried = 0
    for operations in rounds:
        edge.tell(*operations)
        edge.store.flush()
        before, after = devices_of(centre.store), devices_of(edge.store)
        edge.disk.keeps_pictures = True
        edge.disk.pictures.clear()
        edge.disk.note = centre.disk.picture
        edge.sending.run_round()
        edge.disk.keeps_pictures = False
        for picture, how, found in crashes(edge.disk, chance, share):
            assert isinstance(picture.note, Picture)
            _go_on_with_edge(f"{picture.operation}, {how}", found, picture.note, (before, after), after)
            tried += 1
    edge.store.close()
    centre.close()
    return tried


def _go_on_with_edge(context: str, disk: CrashDisk, other: Picture, allowed: tuple[State, ...], after: State) -> None:
    centre = Centre(CrashDisk(other))
    store = open_store(disk)
    try:
        check(f"{context}, the edge", devices_of(store), (after,))
        check(context, devices_of(centre.store), allowed)
        with no_failure(context):
            sender = sender_beside(disk, centre.line())
            sender.run_round()
        check(f"{context}, after the next round", devices_of(centre.store), (after,))
        if sender.run_round().is_new:
            raise Wrong(f"{context}: a round after the last one has something new")
        centre.check_nothing_left(context)
        check_sender_clean(context, disk)
    finally:
        store.close()
        centre.close()


def centre_failures(rounds: Rounds, number: int, failing: int, step: int = 1, start: int = 0) -> int:
    """Let operations of the centre's disk fail; return the number of runs in which one failed. Raises Wrong."""

    def tell(place: int) -> CrashDisk:
        centre = Centre(chores=CHORES[place % len(CHORES)])
        edge = Edge(centre.line())
        centre.disk.fails_at, centre.disk.fails_for = (centre.disk.operations + place, number), failing
        for operations in rounds:
            edge.tell(*operations)
            go_on_after_failure(edge, centre.disk, centre.restart)
            check(
                f"{errno.errorcode[number]}: {centre.disk.failed}", devices_of(centre.store), (devices_of(edge.store),)
            )
        centre.check_nothing_left(f"{errno.errorcode[number]}: {centre.disk.failed}")
        again = Centre(centre.disk.after_power_cut())
        check(f"{centre.disk.failed}, and a power cut", devices_of(again.store), (devices_of(edge.store),))
        centre.disk.fails_at = None  # stopping a server with a failing disk raises an error
        for side in (edge.store, centre, again):
            side.close()
        return centre.disk

    return each_failure(tell, step, start)


def sender_failures(rounds: Rounds, number: int, failing: int, step: int = 1, start: int = 0) -> int:
    """Let the sender's disk operations fail; return the number of runs in which one failed. Raises Wrong."""

    def tell(place: int) -> CrashDisk:
        centre = Centre(chores=Late())
        edge = Edge(centre.line())
        done = 0
        for operations in rounds:
            edge.tell(*operations)
            edge.store.flush()
            began = edge.disk.operations
            if not edge.disk.failed:
                edge.disk.fails_at, edge.disk.fails_for = (began + place - done, number), failing
            go_on_after_failure(edge, edge.disk, edge.restart_sender)
            edge.disk.fails_at = None
            done += edge.disk.operations - began
            check(f"{errno.errorcode[number]}: {edge.disk.failed}", devices_of(centre.store), (devices_of(edge.store),))
        check_sender_clean(f"{errno.errorcode[number]}: {edge.disk.failed}", edge.disk)
        edge.store.close()
        centre.close()
        return edge.disk

    return each_failure(tell, step, start)


def each_failure(tell: Callable[[int], CrashDisk], step: int, start: int) -> int:
    """Call `tell` for every `step`th operation, which `tell` lets fail; return the number of runs with a failure."""
    places = count(start, step)
    return sum(1 for _ in takewhile(lambda place: tell(place).failed, places))


def go_on_after_failure(edge: Edge, disk: CrashDisk, restart: Callable[[], None] | None = None) -> None:
    """Run a round on a disk that may fail. After a failure, repair the disk and let the same sender continue.

    If the sender still fails, `restart` restarts the side whose disk failed. Raises Wrong.
    """
    edge.store.flush()
    try:
        edge.sending.run_round()
    except (StorageError, OSError) as error:
        if not disk.failed:
            raise Wrong(f"without a failure: {error!r}") from error
    else:
        return
    disk.fails_at = None
    try:
        edge.sending.run_round()
    except (StorageError, OSError) as error:
        if restart is None:
            raise Wrong(f"{disk.failed}, and then: {error!r}") from error
        with no_failure(f"{disk.failed}, and then anew"):
            restart()
            edge.sending.run_round()


@contextmanager
def no_failure(context: str) -> Iterator[None]:
    """Raise Wrong if a StorageError or an OSError is raised within the context."""
    try:
        yield
    except (StorageError, OSError) as error:
        raise Wrong(f"{context}: {error!r}") from error


def crashes(disk: CrashDisk, chance: Random, share: float) -> Iterator[tuple[Picture, str, CrashDisk]]:
    disk.keeps_pictures = False
    for picture in disk.pictures:
        for how, found in picture.crashes(_BLOCK_BYTES, _TEARS):
            if chance.random() < share:
                yield picture, how, found


def check(context: str, found: State, allowed: tuple[State, ...]) -> None:
    if found not in allowed:
        raise Wrong(f"after {context}: found {found}, allowed is one of {allowed}")


def check_sender_clean(context: str, disk: CrashDisk) -> None:
    """Check that the sender has only the files that it needs for the next round."""
    folder = SenderFolder(FOLDER, disk)
    for name in folder.receivers():
        left = set(disk.list(folder.of(name).path)) - {"receiver", "last_local_files", "LOCK", "status"}
        if left:
            raise Wrong(f"{context}: {left} is left in {name}")
