"""Pick the files of a partition to merge next.

Files are ordered as readers rank them: (rank, unsequence above sequence). A merged file takes one place in that order,
the highest of its sources. A set of sources must therefore be *closed*. First, no overlapping file outside the set may
be between them in rank:

    rank      1        2        3        4
    times     a---e    .        c-d      .          {1, 4} would lift a---e over c-d: add 3, or merge nothing
                                         k---m

Second, if one of the sources is a sequence file, no sequence file outside the set may overlap, for any device, the time
span of the set, so that the result is a sequence file, too. Every pick is closed.

    cross               late rows and the files that they overlap: if there are many late rows, or many files with them
    inner unsequence    neighbours by rank
    inner sequence      neighbours in time

Inner merges take at least `files_min` files, none of them larger than all others together, so that a point is rewritten
at most once per doubling of its file. `everything` requests every merge that reduces the number of files, or of
unsequence files, at any cost.

    rewriting           one file, if half of it is dead (`garbage_estimate`): this frees at least as many bytes as it
                        writes

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from enum import Enum

import msgspec

from saros_storage.scan.snapshot import DeviceSpan, FileSource, Rank, overlap

#: A cross merge is worthwhile if the bytes of its unsequence files times this factor are at least the bytes of all its
#: files. This bounds the cost per byte of late data.
_LATE_SHARE = 4
#: The factor for merges of at least `files_min` unsequence files: such a merge saves readers many overlaps.
_LATE_SHARE_OF_MANY = 128
#: A file is rewritten if at least this share of it is dead, and the dead part is at least this part of `file_bytes`.
_DEAD_SHARE = 0.5
_DEAD_PART = 1 / 1_024
#: A job reads at most this multiple of `file_bytes` ...
_JOB_FILES_BYTES = 4
#: ... and at most this many files, since each has pages in memory at the same time.
FILES_MAX = 64


class Kind(Enum):
    """The kind of a merge."""

    INNER_SEQUENCE = "inner sequence"
    INNER_UNSEQUENCE = "inner unsequence"
    CROSS = "cross"


class Limits(msgspec.Struct, frozen=True):
    """The minimum number of files of a merge, and the maximum size of a file made by inner merges."""

    files_min: int = 8
    file_bytes: int = 1 << 30

    @property
    def job_bytes_max(self) -> int:
        """Maximum number of bytes that one job may read."""
        return _JOB_FILES_BYTES * self.file_bytes


class Pick(msgspec.Struct, frozen=True):
    """Files to be merged, in order of rank."""

    kind: Kind
    files: tuple[FileSource, ...]

    @staticmethod
    def of(files: Iterable[FileSource]) -> Pick:
        """Build a pick of these files; its kind depends on which of them are sequence files."""
        ordered = tuple(sorted(files, key=_place))
        kinds = {file.sequence for file in ordered}
        if len(kinds) == 2:
            return Pick(Kind.CROSS, ordered)
        return Pick(Kind.INNER_SEQUENCE if True in kinds else Kind.INNER_UNSEQUENCE, ordered)

    @property
    def rank(self) -> Rank:
        """The rank of the merged file."""
        return self.files[-1].rank

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return _bytes(self.files)


def pick(
    files: Sequence[FileSource], limits: Limits, *, everything: bool = False, refused: Collection[str] = ()
) -> Pick | None:
    """Return the next merge, or None if nothing is to be merged.

    `refused` are the paths of files that are not merged. No merge changes the order of rank between such a file and an
    overlapping file.
    """
    if len(files) < 2:
        return None
    if everything and not refused and _bytes(files) <= limits.file_bytes and len(files) <= FILES_MAX:
        return Pick.of(files)
    picker = _Picker(files, limits, refused, everything=everything)
    found = picker.cross() or picker.inner(sequence=False) or picker.inner(sequence=True)
    return None if found is None else Pick.of(found)


def pick_dead(
    files: Sequence[FileSource], limits: Limits, share: Callable[[FileSource], float], *, refused: Collection[str] = ()
) -> Pick | None:
    """Return the file to rewrite next, which is the file with the most dead bytes, or None.

    `share` returns a file's dead share.
    """
    least = _DEAD_PART * limits.file_bytes
    found: tuple[float, FileSource] | None = None
    for file in files:
        if file.size < least or file.size > limits.job_bytes_max or file.path in refused:
            continue
        known = share(file)
        dead = known * file.size
        if known >= _DEAD_SHARE and dead >= least and (found is None or dead > found[0]):
            found = dead, file
    return None if found is None else Pick.of([found[1]])


def is_closed(members: Sequence[FileSource], files: Iterable[FileSource]) -> bool:
    """Return whether the members are a closed set among all `files` of the partition, so that they may be merged."""
    chosen = {file.path for file in members}
    return not _joining(members, [file for file in files if file.path not in chosen])


def hull(files: Iterable[FileSource]) -> dict[str, DeviceSpan]:
    """Return the span from the first to the last time of each device."""
    found: dict[str, DeviceSpan] = {}
    for file in files:
        for device, span in file.devices.items():
            known = found.get(device)
            if known is None:
                found[device] = span
            elif span.start < known.start or span.end > known.end:
                found[device] = DeviceSpan(min(known.start, span.start), max(known.end, span.end))
    return found


def _place(file: FileSource) -> tuple[Rank, bool]:
    return file.rank, not file.sequence


def _bytes(files: Iterable[FileSource]) -> int:
    return sum(file.size for file in files)


def _joining(members: Sequence[FileSource], others: Sequence[FileSource]) -> list[FileSource]:
    """Return the other files that must be added to the members so that the set can become closed."""
    top = max(map(_place, members))
    spans = hull(members) if any(file.sequence for file in members) else {}
    return [file for file in others if _passed(file, members, top) or (file.sequence and _within(file, spans))]


def _passed(file: FileSource, members: Sequence[FileSource], top: tuple[Rank, bool]) -> bool:
    """Return whether a member that `file` overlaps and outranks would outrank `file` at the place `top`."""
    place = _place(file)
    return place < top and any(_place(member) < place and overlap(member, file) for member in members)


def _within(file: FileSource, spans: dict[str, DeviceSpan]) -> bool:
    for device, span in file.devices.items():
        known = spans.get(device)
        if known is not None and span.start <= known.end and known.start <= span.end:
            return True
    return False


class _Picker:
    """The choice of one merge among the files of a partition."""

    def __init__(
        self, files: Sequence[FileSource], limits: Limits, refused: Collection[str], *, everything: bool
    ) -> None:
        self._files = sorted(files, key=_place)
        self._limits = limits
        self._refused = refused
        self._everything = everything

    def cross(self) -> list[FileSource] | None:
        """Return an unsequence file, all files that it overlaps, and other files if that is worthwhile; or None."""
        late = [file for file in self._files if not file.sequence and file.path not in self._refused]
        for first in late:
            found = self._closed(self._with_overlaps([first]))
            if found is None or not any(file.sequence for file in found):
                continue
            for other in late:
                if other not in found:
                    grown = self._closed([*found, *(f for f in self._with_overlaps([other]) if f not in found)])
                    if grown is not None and self._is_merge_worthwhile(grown):
                        found = grown
            if self._is_merge_worthwhile(found):
                return found
        return None

    def _with_overlaps(self, files: list[FileSource]) -> list[FileSource]:
        return [f for f in self._files if f in files or any(overlap(f, other) for other in files)]

    def _is_merge_worthwhile(self, files: Sequence[FileSource]) -> bool:
        late = [file for file in files if not file.sequence]
        if self._everything:
            return True
        share = _LATE_SHARE_OF_MANY if len(late) >= self._limits.files_min else _LATE_SHARE
        return _bytes(late) * share >= _bytes(files)

    def inner(self, *, sequence: bool) -> list[FileSource] | None:
        """Return the longest worthwhile run of neighbours, or None."""
        group = [file for file in self._files if file.sequence == sequence]
        if sequence:
            group.sort(key=_first_time)
        for run in self._runs(group):
            found = self._closed(run)
            if found is not None and self._worth(found):
                return found
        return None

    def _runs(self, group: Sequence[FileSource]) -> list[Sequence[FileSource]]:
        """Return, for each file, the longest worthwhile run that starts with this file; the longest run comes first."""
        runs = []
        for first in range(len(group)):
            total = stop = 0
            for last in range(first, min(len(group), first + FILES_MAX)):
                total += group[last].size
                if total > self._limits.file_bytes or group[last].path in self._refused:
                    break
                if self._worth(group[first : last + 1]):
                    stop = last + 1
            if stop:
                runs.append(group[first:stop])
        return sorted(runs, key=len, reverse=True)

    def _worth(self, files: Sequence[FileSource]) -> bool:
        """Return whether an inner merge leaves fewer files, and rewrites no large file just to add far smaller ones."""
        if self._everything:
            mixed = len({file.sequence for file in files}) == 2
            return len(files) >= 2 and (mixed or _bytes(files) <= self._limits.file_bytes)
        return len(files) >= self._limits.files_min and 2 * max(file.size for file in files) <= _bytes(files)

    def _closed(self, seed: Sequence[FileSource]) -> list[FileSource] | None:
        """Return the smallest closed set that contains the seed; None if it is too large or contains refused files."""
        members = list(seed)
        while True:
            if len(members) > FILES_MAX or _bytes(members) > self._limits.job_bytes_max:
                return None
            chosen = {file.path for file in members}
            if not chosen.isdisjoint(self._refused):
                return None
            joining = _joining(members, [file for file in self._files if file.path not in chosen])
            if not joining:
                return members
            members += joining


def _first_time(file: FileSource) -> int:
    return min((span.start for span in file.devices.values()), default=0)
