"""A store on a crash disk: a crash interrupts operations, and the reopened store is compared with allowed states.

    tell                   runs operations on a disk that takes pictures, each with a `Note` of the states that a
                           restart may find
    judge                  opens the disk after a crash: the store must be in one of the states that the note allows
    enumerate_crashes      both; then both again on disks left by the first crash, which a store opens and continues
    enumerate_kills        the process is killed, the next one relies on the disk's content, and then the power fails
    enumerate_failures     the nth disk operation fails, for every n

The states from the last acknowledged to the last begun operation are allowed. After a power cut with durability `os`,
all states since the last flush are also allowed.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from msgspec.structs import replace
from storage.crash_disk import CrashDisk, Picture
from storage.store_model import Operation, State, read_store
from storage.store_opening import FOLDER, OPTIONS, Wrong, open_store

from saros_storage.base.errors import DiskFull, StorageError, UserMistake
from saros_storage.folder.layout import NODE_FILE
from saros_storage.folder.store_options import StoreOptions
from saros_storage.folder_check import check_folder

#: The size of a block: it is smaller than the records of most batches in these tests, and larger than a page of a file.
BLOCK_BYTES = 256
TEARS = (0.0, 0.5)


@dataclass(frozen=True)
class Note:
    """The states that a restart may find: after a power cut, any of them; otherwise, one from `acknowledged` on."""

    states: tuple[State, ...]
    acknowledged: int = 0

    def allows(self, found: State, how: str) -> bool:
        return found in self.states[self.acknowledged if how == "process" else 0 :]


class Teller:
    """Runs operations, and keeps the disk's note up to date: the states that a restart may find at each moment."""

    def __init__(self, disk: CrashDisk, options: StoreOptions, before: Note) -> None:
        self._disk = disk
        self._is_synced = options.durability == "fsync"
        self._note = before
        disk.note = lambda: self._note
        self.store = open_store(disk, options)
        #: The expected state of the store.
        self.state = read_store(self.store)
        #: True once an operation has failed in such a way that no later operation may be acknowledged.
        self.is_over = False
        self._note = Note((self.state,))

    @property
    def note(self) -> Note:
        return self._note

    def tell(self, operation: Operation) -> bool:
        """Run an operation; return whether it succeeded."""
        states = [self.state]
        for change in operation.changes:
            states.append(change(states[-1]))
        before = self._note
        self._note = Note((*before.states, *states[1:]), before.acknowledged)
        try:
            operation.run(self.store)
        except (DiskFull, UserMistake) as error:
            self._take_back(before, states, error)
            return False
        except StorageError as error:
            self._fail(operation, before, states, error)
            return False
        if self.is_over:
            if states[-1] != states[0]:
                raise Wrong(f"{operation.name} was acknowledged after the log had failed")
            return True
        self._settle(states[-1], is_durable=self._is_synced or operation.makes_durable)
        return True

    def _take_back(self, before: Note, states: Sequence[State], error: StorageError) -> None:
        """Record the effect of an operation with a refused entry: only the entries before that one take effect."""
        self._note = before
        found = self._found_after(states, error)
        if found != self.state:
            self._note = Note((*before.states, found), before.acknowledged)
            self._settle(found, is_durable=self._is_synced)

    def _fail(self, operation: Operation, before: Note, states: Sequence[State], error: StorageError) -> None:
        """Record the failure of an operation. If the log has failed, only a restart shows the operation's effect."""
        if self.is_over or not operation.changes:
            self._note = before
        elif self.store._log.failure is None and operation.may_be_refused:
            self._take_back(before, states, error)
        elif self.store._log.failure is None:
            raise Wrong(f"{operation.name} failed, and the log did not: {error!r}") from error
        else:
            self.is_over = True
            self.state = self._found_after(states, error)
            if self._is_synced:
                self._note = Note(tuple(states[states.index(self.state) :]))

    def _found_after(self, states: Sequence[State], error: StorageError) -> State:
        """Return the store's state after a failed operation, whose first entries may have taken effect."""
        found = read_store(self.store)
        if found not in states:
            raise Wrong(f"{error!r} left {found}, which is none of {states}") from error
        return found

    def _settle(self, state: State, *, is_durable: bool) -> None:
        self.state = state
        if is_durable:
            self._note = Note((state,))
        else:
            self._note = Note(self._note.states, len(self._note.states) - 1)

    def close(self) -> None:
        try:
            self.store.close()
        except (StorageError, OSError):
            return


def judge(disk: CrashDisk, how: str, note: Note, options: StoreOptions, context: object) -> State:
    """Return the state of the store after a crash. Raises Wrong if the note does not allow this state."""
    _verify(disk, how, context)
    try:
        store = open_store(disk, replace(options, compaction=False))
    except StorageError as error:
        raise Wrong(f"after {context}, {how}: {error}") from error
    try:
        found = read_store(store)
        problems = store.status().problems
        with store._lock:
            for partition in store._region.partitions:
                partition.validate()
    except StorageError as error:
        raise Wrong(f"after {context}, {how}, reading: {error}") from error
    finally:
        store.close()
    if problems:
        raise Wrong(f"after {context}, {how}: {problems}")
    if not note.allows(found, how):
        raise Wrong(f"after {context}, {how}: found {found}, allowed from {note.acknowledged} of {note.states}")
    return found


def _verify(disk: CrashDisk, how: str, context: object) -> None:
    """Check that `saros verify` reports no damage after a crash."""
    if disk.exists(f"{FOLDER}/{NODE_FILE}"):
        problems = check_folder(FOLDER, disk, lambda _: None).problems
        if problems:
            raise Wrong(f"after {context}, {how}, verifying: {problems}")


# ---------------------------------------------------------------------- crashes


@dataclass
class Figures:
    """The numbers of operations, crashes and checked disks."""

    operations: int = 0
    #: The numbers of disks after a crash, of distinct disks among these, and of disks after a second crash.
    crashes: int = 0
    different: int = 0
    second: int = 0
    failures: int = 0
    kinds: set[str] = field(default_factory=set)


def tell_all(
    disk: CrashDisk, options: StoreOptions, operations: Sequence[Operation], before: Note
) -> Iterator[tuple[Picture, Note]]:
    """Run operations, and yield the pictures that the disk took, with their notes."""
    disk.keeps_pictures = True
    teller = Teller(disk, options, before)
    for operation in operations:
        if not teller.tell(operation):
            raise Wrong(f"{operation.name} failed")
    teller.close()
    disk.keeps_pictures = False
    for picture in [*disk.pictures, disk.picture()]:
        assert isinstance(picture.note, Note)
        yield picture, picture.note


class Crashes:
    """Checks each distinct disk once."""

    def __init__(self, options: StoreOptions, figures: Figures, *, one_of: int = 1) -> None:
        self._options = options
        self._figures = figures
        #: Every `_one_of`th disk is checked.
        self._one_of = one_of
        #: The state found on each disk.
        self._found: dict[object, State] = {}

    def look(self, pictures: Iterator[tuple[Picture, Note]]) -> Iterator[tuple[Picture, Note]]:
        """Check each disk that a crash at one of the pictures may leave; yield each new disk as a picture."""
        for picture, note in pictures:
            self._figures.kinds.add(picture.operation.split(" ")[0])
            for how, disk in picture.crashes(BLOCK_BYTES, TEARS):
                self._figures.crashes += 1
                if self._figures.crashes % self._one_of:
                    continue
                key = disk.fingerprint
                known = self._found.get(key)
                if known is None:
                    before = disk.picture()
                    known = self._found[key] = judge(disk, how, note, self._options, picture.operation)
                    self._figures.different += 1
                    yield before, replace_acknowledged(note, how)
                elif not note.allows(known, how):
                    raise Wrong(f"after {picture.operation}, {how}: found {known}, allowed {note}")


def replace_acknowledged(note: Note, how: str) -> Note:
    return note if how == "process" else Note(note.states)


def enumerate_crashes(
    operations: Sequence[Operation],
    after: Sequence[Operation],
    options: StoreOptions = OPTIONS,
    *,
    again: int = 0,
    one_of: int = 1,
    chance: Random | None = None,
) -> Figures:
    """Crash at each disk operation.

    Choose `again` of the resulting disks, and on each of them run the operations `after` and crash a second time. One
    in `one_of` crashes is checked.
    """
    figures = Figures(operations=len(operations))
    crashes = Crashes(options, figures, one_of=one_of)
    left = list(crashes.look(tell_all(CrashDisk(), options, operations, Note((State(),)))))
    chosen = (chance or Random(0)).sample(left, min(again, len(left)))
    first = figures.crashes
    for picture, note in chosen:
        for _ in crashes.look(tell_all(CrashDisk(picture), options, after, note)):
            figures.second += 1
    figures.crashes, figures.second = first, figures.crashes - first
    return figures


def enumerate_kills(
    operations: Sequence[Operation],
    after: Sequence[Operation],
    options: StoreOptions = OPTIONS,
    *,
    one_of: int = 1,
    start: int = 0,
) -> Figures:
    """Kill the process after each rename of a file. The next process runs the operations `after`; then the power fails.

    The power fails after each sync of a folder, which makes more changes durable, including deletions. Only one in
    `one_of` kills is tried, beginning with number `start`. In the returned figures, `second` is the number of distinct
    power cuts.
    """
    figures = Figures(operations=len(operations))
    told = tell_all(CrashDisk(), options, operations, Note((State(),)))
    killed = [(picture, note) for picture, note in told if picture.operation.startswith("rename")]
    for picture, note in killed[start::one_of]:
        figures.crashes += 1
        seen = set()
        for later, allowed in tell_all(CrashDisk(picture), options, after, note):
            if not later.operation.startswith("sync the folder"):
                continue
            found = CrashDisk(later).after_power_cut()
            if found.fingerprint not in seen:
                seen.add(found.fingerprint)
                figures.second += 1
                context = f"a kill after {picture.operation}, then {later.operation}"
                judge(found, "none, all names lost", allowed, options, context)
    return figures


# ---------------------------------------------------------------------- failures


def enumerate_failures(
    operations: Sequence[Operation],
    number: int,
    options: StoreOptions = OPTIONS,
    *,
    failing: int = 1,
    step: int = 1,
    start: int = 0,
) -> Figures:
    """For every `step`th n, run operations on a disk on which `failing` disk operations fail, beginning with the nth.

    `number` is the errno of the failures.
    """
    figures = Figures(operations=len(operations))
    place = start
    while _fail_at(operations, place, number, options, failing, figures):
        figures.failures += 1
        place += step
    return figures


def _fail_at(
    operations: Sequence[Operation], place: int, number: int, options: StoreOptions, failing: int, figures: Figures
) -> bool:
    """Let disk operations fail, beginning with number `place`.

    Return False if there are too few operations for this.
    """
    disk = CrashDisk()
    disk.fails_at, disk.fails_for = (place, number), failing
    note = _promised(disk, operations, options)
    context = f"{errno.errorcode[number]} in {disk.failed}"
    for how, found in disk.picture().crashes():
        figures.crashes += 1
        judge(found, how, note, options, context)
    return bool(disk.failed)


def _promised(disk: CrashDisk, operations: Sequence[Operation], options: StoreOptions) -> Note:
    """Run operations on a failing disk; return the note with the states that a restart may find.

    If the disk failed before the store was open, nothing has to survive.
    """
    nothing = Note((State(),))
    try:
        teller = Teller(disk, options, nothing)
    except (StorageError, OSError):
        if not disk.failed:
            raise
        return nothing
    for operation in operations:
        teller.tell(operation)
    teller.close()
    return teller.note
