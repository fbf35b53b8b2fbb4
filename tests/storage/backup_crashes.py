"""Backups and restores on a crash disk: the power fails or the process dies at each operation, or an operation fails.

History           a store without faults, and its state after each entry of its log
judge_backups     checks a folder of backups after a crash: it has the acknowledged backups and perhaps the next one;
                  each restores the store's state at all points that it covers; a further backup succeeds
judge_restore     checks a restore after a crash: it is complete or has not begun, and can be repeated

A story is a sequence of steps, each of which is an operation on the store or a backup.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from manual_clock import CountingClock
from msgspec.structs import replace
from storage.crash_disk import CrashDisk, Picture
from storage.store_crashes import BLOCK_BYTES, TEARS, Figures
from storage.store_model import Operation, State, delete_points, flush, load, read_store, write_batch, write_rows
from storage.store_opening import NOW_MS, OPTIONS, Wrong, open_store

from saros_storage.backup.catalog import Catalog, encode_catalog
from saros_storage.backup.making import BackupRun
from saros_storage.backup.points import AtIndex
from saros_storage.backup.repository import Repository
from saros_storage.backup.restoring import Restore
from saros_storage.backup.source import LocalSource
from saros_storage.backup.verifying import verify
from saros_storage.base.errors import StorageError, UserMistake

BACKUPS, TARGET = "/backups", "/restored/data"
#: Options that keep the log for backups, so that backups cover every point in time.
KEEPING = replace(OPTIONS, log_archive_bytes=1 << 20)


class History:
    """A store on a disk without faults, and the state of the store after each entry of its log."""

    def __init__(self) -> None:
        self.store = open_store(CrashDisk(), KEEPING)
        self.clock = CountingClock(NOW_MS * 1_000_000)
        self.states = {0: State()}
        #: Entries that loaded files.
        self.loads: list[int] = []
        #: Catalogs (encoded) that have already been restored and compared.
        self._restored: set[bytes] = set()

    @property
    def reached(self) -> int:
        return self.store._region.partitions.applied

    def tell(self, operation: Operation) -> None:
        operation.run(self.store)
        self.states[self.reached] = read_store(self.store)
        if operation.name.startswith("load"):
            self.loads.append(self.reached)

    def back_up(self, disk: CrashDisk, *, incremental: bool) -> None:
        source = LocalSource(self.store)
        BackupRun(Repository(BACKUPS, disk), source, self.clock, incremental=incremental).run()

    def compare(self, disk: CrashDisk, catalogs: Sequence[Catalog], context: object) -> None:
        """Restore each new catalog to every point whose state is known, and compare the result with that state."""
        before = 0
        for catalog in catalogs:
            known = encode_catalog(catalog)
            end, before = before, catalog.reached
            if known in self._restored:
                continue
            self._restored.add(known)
            for index in range(end + 1 if catalog.continues else catalog.reached, catalog.reached + 1):
                if index in self.states:
                    loads = [load for load in self.loads if end < load <= index < catalog.floor]
                    self._restore(disk, index, context, refused=bool(loads))

    def _restore(self, disk: CrashDisk, index: int, context: object, *, refused: bool) -> None:
        target = CrashDisk()
        try:
            Restore(Repository(BACKUPS, disk), TARGET, target).run(AtIndex(index))
        except UserMistake as error:
            if not refused or "is a LOAD" not in error.message or target.files:
                raise Wrong(f"{context}: a restore to {index} left {sorted(target.files)}: {error}") from error
        else:
            if refused:
                raise Wrong(f"{context}: a restore to {index} lacks the file of a LOAD")
            self.judge(target, index, context)

    def judge(self, disk: CrashDisk, index: int, context: object) -> None:
        """Check a restored folder."""
        store = open_store(disk, KEEPING, TARGET)
        try:
            found, problems = read_store(store), store.status().problems
        finally:
            store.close()
        if problems or found != self.states[index]:
            raise Wrong(f"{context}: restored to {index} there is {found} {problems}, not {self.states[index]}")


@dataclass(frozen=True)
class BackUp:
    """A step of a story: it makes a backup."""

    incremental: bool


Story = Sequence[Operation | BackUp]
#: A story with full and incremental backups; they copy files as well as parts of the log.
STORY: Story = [
    write_rows("root.a.d1", range(30), 1),
    flush(),
    write_rows("root.a.d1", range(95, 105), 2),
    BackUp(incremental=False),
    write_batch(("root.a.d1", range(5, 9), 3), ("root.b.c.d1", range(3), 4)),
    delete_points(["root.a.d1.x"], 2, 6),
    BackUp(incremental=True),
    load(("root.a.d2", range(4), 5)),
    write_rows("root.a.d1", (7,), 6),
    BackUp(incremental=False),
]


def tell(history: History, disk: CrashDisk, story: Story) -> int:
    """Run a story, and continue after failed backups; return the number of acknowledged backups."""
    acknowledged = 0
    for step in story:
        if isinstance(step, Operation):
            history.tell(step)
            continue
        disk.note = lambda count=acknowledged: count
        try:
            history.back_up(disk, incremental=step.incremental)
        except (StorageError, OSError) as error:
            if not disk.failed:
                raise Wrong(f"a backup on a sound disk: {error!r}") from error
            # The catalog of the failed backup may exist nevertheless. If so, `judge_backups` checks it like the catalog
            # of a complete backup.
        else:
            acknowledged += 1
        disk.note = lambda count=acknowledged: count
    return acknowledged


def judge_backups(history: History, disk: CrashDisk, acknowledged: int, begun: int, context: object) -> None:
    """Check a folder of backups after a crash.

    It must have the `acknowledged` backups, and may also have up to `begun` backups that were running at the crash.
    """
    repository = Repository(BACKUPS, disk)
    try:
        catalogs = repository.catalogs_if_any()
        problems = verify(repository).problems if catalogs else []
        if problems or not acknowledged <= len(catalogs) <= acknowledged + begun:
            raise Wrong(f"{context}: of {acknowledged} backups there are {len(catalogs)}; {problems}")
        history.compare(disk, catalogs, context)
        history.back_up(disk, incremental=True)
        problems = verify(repository).problems
        history.compare(disk, repository.catalogs(), f"{context}, and then one more")
    except StorageError as error:
        raise Wrong(f"{context}: {error}") from error
    left = [name for name in disk.list(BACKUPS) if name not in ("backups", "objects")]
    if problems or left:
        raise Wrong(f"{context}, and then one more: {problems}, {left}")


def judge_restore(
    history: History, source: CrashDisk, disk: CrashDisk, index: int, *, done: bool, context: str
) -> None:
    """Check the target of a restore after a crash. With `done`, the restore was acknowledged before the crash."""
    is_there = bool(disk.list(TARGET))
    if done and not is_there:
        raise Wrong(f"{context}: what was restored is not there")
    if not is_there:
        Restore(Repository(BACKUPS, source), TARGET, disk).run(AtIndex(index))
        if disk.exists(f"{TARGET}.restoring"):
            raise Wrong(f"{context}: what was begun is still there")
    history.judge(disk, index, context)


# ---------------------------------------------------------------------- crashes


def _different(disk: CrashDisk, figures: Figures, one_of: int, start: int) -> Iterator[tuple[Picture, str, CrashDisk]]:
    """Yield each distinct disk that a crash at one of the disk's pictures may leave.

    Only every `one_of`th picture is tried, beginning with number `start`, and only every `one_of`th crash at these
    pictures.
    """
    seen = set()
    for picture in [*disk.pictures[start::one_of], disk.picture()]:
        figures.kinds.add(picture.operation.split(" ")[0])
        for how, left in picture.crashes(BLOCK_BYTES, TEARS):
            figures.crashes += 1
            key = (left.fingerprint, picture.note)
            if figures.crashes % one_of == 0 and key not in seen:
                seen.add(key)
                figures.different += 1
                yield picture, how, left


def crash_backups(story: Story, *, one_of: int = 1, start: int = 0) -> Figures:
    """Crash at each operation on the folder of backups."""
    history, disk, figures = History(), CrashDisk(), Figures(operations=len(story))
    disk.keeps_pictures = True
    tell(history, disk, story)
    for picture, how, left in _different(disk, figures, one_of, start):
        assert isinstance(picture.note, int)
        judge_backups(history, left, picture.note, 1, f"after {picture.operation}, {how}")
    history.store.close()
    return figures


def crash_restores(story: Story, *, one_of: int = 1, start: int = 0) -> Figures:
    """Crash at each operation of two restores: one to a point in the middle of the history, one to its last point."""
    history, source, figures = History(), CrashDisk(), Figures(operations=len(story))
    tell(history, source, story)
    for index in _points(history, source):
        disk = CrashDisk()
        disk.note, disk.keeps_pictures = lambda: False, True
        Restore(Repository(BACKUPS, source), TARGET, disk).run(AtIndex(index))
        disk.note = lambda: True
        for picture, how, left in _different(disk, figures, one_of, start):
            context = f"after {picture.operation}, {how}"
            judge_restore(history, source, left, index, done=bool(picture.note), context=context)
    history.store.close()
    return figures


def _points(history: History, disk: CrashDisk) -> list[int]:
    """Return the index of the newest backup, and the index of an entry after the oldest backup if the log has any."""
    first, *others = Repository(BACKUPS, disk).catalogs()
    last = (others or [first])[-1]
    end = min((load for load in history.loads if load > first.reached), default=last.reached)
    return [*[index for index in history.states if first.reached < index < end][:1], last.reached]


# ---------------------------------------------------------------------- failures


def fail_backups(story: Story, number: int, *, failing: int = 1, step: int = 1, start: int = 0) -> Figures:
    """For every `step`th n, run the story on a disk that fails `failing` operations from the nth on.

    `number` is the errno of the failures.
    """
    figures = Figures(operations=len(story))
    for place in count(start, step):
        history, disk = History(), CrashDisk()
        disk.fails_at, disk.fails_for = (place, number), failing
        acknowledged = tell(history, disk, story)
        begun = sum(isinstance(step, BackUp) for step in story) - acknowledged
        context = f"{errno.errorcode[number]} in {disk.failed}"
        disk.fails_at = None
        left = [disk.after_power_cut(), disk]
        figures.failures += 1
        for found in left:
            figures.crashes += 1
            judge_backups(history, found, acknowledged, begun, context)
        history.store.close()
        if not disk.failed:
            return figures
    raise AssertionError


def fail_restores(story: Story, number: int, *, failing: int = 1, step: int = 1, start: int = 0) -> Figures:
    """For every `step`th n, restore to the last point on a disk that fails `failing` operations from the nth on.

    `number` is the errno of the failures.
    """
    history, source, figures = History(), CrashDisk(), Figures(operations=len(story))
    tell(history, source, story)
    index = _points(history, source)[-1]
    for place in count(start, step):
        disk, done = CrashDisk(), True
        disk.fails_at, disk.fails_for = (place, number), failing
        try:
            Restore(Repository(BACKUPS, source), TARGET, disk).run(AtIndex(index))
        except (StorageError, OSError) as error:
            if not disk.failed:
                raise Wrong(f"a restore on a sound disk: {error!r}") from error
            done = False
        context = f"{errno.errorcode[number]} in {disk.failed}"
        disk.fails_at = None
        figures.failures += 1
        for found in (disk.after_power_cut(), disk):
            figures.crashes += 1
            judge_restore(history, source, found, index, done=done, context=context)
        if not disk.failed:
            history.store.close()
            return figures
    raise AssertionError
