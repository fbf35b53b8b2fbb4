"""The choice of the next merge: scripts in testdata/compaction_picker.txt, and rules for random files.

`--rewrite` updates the expected answers of the scripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saros_storage.compaction.picker import FILES_MAX, Limits, hull, is_closed, pick, pick_dead
from saros_storage.folder.lazy_file import LazyFile
from saros_storage.io.disk import LocalDisk
from saros_storage.scan.snapshot import DeviceSpan, FileSource, Rank, overlap

SCRIPT = Path(__file__).parent / "testdata" / "compaction_picker.txt"


def file(kind: str, version: int, size: int, spans: dict[str, tuple[int, int]]) -> FileSource:
    name = f"{version}{kind[0]}"
    devices = {device: DeviceSpan(*span) for device, span in spans.items()}
    access = LazyFile(name, LocalDisk(), lambda _path, _error: None)
    return FileSource(Rank(0, version), kind == "seq", name, size, devices, access)


def parsed(line: str) -> FileSource:
    """Parse the line `seq VERSION SIZE DEVICE:FIRST-LAST ...`."""
    kind, version, size, *words = line.split()
    spans = {}
    for word in words:
        device, _, times = word.partition(":")
        first, _, last = times.partition("-")
        spans[device] = (int(first), int(last))
    return file(kind, int(version), int(size), spans)


class Table:
    """The files of a partition; each story begins without files."""

    def __init__(self) -> None:
        self.files: list[FileSource] = []
        self.limits = Limits()
        self.dead: dict[str, float] = {}

    def run(self, line: str) -> list[str]:
        """Run a line of a story, and return its answer, which may be empty."""
        verb, *words = line.split()
        if verb == "limits":
            self.limits = Limits(int(words[0]), int(words[1]))
            return []
        if verb in ("seq", "unseq"):
            self.files.append(parsed(line))
            return []
        if verb == "dead":
            self.dead[words[0]] = float(words[1])
            return []
        assert verb in ("pick", "repeat", "rewrite")
        if verb == "rewrite":
            chosen = pick_dead(self.files, self.limits, self._share, refused=words[1:])
            return ["nothing" if chosen is None else " ".join(f.path for f in chosen.files)]
        everything = "everything" in words
        refused = words[words.index("refusing") + 1 :] if "refusing" in words else []
        answers = []
        for _ in range(20 if verb == "repeat" else 1):
            found = pick(self.files, self.limits, everything=everything, refused=refused)
            answers.append(
                "nothing" if found is None else f"{found.kind.value}: {' '.join(f.path for f in found.files)}"
            )
            if found is None:
                break
            if verb == "repeat":
                spans = {device: (span.start, span.end) for device, span in hull(found.files).items()}
                kind = "seq" if any(f.sequence for f in found.files) else "unseq"
                self.files = [f for f in self.files if f not in found.files]
                self.files.append(file(kind, found.rank.version, found.bytes, spans))
        return answers

    def _share(self, file: FileSource) -> float:
        return self.dead.get(file.path, 0.0)


def stories(text: str) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Return (lines as written, commands, expected answers) of each story."""
    for part in text.strip("\n").split("\n\n"):
        lines = part.splitlines()
        if "----" not in lines:
            yield lines, [], []
            continue
        middle = lines.index("----")
        yield lines, [line for line in lines[:middle] if not line.startswith("#")], lines[middle + 1 :]


def answers(commands: list[str]) -> list[str]:
    table = Table()
    return [answer for command in commands for answer in table.run(command)]


def test_stories(request: pytest.FixtureRequest) -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    if request.config.getoption("--rewrite"):
        parts = []
        for lines, commands, _ in stories(text):
            head = lines[: lines.index("----") + 1] if commands else lines
            parts.append("\n".join([*head, *answers(commands)]))
        SCRIPT.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
        return
    for lines, commands, expected in stories(text):
        assert expected == answers(commands), lines[0]


def test_a_job_has_as_many_files_as_it_may_have_and_no_more() -> None:
    files = [file("seq", number, 1, {"d": (number, number)}) for number in range(FILES_MAX + 1)]
    for count in (FILES_MAX, FILES_MAX + 1):
        for limits in (Limits(2, 10 * FILES_MAX), Limits(2, 10 * FILES_MAX // 4)):
            found = pick(files[:count], limits, everything=True)
            assert found is not None
            assert FILES_MAX == len(found.files)
    mixed = [*files[: FILES_MAX - 1], file("unseq", FILES_MAX, 1, {"e": (0, 9)})]
    found = pick(mixed, Limits(2, 10 * FILES_MAX), everything=True)
    assert found is not None
    assert mixed == list(found.files)
    late = file("unseq", FILES_MAX, FILES_MAX, {"d": (0, FILES_MAX)})
    found = pick([*files[: FILES_MAX - 1], late], Limits(2, FILES_MAX - 1))
    assert found is not None
    assert FILES_MAX == len(found.files)
    assert pick([*files[:FILES_MAX], late], Limits(99, FILES_MAX)) is None


def test_members_are_not_closed_without_a_sequence_file_that_shares_one_time_with_them() -> None:
    late, before, after = (
        file("seq", version, 1, {"d": span}) for version, span in enumerate([(10, 20), (5, 10), (20, 25)], 1)
    )
    assert not is_closed([late], [late, before])
    assert not is_closed([late], [late, after])
    assert is_closed([late], [late, file("seq", 4, 1, {"d": (5, 9)}), file("seq", 5, 1, {"d": (21, 30)})])
    assert is_closed([late], [late, file("seq", 4, 1, {"e": (10, 20)})])


@st.composite
def partitions(draw: st.DrawFn) -> list[FileSource]:
    """Draw files like those of flushes: rows follow the device's last row, but unsequence files have late rows."""
    last = {"a": 0, "b": 0}
    files = []
    for version in range(1, draw(st.integers(1, 14)) + 1):
        size = draw(st.integers(1, 60))
        ahead, late = {}, {}
        for device in last:
            if draw(st.booleans()):
                start = last[device] + draw(st.integers(1, 9))
                ahead[device] = (start, start + draw(st.integers(0, 9)))
            if last[device] and draw(st.integers(0, 3)) == 0:
                start = draw(st.integers(0, last[device]))
                late[device] = (start, draw(st.integers(start, last[device])))
        last |= {device: span[1] for device, span in ahead.items()}
        files += [file("seq", version, size, ahead)] if ahead else []
        files += [file("unseq", version, draw(st.integers(1, 60)), late)] if late else []
    return files


@given(partitions(), st.booleans(), st.integers(2, 5), st.integers(50, 400))
def test_no_rank_is_passed_and_sequence_files_stay_apart(
    files: list[FileSource], everything: bool, least: int, size: int
) -> None:
    """Replace picked files by the result of their merge until nothing is picked; fewer than 40 merges may be needed."""
    rounds = 0
    while (found := pick(files, Limits(least, size), everything=everything)) is not None:
        rounds += 1
        assert rounds < 40
        assert len(found.files) >= 2
        assert is_closed(found.files, files)
        assert max(f.rank for f in found.files) == found.rank
        left = [f for f in files if f not in found.files]
        for member in found.files:
            for other in left:
                if overlap(member, other):
                    above = (other.rank, not other.sequence) > (member.rank, not member.sequence)
                    top = found.files[-1]
                    assert above == ((other.rank, not other.sequence) > (top.rank, not top.sequence))
        spans = {device: (span.start, span.end) for device, span in hull(found.files).items()}
        sequence = any(f.sequence for f in found.files)
        name = f"{found.rank.version}{'s' if sequence else 'u'}{rounds}"
        merged = FileSource(
            found.rank,
            sequence,
            name,
            found.bytes,
            {device: DeviceSpan(*span) for device, span in spans.items()},
            found.files[0].access,
        )
        files = [*left, merged]
        ahead = [f for f in files if f.sequence]
        assert not any(overlap(a, b) for i, a in enumerate(ahead) for b in ahead[:i])
