"""The campaign's clients and verdict, with a database in memory: they find violations only if a fault is planted."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from cluster.campaign_clients import POINTS, Database, RegisterClient, ReplicaReader, Writer
from cluster.campaign_report import LEDGER_SUFFIX, Evidence, Found, Whole, check_registers, compare, diverged
from cluster.history import Kind, Outcome
from cluster.ledger import Ledger

from saros.errors import database_error

STEPS = 1_200
_SELECT = re.compile(r"select (\w+) from (\S+) where time = (\d+)")
_DELETE = re.compile(r"delete from (\S+) where time = (\d+)")
_INSERT = re.compile(r"insert into (\S+)\(time, v\) values \((\d+), (\d+)\)")


class Rows:
    """The answer of a fake database."""

    stale = False

    def __init__(self, rows: list[tuple[int, int]]) -> None:
        self._rows = rows

    def fetchall(self) -> list[tuple[int, int]]:
        return self._rows


class Memory:
    """A correct database with points by series and time. Subclasses with faults override its methods."""

    def __init__(self) -> None:
        self.points: dict[tuple[str, int], int] = {}
        self.calls = 0

    def write(self, series: str, times: Sequence[int], values: Sequence[int]) -> None:
        self.points |= {(series, time): value for time, value in zip(times, values, strict=True)}

    def delete(self, series: str, time: int) -> None:
        self.points.pop((series, time), None)

    def read(self, series: str, time: int) -> int | None:
        return self.points.get((series, time))

    def found(self, series: str) -> Found:
        rows = sorted((time, value) for (name, time), value in self.points.items() if name == series)
        array = np.array(rows, np.int64).reshape(-1, 2)
        return Found(array[:, 0], array[:, 1])

    # methods that clients call

    def connect(self) -> Database:
        return self

    def insert(self, device: str, times: Sequence[int], columns: dict[str, Sequence[int]]) -> int:
        self.calls += 1
        self.write(f"{device}.v", times, columns["v"])
        return len(times)

    def execute(self, statement: str) -> Rows:
        self.calls += 1
        if match := _SELECT.fullmatch(statement):
            value = self.read(f"{match[2]}.{match[1]}", int(match[3]))
            return Rows([] if value is None else [(int(match[3]), value)])
        if match := _INSERT.fullmatch(statement):
            self.write(f"{match[1]}.v", [int(match[2])], [int(match[3])])
        else:
            match = _DELETE.fullmatch(statement)
            assert match is not None, statement
            self.delete(match[1], int(match[2]))
        return Rows([])

    def close(self) -> None:
        """Do nothing."""


class DropsAcknowledgedWrites(Memory):
    def write(self, series: str, times: Sequence[int], values: Sequence[int]) -> None:
        if self.calls % 50 != 0:
            super().write(series, times, values)


class ReadsWhatWasBefore(Memory):
    def __init__(self) -> None:
        super().__init__()
        self.before: dict[tuple[str, int], int | None] = {}

    def write(self, series: str, times: Sequence[int], values: Sequence[int]) -> None:
        self.before |= {(series, time): self.points.get((series, time)) for time in times}
        super().write(series, times, values)

    def read(self, series: str, time: int) -> int | None:
        return self.before.get((series, time)) if self.calls % 20 == 0 else super().read(series, time)


class AppliesRetriesAgain(Memory):
    """A wrong database: every 30th write is applied a second time, a few calls later."""

    def __init__(self) -> None:
        super().__init__()
        self.late: tuple[int, str, Sequence[int], Sequence[int]] | None = None

    def write(self, series: str, times: Sequence[int], values: Sequence[int]) -> None:
        super().write(series, times, values)
        if self.late is None and self.calls % 30 == 0:
            self.late = (self.calls + 60, series, times, values)
        elif self.late is not None and self.calls > self.late[0]:
            super().write(*self.late[1:])
            self.late = None


class ForgetsDeletions(Memory):
    def delete(self, series: str, time: int) -> None:
        if self.calls % 3:
            super().delete(series, time)


class DoesNotKnow(Memory):
    """A correct database: every seventh write has an unknown outcome, and half of these writes take effect."""

    def write(self, series: str, times: Sequence[int], values: Sequence[int]) -> None:
        if self.calls % 7:
            super().write(series, times, values)
            return
        if self.calls % 2:
            super().write(series, times, values)
        raise database_error("lost", 2018)


class TearsBatches(Memory):
    def write(self, series: str, times: Sequence[int], values: Sequence[int]) -> None:
        if self.calls % 40:
            super().write(series, times, values)
            return
        super().write(series, times[: POINTS // 2], values[: POINTS // 2])
        raise database_error("lost", 2018)


class DoesWhatItRefuses(Memory):
    def write(self, series: str, times: Sequence[int], values: Sequence[int]) -> None:
        super().write(series, times, values)
        if self.calls % 40 == 0:
            raise database_error("no leader", 2017)


class HasABug(Memory):
    def write(self, series: str, times: Sequence[int], values: Sequence[int]) -> None:
        if self.calls % 100 == 0:
            raise database_error("assertion failed", 2001)
        super().write(series, times, values)


def judged(memory: Memory, folder: Path) -> set[str]:
    """Run two writers, two clients of registers and a reader of a replica; return the rules that were broken."""
    ticks, rng = count(0, 1_000_000), random.Random(5)

    def clock() -> int:
        return next(ticks)

    ledgers = [Ledger(folder / f"{name}{LEDGER_SUFFIX}") for name in ("writers", "registers")]
    writers, registers = ledgers
    wrote = lambda lane, invoked_ns: None  # noqa: E731 (a function without effect)
    clients: list[Writer | RegisterClient | ReplicaReader] = [
        *(Writer(i, memory.connect, writers, clock, rng, 2, wrote) for i in (1, 2)),
        *(RegisterClient(i, memory.connect, registers, clock, rng, consistency="strong", clients=2) for i in (3, 4)),
        ReplicaReader(5, [memory.connect], registers, clock, rng),
    ]
    evidence, whole = Evidence(folder), Whole()
    violations = []
    for step in range(STEPS):
        rng.choice(clients).step()
        if step % 400 == 399:
            evidence.refresh()
            points = evidence.points()
            began = clock()
            found = {series: memory.found(series) for series in points}
            whole.observe(points, found, began, clock())
            for series, asked in points.items():
                violations += compare(series, asked, found[series], "a replica")
    for ledger in ledgers:
        ledger.close()
    evidence.refresh()
    violations += [*whole.check(evidence.batches), *check_registers(evidence.operations), *evidence.bugs()]
    assert all(violation.text() for violation in violations)
    return {violation.rule for violation in violations}


@pytest.fixture(autouse=True)
def quick_ledgers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.mark.parametrize("make", [Memory, DoesNotKnow])
def test_a_correct_database_is_acquitted(make: Callable[[], Memory], tmp_path: Path) -> None:
    assert set() == judged(make(), tmp_path)


@pytest.mark.parametrize(
    ("make", "rules"),
    [
        (DropsAcknowledgedWrites, {"lost", "not linearizable", "never seen"}),
        (ReadsWhatWasBefore, {"not linearizable", "session went back"}),
        (AppliesRetriesAgain, {"not linearizable"}),
        (ForgetsDeletions, {"not linearizable"}),
        (TearsBatches, {"torn"}),
        (DoesWhatItRefuses, {"extra", "invented value"}),
        (HasABug, {"unexpected error"}),
    ],
)
def test_a_planted_fault_is_found(make: Callable[[], Memory], rules: set[str], tmp_path: Path) -> None:
    assert rules <= judged(make(), tmp_path)


def test_what_a_replica_has_more_or_otherwise_is_found(tmp_path: Path) -> None:
    memory = Memory()
    assert set() == judged(memory, tmp_path)
    evidence = Evidence(tmp_path)
    evidence.refresh()
    series, points = next(iter(evidence.points().items()))
    found = memory.found(series)
    assert [] == compare(series, points, found, "node 1")
    other = found.values.copy()
    other[3] += 1
    more = Found(np.append(found.times, 1 << 50), np.append(found.values, 7))
    for changed, rule in (
        (Found(found.times, other), "wrong"),
        (more, "extra"),
        (Found(found.times[1:], found.values[1:]), "lost"),
        (Found(found.times[::-1], found.values[::-1]), "disorder"),
    ):
        (violation,) = compare(series, points, changed, "node 1")
        assert rule == violation.rule
        (violation,) = diverged({"node 1": {series: found}, "node 2": {series: changed}})
        assert "diverged" == violation.rule
    assert [] == diverged({"node 1": {series: found}, "node 2": {series: found}})


def test_clients_touch_registers_with_deletions_only_so_often(tmp_path: Path) -> None:
    ledger, now = Ledger(tmp_path / f"r{LEDGER_SUFFIX}"), count(0, 100)
    client = RegisterClient(
        1, Memory().connect, ledger, lambda: next(now), random.Random(1), consistency="strong", clients=20
    )
    for _ in range(3_000):
        client.step()
    ledger.close()
    evidence = Evidence(tmp_path)
    evidence.refresh()
    deleted = {o.register for o in evidence.operations if o.kind is Kind.DELETE}
    assert deleted
    assert all(sum(o.register == register for o in evidence.operations) <= 10 for register in deleted)
    assert all(o.outcome is Outcome.OK for o in evidence.operations)
