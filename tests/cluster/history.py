"""Histories of clients' calls and results, and checkers that decide whether a correct database can produce them.

    process 1   |--- write 7 ---|
    process 2         |------- write 8 ------|            a register is one point: (series, timestamp)
    process 3             |- read 8 -|  |- read 7 -|      not linearizable: 7 must precede 8, and 8 must precede 7

An operation takes effect at one moment between its call and its result. An operation with an unknown outcome (a
time-out, a lost connection) takes effect at any moment after its call, or never; a failed operation has no effect.
Moments are readings of one monotonic clock; an operation precedes another if its result is strictly before the other's
call.

    linearizable                 checks each register by the next two: the first without deletions, the second with
    linearizable_unique          zones (Gibbons, Korach: Testing Shared Memories, 1997): O(n log n), values unique
    linearizable_small           search with memory (Wing, Gong 1993; Lowe 2017): for short histories with deletions
    never_goes_back              no session reads a value, and later a value that strong operations prove to be older
    weak_reads_invent_nothing    no read returns a value whose write had not begun
    set_full                     no read of a whole set misses acknowledged elements (never seen, lost, stale)

Strong reads must be linearizable, and so must `mid` reads that are not flagged as stale. Every checker returns a list
of violations, each with the few operations that prove it. All functions are pure, so any thread may call them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import inf

#: A register, as (series, timestamp).
Register = tuple[str, int]
#: The number of operations that the search can check in a fraction of a second. If a register's point may be deleted,
#: the workload uses the register for fewer operations.
OPERATIONS_MAX = 200
#: The number of states, about a gigabyte, after which the search gives up.
STATES_MAX = 2_000_000
#: The maximum number of elements that a violation names; further elements are only counted.
_NAMED = 5


class Kind(Enum):
    """The kind of an operation."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"


class Outcome(Enum):
    """The outcome of an operation: it took effect, or will never take effect, or the outcome is unknown."""

    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of one client on one register."""

    process: int
    #: The operations of a session do not overlap. A client that reconnects begins a new session.
    session: str
    #: The number of the operation within the session.
    sequence: int
    invoked_ns: int
    #: None if there was no result.
    returned_ns: int | None
    kind: Kind
    register: Register
    #: The written or read value; None for a deletion, and for a read that found nothing.
    value: int | None
    #: "strong", "mid" or "weak"; always "strong" for writes.
    consistency: str
    outcome: Outcome
    #: True for a `mid` read that returned a replica's possibly stale data.
    stale: bool = False

    @property
    def ended_ns(self) -> float:
        """The last moment at which the operation may have taken effect."""
        return self.returned_ns if self.outcome is Outcome.OK and self.returned_ns is not None else inf

    @property
    def must_be_linearizable(self) -> bool:
        """True if the operation belongs to the linearizable history."""
        return (
            self.kind is not Kind.READ or self.consistency == "strong" or (self.consistency == "mid" and not self.stale)
        )


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a rule: where and why it occurred, and the operations or elements that prove it."""

    rule: str
    where: str
    why: str
    operations: tuple[Operation, ...] = ()
    elements: tuple[Hashable, ...] = ()

    def text(self) -> str:
        """Return a headline and the operations in the order of their calls.

        Times are in milliseconds after the first call.
        """
        lines = [f"{self.rule}: {self.where}: {self.why}"]
        lines += [f"    {element}" for element in self.elements[:_NAMED]]
        if len(self.elements) > _NAMED:
            lines.append(f"    ... {len(self.elements) - _NAMED} more")
        start = min((operation.invoked_ns for operation in self.operations), default=0)
        lines += [_line(operation, start) for operation in self.operations]
        return "\n".join(lines)


class Undecided(Exception):
    """A register's history is too long or too expensive to search.

    The workload must keep histories within the limits.
    """


def _line(operation: Operation, start_ns: int) -> str:
    began = (operation.invoked_ns - start_ns) / 1e6
    ended = "?" if operation.returned_ns is None else f"{(operation.returned_ns - start_ns) / 1e6:.3f}"
    value = "nothing" if operation.value is None else str(operation.value)
    what = operation.kind.value if operation.kind is Kind.DELETE else f"{operation.kind.value} {value}"
    how = operation.consistency + (", stale" if operation.stale else "")
    who = f"process {operation.process} session {operation.session} #{operation.sequence}"
    return f"    {began:12.3f} .. {ended:>12} ms  {what:<24} {operation.outcome.value:<8} {how:<7} {who}"


def where(register: Register) -> str:
    """Return a register's name for messages."""
    return f"{register[0]} at {register[1]}"


def linearizable(history: Iterable[Operation]) -> list[Violation]:
    """Check each register with the applicable method. Raises Undecided."""
    violations = []
    for operations in _by_register(history).values():
        deleted = any(operation.kind is Kind.DELETE for operation in operations)
        violations += (linearizable_small if deleted else linearizable_unique)(operations)
    return violations


def _by_register(history: Iterable[Operation]) -> dict[Register, list[Operation]]:
    found: defaultdict[Register, list[Operation]] = defaultdict(list)
    for operation in history:
        found[operation.register].append(operation)
    return found


# ---------------------------------------------------------------------------------------------- zones


class _Zone:
    """The operations of one value: its write and its reads, which are adjacent in every linearization.

    `end` is the earliest end of any operation of the zone, and `begin` is the latest beginning of any operation. If the
    `end` of one zone is before the `begin` of another zone, the first zone certainly precedes the second.
    """

    __slots__ = ("begin", "begins", "end", "ends", "read", "value", "write")

    def __init__(self, value: int | None) -> None:
        self.value = value
        self.write: Operation | None = None
        #: The read that returned first.
        self.read: Operation | None = None
        self.end: float = inf if value is not None else -inf  # a register begins empty (None)
        self.ends: Operation | None = None
        self.begin: float = -inf
        self.begins: Operation | None = None

    def add(self, operation: Operation) -> None:
        """Add an operation that took effect, or may have taken effect."""
        ended = operation.ended_ns
        if operation.kind is Kind.WRITE:
            if self.write is not None:
                raise ValueError(f"{where(operation.register)}: {operation.value} was written twice; values are unique")
            self.write = operation
        elif self.read is None or ended < self.read.ended_ns:
            self.read = operation
        if ended < self.end:
            self.end, self.ends = ended, operation
        if operation.invoked_ns > self.begin:
            self.begin, self.begins = operation.invoked_ns, operation

    @property
    def is_forward(self) -> bool:
        """True if the register certainly had the value from `end` to `begin`."""
        return self.end < self.begin

    @property
    def matters(self) -> bool:
        """True if the zone constrains other zones.

        A write whose value was never read may have had no effect, unless it was confirmed.
        """
        return self.read is not None or (self.write is not None and self.write.outcome is Outcome.OK)

    def precedence_proof(self, other: _Zone) -> list[Operation]:
        """Return two operations that prove that this zone precedes another: the first ended before the second began."""
        over = [o for o in (self.write, self.ends) if o is not None and o.ended_ns < other.begin]
        bound = self.end if not over else over[0].ended_ns
        begun = [o for o in (other.write, other.begins) if o is not None and bound < o.invoked_ns]
        return over[:1] + begun[:1]


def linearizable_unique(history: Iterable[Operation]) -> list[Violation]:
    """Check registers that are only written and read.

    Raises ValueError for a deletion, or for a value that was written twice.
    """
    violations = []
    for register, operations in _by_register(o for o in history if o.must_be_linearizable).items():
        zones = _zones(operations)
        failed = {o.value: o for o in operations if o.kind is Kind.WRITE and o.outcome is Outcome.FAIL}
        wrong = [found for zone in zones.values() if (found := _wrong_read(register, zone, failed)) is not None]
        violations += wrong or _crossing(register, zones)
    return violations


def _zones(operations: Iterable[Operation]) -> dict[int | None, _Zone]:
    zones: dict[int | None, _Zone] = {}
    for operation in operations:
        if operation.kind is Kind.DELETE:
            raise ValueError(f"{where(operation.register)} has deletions: zones cannot tell them apart")
        if operation.outcome is Outcome.FAIL or (operation.kind is Kind.READ and operation.outcome is not Outcome.OK):
            continue
        zone = zones.get(operation.value)
        if zone is None:
            zone = zones[operation.value] = _Zone(operation.value)
        zone.add(operation)
    return zones


def _wrong_read(register: Register, zone: _Zone, failed: Mapping[int | None, Operation]) -> Violation | None:
    """Return a violation if some read returned a value that was never written, or whose write began after the read."""
    if zone.read is None or zone.value is None:
        return None
    if zone.write is None:
        refused = failed.get(zone.value)
        why = f"{zone.value} was read, and " + ("its write had failed" if refused else "nobody wrote it")
        return Violation("invented value", where(register), why, _ordered([zone.read, *([refused] if refused else [])]))
    if zone.read.ended_ns < zone.write.invoked_ns:
        why = f"{zone.value} was read before its write began"
        return Violation("invented value", where(register), why, _ordered([zone.read, zone.write]))
    return None


def _crossing(register: Register, zones: Mapping[int | None, _Zone]) -> list[Violation]:
    """Return a violation for each pair of zones in which each zone must precede the other.

    Every cycle of zones contains such a pair.
    """
    matter = [zone for zone in zones.values() if zone.matters]
    forward = sorted((zone for zone in matter if zone.is_forward), key=lambda zone: (zone.end, zone.begin))
    crossing = []
    reach = None  # the earlier forward zone with the latest `begin`
    for zone in forward:
        if reach is not None and zone.end < reach.begin:
            crossing.append((reach, zone))
        if reach is None or zone.begin > reach.begin:
            reach = zone
    if not crossing:  # forward zones do not overlap, so at most one contains a given moment
        ends = [zone.end for zone in forward]
        for zone in matter:
            at = bisect_left(ends, zone.begin) - 1
            if not zone.is_forward and at >= 0 and zone.end < forward[at].begin:
                crossing.append((forward[at], zone))
    return [_crossed(register, first, second) for first, second in crossing]


def _crossed(register: Register, first: _Zone, second: _Zone) -> Violation:
    names = ["nothing" if zone.value is None else str(zone.value) for zone in (first, second)]
    why = f"{names[0]} was there before {names[1]}, and after it"
    proof = first.precedence_proof(second) + second.precedence_proof(first)
    writes = [zone.write for zone in (first, second) if zone.write is not None]
    return Violation("not linearizable", where(register), why, _ordered(proof + writes))


def _ordered(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    return tuple(sorted(set(operations), key=lambda o: (o.invoked_ns, o.process, o.sequence)))


# ---------------------------------------------------------------------------------------------- search


def linearizable_small(history: Iterable[Operation]) -> list[Violation]:
    """Check registers that are also deleted or get equal values.

    A register has at most OPERATIONS_MAX operations. Raises Undecided.
    """
    violations = []
    for register, operations in _by_register(o for o in history if o.must_be_linearizable).items():
        effective = _effective(operations)
        if len(effective) > OPERATIONS_MAX:
            raise Undecided(f"{where(register)} has {len(effective)} operations, more than {OPERATIONS_MAX}")
        if not _Search(effective).finds_an_order():
            slice_ = _shrunk(effective)
            why = f"no order of these operations explains what was read ({len(effective)} operations in all)"
            violations.append(Violation("not linearizable", where(register), why, _ordered(slice_)))
    return violations


def _effective(operations: Iterable[Operation]) -> list[Operation]:
    """Drop operations that had no effect, and unconfirmed operations whose effect was never observed."""
    operations = list(operations)
    seen = {o.value for o in operations if o.kind is Kind.READ and o.outcome is Outcome.OK}
    return [o for o in operations if o.outcome is Outcome.OK or (_may_matter(o) and o.value in seen)]


def _may_matter(operation: Operation) -> bool:
    return operation.outcome is Outcome.UNKNOWN and operation.kind is not Kind.READ


class _Search:
    """A search for a valid order: in each state, an operation may come next if no other pending operation precedes it.

    A state consists of the set of done operations (as bits, in the order of calls) and the register's value. A pending
    read that returned that value is done at once, since it changes nothing. Unconfirmed deletions differ only in the
    times of their calls, so only the first one is tried.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._operations = sorted(operations, key=lambda o: (o.invoked_ns, o.ended_ns))
        self._must = sum(1 << i for i, o in enumerate(self._operations) if o.outcome is Outcome.OK)
        self._called = [o.invoked_ns for o in self._operations]
        self._ended = [o.ended_ns for o in self._operations]
        self._is_read = [o.kind is Kind.READ for o in self._operations]
        self._values = [o.value for o in self._operations]

    def finds_an_order(self) -> bool:
        """Return whether there is a valid order. Raises Undecided."""
        seen: set[tuple[int, int | None]] = set()
        states: list[tuple[int, int | None]] = [(0, None)]
        while states:
            done, holds = states.pop()
            done, changes = self._read_all(done, holds)
            if done & self._must == self._must:
                return True
            if (done, holds) in seen:
                continue
            seen.add((done, holds))
            if len(seen) > STATES_MAX:
                raise Undecided(f"{where(self._operations[0].register)}: more than {STATES_MAX} states")
            states += [(done | 1 << i, self._values[i]) for i in reversed(changes)]
        return False

    def _read_all(self, done: int, holds: int | None) -> tuple[int, list[int]]:
        """Return `done` with all reads of the current value, and the writes and deletions that may come next."""
        while True:
            reads, changes = 0, []
            loose = False
            for i in self._next(done):
                if not self._is_read[i]:
                    is_loose = self._values[i] is None and self._ended[i] == inf
                    if not (is_loose and loose):
                        changes.append(i)
                    loose = loose or is_loose
                elif self._values[i] == holds:
                    reads |= 1 << i
            if not reads:
                return done, changes
            done |= reads

    def _next(self, done: int) -> list[int]:
        """Return the pending operations that no other pending operation precedes."""
        found = []
        limit = inf
        first = (~done & (done + 1)).bit_length() - 1
        for i in range(first, len(self._called)):
            if self._called[i] > limit:
                break
            if not done >> i & 1:
                found.append(i)
                limit = min(limit, self._ended[i])
        return found


def _shrunk(operations: list[Operation]) -> list[Operation]:
    """Return a small subset of the operations that has no valid order, either.

    First take the shortest prefix of the history that has no valid order. Then try to remove all operations of one
    value after another, and then single reads. Each part that is made in this way from a history with a valid order has
    a valid order, too; a part without a valid order therefore proves the violation.
    """
    moments = sorted({o.returned_ns for o in operations if o.returned_ns is not None and o.outcome is Outcome.OK})
    at = bisect_left(moments, True, key=lambda moment: not _has_order(_until(operations, moment)))
    kept = _until(operations, moments[at])
    for value in {o.value for o in kept}:
        kept = _without(kept, lambda o, value=value: o.value == value)
    for operation in [o for o in kept if o.kind is Kind.READ]:
        kept = _without(kept, lambda o, operation=operation: o is operation)
    whole = {(o.process, o.session, o.sequence): o for o in operations}
    return [whole[o.process, o.session, o.sequence] for o in kept]


def _has_order(operations: Sequence[Operation]) -> bool:
    return _Search(operations).finds_an_order()


def _until(operations: Iterable[Operation], moment_ns: int) -> list[Operation]:
    """Return the history up to a moment. Writes and deletions in progress at this moment have an unknown outcome."""
    found = []
    for o in operations:
        if o.ended_ns <= moment_ns:
            found.append(o)
        elif o.invoked_ns <= moment_ns and o.kind is not Kind.READ:
            found.append(replace(o, outcome=Outcome.UNKNOWN))
    return _effective(found)


def _without(operations: list[Operation], drops: Callable[[Operation], bool]) -> list[Operation]:
    """Remove the operations that `drops` selects if the remaining ones have no valid order; otherwise keep all."""
    fewer = [o for o in operations if not drops(o)]
    return operations if not fewer or _has_order(fewer) else fewer


# ---------------------------------------------------------------------------------------------- sessions, inventions


def never_goes_back(history: Iterable[Operation]) -> list[Violation]:
    """Check that no session reads a value after a newer one. Raises ValueError if a value was written twice.

    A value is newer than another if the zone of its strong operations certainly comes after the other value's zone.
    Reads of an empty register count only if nothing is deleted, since otherwise a deletion may be the newest operation.
    Reads flagged stale do not count, since any replica may have answered them.
    """
    violations = []
    for register, operations in _by_register(history).items():
        deletes = any(o.kind is Kind.DELETE for o in operations)
        strong = [o for o in operations if o.must_be_linearizable and (not deletes or o.value is not None)]
        zones = _zones(strong)
        sessions: defaultdict[str, list[Operation]] = defaultdict(list)
        for o in operations:
            if o.kind is Kind.READ and o.outcome is Outcome.OK and not (o.stale or (deletes and o.value is None)):
                sessions[o.session].append(o)
        for reads in sessions.values():
            pair = _going_back(sorted(reads, key=lambda o: o.sequence), zones)
            if pair is not None:
                writes = [zones[o.value].write for o in pair if o.value in zones]
                proof = [*pair, *(write for write in writes if write is not None)]
                why = f"a session read {pair[0].value}, and then {pair[1].value}, which is older"
                violations.append(Violation("session went back", where(register), why, _ordered(proof)))
    return violations


def _going_back(reads: Sequence[Operation], zones: Mapping[int | None, _Zone]) -> tuple[Operation, Operation] | None:
    """Find the first read that returns an older value than an earlier read; return the two reads."""
    newest: list[tuple[float, Operation]] = []  # a read of each of the two latest values
    for read in reads:
        zone = zones.get(read.value) or _Zone(read.value)
        for begin, before in newest:
            if before.value != read.value and zone.end < begin:
                return before, read
        if all(before.value != read.value for _, before in newest):
            newest = sorted([*newest, (zone.begin, read)], key=lambda pair: -pair[0])[:2]
    return None


def weak_reads_invent_nothing(history: Iterable[Operation]) -> list[Violation]:
    """Check that no read, at any consistency, returns a value whose write failed or began after the read."""
    violations = []
    for register, operations in _by_register(history).items():
        writes = {o.value: o for o in operations if o.kind is Kind.WRITE}
        for read in operations:
            if read.kind is not Kind.READ or read.outcome is not Outcome.OK or read.value is None:
                continue
            write = writes.get(read.value)
            if write is None:
                why, proof = f"{read.value} was read, and nobody wrote it", [read]
            elif write.outcome is Outcome.FAIL:
                why, proof = f"{read.value} was read, and its write had failed", [write, read]
            elif read.ended_ns < write.invoked_ns:
                why, proof = f"{read.value} was read before its write began", [write, read]
            else:
                continue
            violations.append(Violation("invented value", where(register), why, _ordered(proof)))
    return violations


# ---------------------------------------------------------------------------------------------- sets


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of a read of the whole set."""

    invoked_ns: int
    returned_ns: int
    elements: Collection[Hashable]
    #: The node that answered.
    by: str = ""


def set_full(
    acknowledged: Mapping[Hashable, int], observed: Iterable[Observation], *, stale_ns_max: int = 0
) -> list[Violation]:
    """Check that each read of a set returns all elements acknowledged before the read (Jepsen's set-full).

    `acknowledged` has the moment of each element's acknowledgement. An element is known from that moment on, or from
    the end of the first read that returned it, whichever is earlier. If a later read misses a known element, the
    element is stale if a subsequent read returns it, never seen if no read returns it, and otherwise lost. A stale
    element is a violation only if the read that misses it began more than `stale_ns_max` after it became known.
    """
    reads = sorted(observed, key=lambda read: read.invoked_ns)
    known: dict[Hashable, int] = dict(acknowledged)
    last_seen: dict[Hashable, int] = {}
    for number, read in enumerate(reads):
        for element in read.elements:
            known[element] = min(known.get(element, read.returned_ns), read.returned_ns)
            last_seen[element] = number
    found: dict[tuple[str, str], list[Hashable]] = defaultdict(list)
    begins = [read.invoked_ns for read in reads]
    for element, moment in known.items():
        missed = [n for n in range(bisect_right(begins, moment), len(reads)) if element not in reads[n].elements]
        if not missed:
            continue
        if element not in last_seen:
            found["never seen", reads[missed[-1]].by].append(element)
        elif missed[-1] > last_seen[element]:
            found["lost", reads[missed[-1]].by].append(element)
        elif reads[missed[-1]].invoked_ns - moment > stale_ns_max:
            found["stale", reads[missed[-1]].by].append(element)
    return [_missing(rule, by, elements) for (rule, by), elements in sorted(found.items())]


def _missing(rule: str, by: str, elements: Sequence[Hashable]) -> Violation:
    whys = {
        "never seen": "acknowledged, and in no read",
        "lost": "known, and missing in the last read",
        "stale": "known, missing in a read, and there again later",
    }
    ordered = tuple(sorted(elements, key=repr))
    return Violation(rule, by or "all reads", f"{len(elements)} elements were {whys[rule]}", elements=ordered)
