"""A sender or a receiver is cut off at each operation on its disk; then it starts again, and the round ends well.

    note        what the side that goes down may show when it is up again, and the disk of the other side at that moment
    then        the centre shows what it showed before the round or after it, and after it once that was acknowledged
    at last     the sender is asked for a round: the centre has what the edge has, and nothing is left over

`depth` 2: once more while that goes on. `share`: of all states so many are tried, by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from storage.crash_disk import CrashDisk, Picture
from storage.store_model import Operation, State
from storage.store_opening import FOLDER, Wrong, open_store
from sync.sync_world import Centre, Edge, devices_of, sender_beside

from saros_sync.receiver.mirror import MirrorFolder
from saros_sync.round import content_of
from saros_sync.sender.folder import SenderFolder

Rounds = Sequence[Sequence[Operation]]
_BLOCK_BYTES = 512
_TEARS = (0.0, 0.5)


@dataclass(frozen=True)
class Known:
    """What is allowed at a moment: states of the centre; the edge's, which it comes to; the other side's disk."""

    allowed: tuple[State, ...]
    after: State
    other: Callable[[], Picture]


def centre_crashes(rounds: Rounds, chance: Random, share: float = 1.0, depth: int = 1) -> int:
    """How many states were tried. Raises Wrong."""
    centre = Centre()
    edge = Edge(centre.line())
    centre.disk.keeps_pictures = True
    _note(centre.disk, edge, centre, (devices_of(centre.store),))
    for operations in rounds:
        edge.tell(*operations)
        edge.store.flush()
        before, after = devices_of(centre.store), devices_of(edge.store)
        _note(centre.disk, edge, centre, (before, after))
        edge.sending.once()
        _note(centre.disk, edge, centre, (after,))
    tried = 0
    for picture, how, found in _crashes(centre.disk, chance, share):
        known = picture.note
        assert isinstance(known, Known)
        _go_on_with_centre(f"{picture.operation}, {how}", found, known, chance, share, depth)
        tried += 1
    edge.store.close()
    centre.store.close()
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
    centre = Centre(disk)
    try:
        _check(context, devices_of(centre.store), known.allowed)
        sender_beside(CrashDisk(known.other()), centre.line()).once()
        if deeper:
            done = Known((known.after,), known.after, known.other)
            disk.note = lambda: done
        _check(f"{context}, after the next round", devices_of(centre.store), (known.after,))
        check_nothing_left(context, centre)
    finally:
        centre.store.close()
    if deeper:
        for picture, how, found in _crashes(disk, chance, share):
            again = picture.note
            assert isinstance(again, Known)
            _go_on_with_centre(f"{context}; {picture.operation}, {how}", found, again, chance, share, depth - 1)


def sender_crashes(rounds: Rounds, chance: Random, share: float = 1.0) -> int:
    """The same with the edge, all of which goes down. How many states were tried. Raises Wrong."""
    centre = Centre()
    edge = Edge(centre.line())
    tried = 0
    for operations in rounds:
        edge.tell(*operations)
        edge.store.flush()
        before, after = devices_of(centre.store), devices_of(edge.store)
        edge.disk.keeps_pictures = True
        edge.disk.pictures.clear()
        edge.disk.note = centre.disk.picture
        edge.sending.once()
        edge.disk.keeps_pictures = False
        for picture, how, found in _crashes(edge.disk, chance, share):
            assert isinstance(picture.note, Picture)
            _go_on_with_edge(f"{picture.operation}, {how}", found, picture.note, (before, after), after)
            tried += 1
    edge.store.close()
    centre.store.close()
    return tried


def _go_on_with_edge(context: str, disk: CrashDisk, other: Picture, allowed: tuple[State, ...], after: State) -> None:
    centre = Centre(CrashDisk(other))
    store = open_store(disk)
    try:
        _check(f"{context}, the edge", devices_of(store), (after,))
        _check(context, devices_of(centre.store), allowed)
        sender = sender_beside(disk, centre.line())
        sender.once()
        _check(f"{context}, after the next round", devices_of(centre.store), (after,))
        if sender.once().is_new:
            raise Wrong(f"{context}: a round after the last one has something new")
        check_nothing_left(context, centre)
        check_sender_clean(context, disk)
    finally:
        store.close()
        centre.store.close()


def _crashes(disk: CrashDisk, chance: Random, share: float) -> Iterator[tuple[Picture, str, CrashDisk]]:
    disk.keeps_pictures = False
    for picture in disk.pictures:
        for how, found in picture.crashes(_BLOCK_BYTES, _TEARS):
            if chance.random() < share:
                yield picture, how, found


def _check(context: str, found: State, allowed: tuple[State, ...]) -> None:
    if found not in allowed:
        raise Wrong(f"after {context}: found {found}, allowed is one of {allowed}")


def check_nothing_left(context: str, centre: Centre) -> None:
    """Each content that is here is one that is shown; no round is in hand."""
    receiver = centre.receiver
    folders = set(centre.disk.list(f"{FOLDER}/sync-receiver")) - {"device_owner"}
    if folders != set(receiver.catalog.senders) or receiver.in_hand():
        raise Wrong(f"{context}: folders of {folders} are left, rounds {receiver.in_hand()} in hand")
    for sender, mirror in receiver.shown.mirrors.items():
        folder = MirrorFolder(f"{FOLDER}/sync-receiver/{sender}")
        names, wanted = set(centre.disk.list(folder.data)), folder.names(mirror.document, mirror.round)
        if names != wanted or mirror.damaged or "load.log" in centre.disk.list(folder.folder):
            raise Wrong(f"{context}: {names ^ wanted} are too many or missing, {mirror.damaged} damaged")
        for content in mirror.round.contents().values():
            path = folder.schema(content) if content == mirror.round.schema else folder.tsfile(content)
            if content_of(bytes(centre.disk.map(path))) != content:
                raise Wrong(f"{context}: {path} is not what its name says")


def check_sender_clean(context: str, disk: CrashDisk) -> None:
    """A sender between two rounds keeps what it needs for the next."""
    folder = SenderFolder(FOLDER, disk)
    for name in folder.receivers():
        left = set(disk.list(folder.of(name).path)) - {"receiver", "last_local_files", "LOCK", "status"}
        if left:
            raise Wrong(f"{context}: {left} is left in {name}")
