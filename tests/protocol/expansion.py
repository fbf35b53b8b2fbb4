"""A model of the move of two slots between groups during writes and reads (`docs/protocol/expansion.md`).

    old group    nodes 1, 2        its log: writes, FENCE          slot a: one point, written and deleted
    new group    nodes 4, 1        its log: OPEN, writes           slot b: empty, moves with a
    meta group     PREPARE, GROUP_READY, GO, FENCED, LOADED(slot, node), DONE(slot), CHANGE_DONE; or ABORT, GIVE_UP

Raft's guarantees are assumed: a group's log is one list, and each member of the old group has applied a prefix of it. A
write is acknowledged when it is in the log, and a strong read at a member waits until that member has applied the whole
log. The driver of the change is stateless: once the preconditions of a step hold, the step may happen at any time, and
more than once.

Faults: a node crashes once (it loses its staged data and its leases, and replays its log), or node 4 is permanently
lost and given up. The coordinator may learn of changes arbitrarily late.

One client writes, and another client reads. `Scope` limits the number of events. `wrong` names a rule that the protocol
omits, to show that the rule is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from protocol.explorer import Broken

#: An entry of a group's log is a written value (0: a deletion), or one of these two entries.
FENCE, OPEN = "FENCE", "OPEN"
DELETION = 0
OLD_MEMBERS = (1, 2)
JOINER = 4
SLOTS = ("a", "b")
Entry = int | str
Log = tuple[Entry, ...]
Values = tuple[int, ...]


class Phase(IntEnum):
    """The stage of the change: the last entry about the change in the meta group's log."""

    PREPARE = 0
    GROUP_READY = 1
    GO = 2
    #: The entry with the position of the fence; from this entry on, the table assigns the slots to the new group.
    FENCED = 3
    CHANGE_DONE = 4
    ABORT = 5


class Table(IntEnum):
    """The coordinator's knowledge of slot a."""

    OLD = 0
    MIGRATING = 1
    NEW = 2


class Copy(NamedTuple):
    """A new member's copy of slot a's earlier data."""

    #: The values copied from the old group; while they are only staged, they are invisible, and a crash loses them.
    values: Values = ()
    #: 0: no data, 1: some files are staged, 2: all files are staged, 3: the data is durable, installed by one rename.
    state: int = 0


class Read(NamedTuple):
    """A read of slot a in progress."""

    #: The length of the history when the read began; a result with only older values is stale.
    since: int
    #: The member of the old group that pins the data until the read is over; None if no member pins it yet.
    pinned: int | None
    values: Values = ()
    #: The values read from the new group, if it was read first.
    newer: Values | None = None


class State(NamedTuple):
    """A state of the model."""

    phase: Phase = Phase.PREPARE
    #: For each slot, True if its DONE is in the meta group's log.
    done: tuple[bool, bool] = (False, False)
    table: Table = Table.OLD
    old: Log = ()
    #: The number of entries of the old group's log that its members have applied.
    applied: tuple[int, int] = (0, 0)
    #: For each member of the old group, True if it has executed DROP(a).
    dropped: tuple[bool, bool] = (False, False)
    new: Log = ()
    members: tuple[int, ...] = (JOINER, 1)
    copies: tuple[Copy, ...] = (Copy(), Copy())
    #: LOADED(slot, node) entries; repeated entries are kept only with the mistake M-E, which counts entries.
    loaded: tuple[tuple[str, int], ...] = ()
    #: Pairs (puller, source); the source keeps its data for the puller.
    leases: tuple[tuple[int, int], ...] = ()
    read: Read | None = None
    #: All acknowledged writes, in order.
    history: Values = ()
    crashed: bool = False
    #: True if node 4 is permanently lost.
    is_lost: bool = False

    @property
    def fence(self) -> int | None:
        """The position after the FENCE, if any; a second FENCE has no effect."""
        return self.old.index(FENCE) + 1 if FENCE in self.old else None


class Scope(NamedTuple):
    """The events that may occur: the number of writes, and flags for a read and for faults."""

    writes: int = 1
    reads: bool = False
    faults: bool = False


class Expansion:
    """The protocol without the rule that `wrong` names."""

    def __init__(self, scope: Scope, wrong: str | None = None) -> None:
        self.scope = scope
        self.wrong = wrong

    # ------------------------------------------------------------------ invariants

    def check(self, state: State) -> None:
        """Raise Broken if a state violates an invariant."""
        if self._old_takes(state) and OPEN in state.new:
            raise Broken("I2: two groups take writes of a slot")
        if any(state.dropped) and not self._have_all(state, durable=True):
            raise Broken("I5: the old group has dropped what a member of the new group does not have")
        if state.phase is Phase.ABORT and not self._old_takes(state):
            raise Broken("I9: the change was given up, and nobody takes writes of its slots")
        if state.phase is Phase.CHANGE_DONE and state.leases:
            raise Broken("I10: the change is over, and something is kept for somebody who is gone")
        known = {c.values for c in state.copies if c.state == 3}
        if len(known) > 1:
            raise Broken("I8: members of the new group have different pasts")

    def is_over(self, state: State) -> bool:
        """Return whether the change has ended, and all of its old data and leases are gone."""
        if state.phase is Phase.ABORT:
            return True
        return state.phase is Phase.CHANGE_DONE and all(state.dropped) and not state.leases

    def _old_takes(self, state: State) -> bool:
        return state.fence is None

    def _have_all(self, state: State, *, durable: bool) -> bool:
        past = _values(state.old)
        return all(c.values == past and (c.state == 3 or not durable) for c in state.copies)

    # ------------------------------------------------------------------ steps

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield (name, next state) of all possible steps. Raises Broken."""
        yield from self._drive(state)
        yield from self._move(state)
        yield from self._serve(state)
        yield from self._suffer(state)
        for place, node in enumerate(OLD_MEMBERS):
            if state.applied[place] < len(state.old):
                yield f"node {node} applies", state._replace(applied=_put(state.applied, place, len(state.old)))
        table = self._known(state)
        if state.table < table:
            yield f"the coordinator learns {table.name}", state._replace(table=table)

    def _known(self, state: State) -> Table:
        if state.done[0]:
            return Table.NEW
        return Table.MIGRATING if state.phase in (Phase.FENCED, Phase.CHANGE_DONE) else Table.OLD

    # ------------------------------------------------------------------ the driver: entries of the groups' logs

    def _drive(self, state: State) -> Iterator[tuple[str, State]]:
        match state.phase:
            case Phase.PREPARE if not state.is_lost:
                yield "GROUP_READY", state._replace(phase=Phase.GROUP_READY)
            case Phase.GROUP_READY:
                yield "GO", state._replace(phase=Phase.GO)
            case Phase.GO if state.fence is not None or self.wrong == "M-B":
                yield "FENCED", state._replace(phase=Phase.FENCED)
            case Phase.FENCED:
                yield from self._finish(state)
        first = Phase.GROUP_READY if self.wrong == "FENCE before GO" else Phase.GO
        if first <= state.phase <= Phase.FENCED and FENCE not in state.old:
            yield "FENCE", state._replace(old=(*state.old, FENCE))
        last = Phase.GO if self.wrong == "ABORT after GO" else Phase.GROUP_READY
        if state.phase <= last and self.wrong != "no ABORT":
            yield "ABORT", state._replace(phase=Phase.ABORT)

    def _finish(self, state: State) -> Iterator[tuple[str, State]]:
        if OPEN not in state.new:
            yield "OPEN", state._replace(new=(OPEN, *state.new))
        for place, slot in enumerate(SLOTS):
            if not state.done[place] and self._is_loaded(state, slot):
                yield f"DONE({slot})", state._replace(done=_put(state.done, place, True))
        if all(state.done) and all(state.dropped):
            yield "CHANGE_DONE", state._replace(phase=Phase.CHANGE_DONE)
        if state.is_lost and JOINER in state.members and self.wrong != "no GIVE_UP":
            leases = tuple(lease for lease in state.leases if lease[0] != JOINER)
            left = state._replace(members=state.members[1:], copies=state.copies[1:], leases=leases)
            yield "GIVE_UP(4)", left

    def _is_loaded(self, state: State, slot: str) -> bool:
        if self.wrong == "who is given up has it" and JOINER not in state.members:
            return True
        if self.wrong == "M-E":
            return sum(found == slot for found, _ in state.loaded) >= len(state.members)
        if self.wrong == "LOADED of any slot":
            return {node for _, node in state.loaded} >= set(state.members)
        return all((slot, node) in state.loaded for node in state.members)

    # ------------------------------------------------------------------ data in transit

    def _move(self, state: State) -> Iterator[tuple[str, State]]:
        if OPEN in state.new:
            missing = [("b", node) for node in state.members if ("b", node) not in state.loaded]
            if missing and not (state.is_lost and JOINER in state.members):
                yield "LOADED(b) of all members", state._replace(loaded=_sorted(*state.loaded, *missing))
            for place, node in enumerate(state.members):
                if node != JOINER or not state.is_lost:
                    yield from self._load(state, place, node)
        for place, node in enumerate(OLD_MEMBERS):
            if state.done[0] and not state.dropped[place] and not self._is_kept(state, node):
                yield f"node {node}: DROP(a)", state._replace(dropped=_put(state.dropped, place, True))

    def _is_kept(self, state: State, node: int) -> bool:
        by_read = state.read is not None and state.read.pinned == node
        return any(at == node for _, at in state.leases) or (by_read and self.wrong != "no pins")

    def _load(self, state: State, place: int, node: int) -> Iterator[tuple[str, State]]:
        copy = state.copies[place]
        source = next((at for who, at in state.leases if who == node), None)
        if copy.state in (0, 1) and source is None:  # files staged under a lease that has ended do not count
            for at, held in enumerate(OLD_MEMBERS):
                if not state.dropped[at] and self._may_pull(state, at):
                    leases, copies = _sorted(*state.leases, (node, held)), _put(state.copies, place, Copy())
                    yield f"node {node} pins a at node {held}", state._replace(leases=leases, copies=copies)
        if copy.state in (0, 1) and source is not None:
            all_of_it = _values(state.old[: state.applied[OLD_MEMBERS.index(source)]])
            first = all_of_it[:1] if copy.state == 0 else all_of_it
            state_ = 2 if first == all_of_it else 1
            yield f"node {node} pulls a", state._replace(copies=_put(state.copies, place, Copy(first, state_)))
        if copy.state == 2 and self.wrong != "LOADED before it is durable":
            leases = tuple(lease for lease in state.leases if lease[0] != node)
            done = state._replace(copies=_put(state.copies, place, Copy(copy.values, 3)), leases=leases)
            yield f"node {node} renames its manifest", done
        is_there = copy.state == 3 or (copy.state == 2 and self.wrong == "LOADED before it is durable")
        again = self.wrong == "M-E" and len(state.loaded) < 4
        if is_there and (("a", node) not in state.loaded or again):
            yield f"LOADED(a, {node})", state._replace(loaded=_sorted(*state.loaded, ("a", node)))

    def _may_pull(self, state: State, at: int) -> bool:
        """Return whether rule I4 allows a pull: the source has applied the fence, and thus all earlier writes."""
        fence = state.fence
        if self.wrong == "M-A":
            return True
        return fence is not None and state.applied[at] >= fence

    # ------------------------------------------------------------------ clients

    def _serve(self, state: State) -> Iterator[tuple[str, State]]:
        if len(state.history) < self.scope.writes:
            value = len(state.history) + 1
            values: Collection[int] = (value,) if DELETION in state.history or not state.history else (value, DELETION)
            for written in values:
                yield from self._write(state, written)
        if not self.scope.reads:
            return
        if state.read is None:
            yield "a read begins", state._replace(read=Read(max(len(state.history) - 1, 0), None))
        else:
            yield from self._read(state, state.read)

    def _write(self, state: State, value: int) -> Iterator[tuple[str, State]]:
        history = (*state.history, value)
        what = "deletes" if value == DELETION else f"writes {value}"
        if state.table is Table.OLD:
            if self._old_takes(state):
                if _values(state.new):
                    raise Broken("I3: the old group acknowledges a write after the new one has")
                yield f"the client {what} (old group)", state._replace(old=(*state.old, value), history=history)
        elif OPEN in state.new:
            after = state._replace(new=(*state.new, value), history=history)
            if value == DELETION and self.wrong == "M-D":
                # With the mistake M-D, a deletion removes existing data, and leaves no tombstone that could hide later
                # data.
                copies = tuple(Copy((), c.state) if c.state == 3 else c for c in state.copies)
                after = after._replace(new=(OPEN,), copies=copies)
            yield f"the client {what} (new group)", after

    def _read(self, state: State, read: Read) -> Iterator[tuple[str, State]]:
        over = state._replace(read=None)
        match state.table:
            case Table.OLD:
                yield from self._read_old(state, read, over)
            case Table.MIGRATING if OPEN in state.new:
                yield from self._read_both(state, read, over)
            case Table.NEW if read.pinned is None:
                for place, node in enumerate(state.members):
                    if node != JOINER or not state.is_lost:
                        self._answer(state, read, state.copies[place].values, _values(state.new), visible=())
                        yield f"node {node} is read", over
            case _:
                yield "the read begins anew", over

    def _read_old(self, state: State, read: Read, over: State) -> Iterator[tuple[str, State]]:
        """Read at a member that has applied the whole log (ReadIndex), unless the member has applied the fence."""
        for place, node in enumerate(OLD_MEMBERS):
            is_current = state.applied[place] == len(state.old) or self.wrong == "F-3"
            log = state.old[: state.applied[place]]
            is_fenced = state._replace(old=log).fence is not None and self.wrong != "F-1"
            if is_current and not is_fenced:
                self._answer(state, read, () if state.dropped[place] else _values(log), (), visible=())
                yield f"node {node} is read (old group)", over

    def _read_both(self, state: State, read: Read, over: State) -> Iterator[tuple[str, State]]:
        """Pin the old group's data until the read is over, and then read the new group's newer values."""
        if self.wrong == "M-F" and read.newer is None:
            yield "the new group is read", state._replace(read=read._replace(newer=_values(state.new)))
            return
        if read.pinned is None:
            for place, node in enumerate(OLD_MEMBERS):
                if state.dropped[place] and self.wrong != "M-F":
                    yield "GONE: the read begins anew", over
                elif self._may_pull(state, place):
                    values = () if state.dropped[place] else _values(state.old[: state.applied[place]])
                    yield (
                        f"node {node} is pinned and read",
                        state._replace(read=read._replace(pinned=node, values=values)),
                    )
            return
        place = OLD_MEMBERS.index(read.pinned)
        values = () if state.dropped[place] else read.values
        newer = _values(state.new) if read.newer is None else read.newer
        for copy in dict.fromkeys(state.copies):
            shown = copy.values if copy.state == 3 or self.wrong == "M-G" else ()
            self._answer(state, read, values, newer, visible=shown)
        yield "the new group is read", over

    def _answer(self, state: State, read: Read, old: Values, new: Values, *, visible: Values) -> None:
        """Check the result of a read; `visible` are the earlier values that the new group's member already shows."""
        if self.wrong == "M-C" and state.table is Table.NEW:
            found = [*new, *old]  # the values that arrived last count as the newest
        elif self.wrong == "M-G":
            found = [*old, *visible, *new]  # mistake M-G: the new group's files all count as newer
        else:
            found = [*old, *new]
        value = found[-1] if found else DELETION
        legal = state.history[read.since :] or (DELETION,)
        if value not in legal:
            raise Broken(f"I7: a read answers {value}, one of {legal} is right")
        count = int(value != DELETION)
        if self.wrong == "Q-1":
            count = int(bool(old) and old[-1] != DELETION) + int(bool(new) and new[-1] != DELETION)
        if count != int(value != DELETION):
            raise Broken(f"I7: a read counts {count} points where {int(value != DELETION)} is")

    # ------------------------------------------------------------------ faults

    def _suffer(self, state: State) -> Iterator[tuple[str, State]]:
        if state.crashed or not self.scope.faults:
            return
        if state.phase < Phase.CHANGE_DONE:
            yield "node 4 is lost", state._replace(crashed=True, is_lost=True)
        for node in (1, 2, 4):
            yield f"node {node} crashes", self._crashed(state, node)

    def _crashed(self, state: State, node: int) -> State:
        copies = tuple(
            self._after_crash(copy) if member == node else copy
            for member, copy in zip(state.members, state.copies, strict=True)
        )
        leases = state.leases
        if self.wrong != "leases do not end":
            leases = tuple(lease for lease in leases if node not in lease)
        applied = state.applied
        if node in OLD_MEMBERS:
            applied = _put(applied, OLD_MEMBERS.index(node), 0)
        # A read that pinned data on the crashed node is lost.
        read = None if state.read is not None and state.read.pinned == node else state.read
        return state._replace(
            crashed=True,
            copies=copies,
            leases=leases,
            applied=applied,
            read=read,
        )

    def _after_crash(self, copy: Copy) -> Copy:
        """Return the durable part of the copy; with M-K, the node assumes after a crash that its copy is complete."""
        if self.wrong == "M-K":
            return Copy(copy.values if copy.state == 3 else (), 3)
        return copy if copy.state == 3 else Copy()


def _values(log: Iterable[Entry]) -> Values:
    return tuple(entry for entry in log if isinstance(entry, int))


def _put(found: tuple, place: int, value: object) -> tuple:  # type: ignore[type-arg]
    return (*found[:place], value, *found[place + 1 :])


def _sorted(*items: tuple) -> tuple:  # type: ignore[type-arg]
    return tuple(sorted(items))
