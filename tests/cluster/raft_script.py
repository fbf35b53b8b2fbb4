"""A few Raft nodes, which a script drives step by step. They print all their actions.

    nodes 1 2 3 [learners=4] [spare=5] [heartbeat=1] [election=6] [retain=0]
                                    create the nodes; node n campaigns after election + n % election ticks
    tick N [count]                  time passes at a node
    campaign N                      tick until the node requests votes
    hasten N                        the node is told not to wait for the election timeout
    win N | elect N                 the others forget their leader, N campaigns and wins; elect N: its first entry, too
    forget N ...                    tick until these followers would vote for another node
    propose N data [count]          | single N data count: one by one | propose-bytes N size
    change N version voters=1,2 [learners=3] | alone N version [learners=3]
    transfer N to | transfer-among N nodes | step-down N | compact N index
    defer N [off]                   the node at first leaves elections to other nodes
    read N                          begin a read; a node's reads are numbered from 1
    deliver [N->M] [type] [count]   messages in transit, oldest first; without a count, all messages now in transit
    drop ... | hold ... | duplicate ...     select messages like `deliver`; `release` returns held messages to transit
    send N->M type field=value ...  a forged message; see `_FORGED`
    settle                          deliver until no message is in transit
    cut N M ... | cut-link N M      lose messages between these nodes and all other nodes, or between two nodes
    heal                            remove all cuts, which otherwise accumulate
    slow-disk N | persist N         a node's writes wait for `persist`, until `slow-disk N off`
    slow-machine N | apply N        entries to apply wait for `apply`
    slow-fetch N | fetch N [failed] snapshots to fetch wait for `fetch`
    crash N [part ...] | start N    unpersisted writes are lost, except these parts: state snapshot base entries
    leave N term                    the node leaves the group, loses all data, and returns with only this term
    status [N] | log N | state N | waiting      print, without any event

If a line begins with `~`, its actions are not printed. `1->2 Append ...` is a delivered message; `x` marks a lost
message. `validate` runs after every event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership, membership
from saros_cluster.raft.messages import (
    Append,
    AppendResponse,
    Entry,
    EntryKind,
    GroupId,
    HardState,
    Heartbeat,
    HeartbeatResponse,
    Message,
    Position,
    PreVote,
    PreVoteResponse,
    ReadIndex,
    ReadIndexResponse,
    Snapshot,
    SnapshotOffer,
    SnapshotResponse,
    TransferNow,
    Vote,
    VoteResponse,
)
from saros_cluster.raft.node import RaftNode
from saros_cluster.raft.ready import Accepted, Persist, RaftOptions, Refused, Restored, Role

GROUP = GroupId(1)
#: The maximum number of messages that `settle` delivers. If it is exceeded, the nodes probably never stop sending.
_MESSAGES_MAX = 2_000

_TYPES = {
    t.__name__: t
    for t in (
        PreVote,
        PreVoteResponse,
        Vote,
        VoteResponse,
        Append,
        AppendResponse,
        Heartbeat,
        HeartbeatResponse,
        SnapshotOffer,
        SnapshotResponse,
        TransferNow,
        ReadIndex,
        ReadIndexResponse,
    )
}


def cases(text: str) -> list[tuple[str, str]]:
    """Return (commands, output) of each block of a script, without comments."""
    found = []
    for block in text.strip("\n").split("\n\n"):
        if not block.startswith("#"):
            commands, _, output = block.partition("\n----")
            found.append((commands, output.strip("\n")))
    return found


def rewritten(text: str) -> str:
    """Run a script, and return the script with its outputs replaced by the actual outputs."""
    table = Table()
    blocks = []
    for block in text.strip("\n").split("\n\n"):
        if block.startswith("#"):
            blocks.append(block)
        else:
            commands = block.partition("\n----")[0]
            blocks.append(f"{commands}\n----\n{table.run(commands)}".rstrip("\n"))
    return "\n\n".join(blocks) + "\n"


# ---------------------------------------------------------------------- printing


def show_entry(entry: Entry) -> str:
    """Return a text of an entry: index/term and content."""
    if entry.kind is EntryKind.MEMBERSHIP:
        return f"{entry.index}/{entry.term} {show_membership(Membership.decode(entry.data))}"
    return f"{entry.index}/{entry.term}" + (f" {entry.data.decode()[:20]}" if entry.data else "")


def show_membership(found: Membership) -> str:
    halves = ",".join(map(str, found.voters))
    if found.outgoing:
        halves += "+" + ",".join(map(str, found.outgoing))
    if found.learners:
        halves += " learners " + ",".join(map(str, found.learners))
    return f"v{found.version}({halves})"


def show_entries(entries: Iterable[Entry]) -> str:
    """Return entries as text; abbreviate long runs."""
    shown = [show_entry(e) for e in entries]
    if len(shown) > 6:
        shown = [*shown[:2], f"... {len(shown) - 4} more ...", *shown[-2:]]
    return "[" + ", ".join(shown) + "]"


#: After each start, a node numbers its reads from the next multiple of this number.
READS = 1 << 20


def show_read(read: int) -> str:
    life, number = divmod(read, READS)
    return f"#{number}" + (f" of life {life}" if life > 1 else "")


def show_message(message: Message) -> str:
    what = f"{message.sender}->{message.receiver} {type(message).__name__} t{message.term}"
    match message:
        case Append():
            what += f" behind {message.prev_index}/{message.prev_term} {show_entries(message.entries)}"
            return f"{what} commit {message.commit}"
        case AppendResponse(accepted=True):
            return f"{what} has {message.index}"
        case AppendResponse():
            return f"{what} rejects {message.index}, try {message.hint_index}/{message.hint_term}"
        case PreVote() | Vote():
            transfer = " transfer" if isinstance(message, Vote) and message.transfer else ""
            return f"{what} log {message.last_index}/{message.last_term}{transfer}"
        case PreVoteResponse() | VoteResponse():
            return f"{what} {'yes' if message.granted else 'no'}"
        case Heartbeat():
            return f"{what} commit {message.commit} round {message.round}"
        case HeartbeatResponse():
            return f"{what} round {message.round}"
        case SnapshotOffer():
            position = message.snapshot.position
            return f"{what} {position.index}/{position.term} {show_membership(position.membership)}"
        case SnapshotResponse():
            return f"{what} {'has' if message.installed else 'failed'} {message.index}"
        case ReadIndex():
            return f"{what} {show_read(message.read)}"
        case ReadIndexResponse():
            return f"{what} {show_read(message.read)}: {message.index}"
        case _:
            return what


@dataclass
class Chance:
    """A replacement for a node's random numbers.

    The node's election timeout is constant, and its read numbers depend on the number of starts.
    """

    extra: int
    life: int = 0

    def randrange(self, stop: int, /) -> int:
        return self.extra % stop

    def getrandbits(self, count: int, /) -> int:
        return self.life


# ---------------------------------------------------------------------- nodes


@dataclass
class Disk:
    """The state that survives a crash: the log, and the last saved state of the state machine."""

    base: Position
    hard_state: HardState = field(default_factory=HardState)
    entries: list[Entry] = field(default_factory=list)
    saved: tuple[Position, tuple[str, ...]] | None = None

    def write(self, persist: Persist, parts: Collection[str] = ("state", "snapshot", "base", "entries")) -> None:
        if persist.hard_state is not None and "state" in parts:
            self.hard_state = persist.hard_state
        if persist.snapshot is not None and "snapshot" in parts:
            self.saved = (persist.snapshot.position, unpack(persist.snapshot))
        if persist.base is not None and "base" in parts:
            self.base, self.entries = persist.base, []
        if persist.entries and "entries" in parts:
            assert self.base.index < persist.entries[0].index <= self.base.index + len(self.entries) + 1
            del self.entries[persist.entries[0].index - self.base.index - 1 :]
            self.entries += persist.entries


class Seat:
    """A node, its disk and its state machine."""

    def __init__(self, table: Table, node: NodeId, base: Position) -> None:
        self.table = table
        self.id = node
        self.disk = Disk(base)
        self.chance = Chance(node)
        self.slow_disk = self.slow_machine = self.slow_fetch = False
        self.start()

    def start(self) -> None:
        disk = self.disk
        saved = disk.saved[0] if disk.saved else None
        self.chance.life += 1
        restored = Restored(disk.base, disk.hard_state, tuple(disk.entries), saved)
        self.node: RaftNode | None = RaftNode(GROUP, self.id, restored, self.table.options, self.chance)
        self.commands = list(disk.saved[1]) if disk.saved else []
        self.position = saved or disk.base
        self.persisting: Persist | None = None
        self.applying: list[Entry] = []
        self.fetching: Snapshot | None = None
        self.face = self.look()

    def look(self) -> str:
        status = self.node.status
        text = f"{status.role.value} in term {status.term}"
        if status.role is Role.FOLLOWER:
            text += f" of {status.leader or 'nobody'}"
        return text

    def pump(self) -> None:
        """Handle and print the node's output."""
        while self.node is not None:
            self.node.validate()
            face = self.look()
            if face != self.face:
                self.face = face
                self.table.say(f"{self.id} is {face}")
            ready = self.node.ready()
            if ready.is_empty:
                return
            self.table.sent(ready.messages)
            if ready.persist is not None:
                assert self.persisting is None
                self.persisting = ready.persist
                if self.slow_disk:
                    self.table.say(f"{self.id} is writing {show_persist(ready.persist)}")
                else:
                    self.persist()
            self.applying += ready.committed
            if self.applying and not self.slow_machine:
                self.apply()
            for read in ready.reads:
                self.table.say(f"{self.id} read {show_read(read.read)}: {read.index or 'nobody knows'}")
            if ready.fetch is not None:
                self.fetching = ready.fetch
                self.table.say(f"{self.id} fetches {ready.fetch.position.index}/{ready.fetch.position.term}")
                if not self.slow_fetch:
                    self.fetch(failed=False)
            for node in ready.snapshots_wanted:
                self.table.say(f"{self.id} makes a snapshot for {node}")
                self.node.offer_snapshot(node, Snapshot(self.position, " ".join(self.commands).encode()))

    def persist(self) -> None:
        persist, self.persisting = self.persisting, None
        self.disk.write(persist)
        if persist.snapshot is not None:
            self.position, self.commands = persist.snapshot.position, list(unpack(persist.snapshot))
            self.applying = [e for e in self.applying if e.index > self.position.index]
            self.table.say(f"{self.id} installs {self.position.index}/{self.position.term}")
        self.node.persisted(persist.index)

    def apply(self) -> None:
        entries, self.applying = self.applying, []
        self.table.say(f"{self.id} applies {show_entries(entries)}")
        for entry in entries:
            assert entry.index == self.position.index + 1
            found = self.position.membership
            if entry.kind is EntryKind.MEMBERSHIP:
                found = Membership.decode(entry.data)
            self.position = Position(entry.index, entry.term, found)
            if entry.kind is EntryKind.DATA:
                self.commands.append(entry.data.decode())
        self.node.applied(entries[-1].index)

    def fetch(self, *, failed: bool) -> None:
        snapshot, self.fetching = self.fetching, None
        if failed:
            self.node.staging_failed(snapshot)
        else:
            self.node.staged(snapshot)

    def compact(self, index: int) -> None:
        self.disk.saved = (self.position, tuple(self.commands))
        base = self.node.compact(index)
        if base is not None:
            del self.disk.entries[: base.index - self.disk.base.index]
            self.disk.base = base
        self.table.say(f"{self.id} log begins behind {self.disk.base.index}/{self.disk.base.term}")


def unpack(snapshot: Snapshot) -> tuple[str, ...]:
    return tuple(snapshot.token.decode().split())


def show_persist(persist: Persist) -> str:
    parts = []
    if persist.hard_state is not None:
        parts.append(f"term {persist.hard_state.term} vote {persist.hard_state.vote}")
    if persist.snapshot is not None:
        parts.append(f"snapshot {persist.snapshot.position.index}/{persist.snapshot.position.term}")
    if persist.base is not None:
        parts.append(f"base {persist.base.index}/{persist.base.term}")
    if persist.entries:
        parts.append(show_entries(persist.entries))
    return ", ".join(parts)


# ---------------------------------------------------------------------- the table


class Table:
    """The nodes and the messages between them; `run` runs commands and returns the printed events."""

    def __init__(self) -> None:
        self.options = RaftOptions(1, 6)
        self.seats: dict[NodeId, Seat] = {}
        self.network: list[Message] = []
        self.held: list[Message] = []
        self.cuts: list[set[int]] = []
        self.cut_links: list[set[int]] = []
        self.output: list[str] = []

    def run(self, commands: str) -> str:
        self.output = []
        for line in commands.splitlines():
            said = len(self.output)
            name, *words = line.removeprefix("~").split()
            command: Callable[..., None] = getattr(self, "do_" + name.replace("-", "_"))
            plain = [w for w in words if "=" not in w]
            command(*plain, **dict(w.split("=", 1) for w in words if "=" in w))
            if line.startswith("~"):
                del self.output[said:]
        return "\n".join(self.output)

    def say(self, text: str) -> None:
        self.output.append(text)

    def sent(self, messages: Iterable[Message]) -> None:
        self.network += messages

    def seat(self, node: str) -> Seat:
        return self.seats[NodeId(int(node))]

    # ------------------------------------------------------------------ commands

    def do_nodes(self, *nodes: str, learners: str = "", spare: str = "", **options: str) -> None:
        known = {"heartbeat": "1", "election": "6", "retain": "0"} | options
        self.options = RaftOptions(*map(int, known.values()))
        first = membership(1, numbers(",".join(nodes)), numbers(learners))
        self.network, self.held, self.seats = [], [], {}
        self.do_heal()
        for node in first.nodes:
            self.seats[node] = Seat(self, node, Position(0, 0, first))
        for number in numbers(spare):
            self.seats[NodeId(number)] = Seat(self, NodeId(number), Position(0, 0, membership(0, ())))

    def do_tick(self, node: str, count: str = "1") -> None:
        for _ in range(int(count)):
            self.seat(node).node.tick()
            self.seat(node).pump()

    def do_campaign(self, node: str) -> None:
        seat = self.seat(node)
        for _ in range(3 * self.options.election_ticks):
            seat.node.tick()
            seat.pump()
            if seat.node.status.role is not Role.FOLLOWER:
                return
        self.say(f"{node} does not campaign")

    def do_hasten(self, node: str) -> None:
        self.seat(node).node.campaign()
        self.seat(node).pump()

    def do_win(self, node: str) -> None:
        """Elect a node; its first messages as leader are still in transit."""
        self.do_forget(*(str(n) for n in self.seats if str(n) != node))
        self.do_campaign(node)
        for kind in ("PreVote", "PreVoteResponse", "Vote", "VoteResponse"):
            self.do_deliver(kind)

    def do_elect(self, node: str) -> None:
        self.do_win(node)
        self.do_settle()

    def do_forget(self, *nodes: str) -> None:
        """Let an election timeout pass at followers without messages, so that they would vote for another leader."""
        for seat in map(self.seat, nodes):
            if seat.node is not None and not seat.node.is_leader:
                self.do_tick(str(seat.id), str(max(self.options.election_ticks - seat.node._elapsed, 0)))

    def do_propose(self, node: str, data: str, count: str = "1") -> None:
        for number in range(int(count)):
            text = data if count == "1" else f"{data}{number}"
            self.answer(self.seat(node).node.propose(text.encode()))
        self.seat(node).pump()

    def do_single(self, node: str, data: str, count: str) -> None:
        """Make proposals, each of which is sent in a separate message."""
        for number in range(int(count)):
            self.do_propose(node, f"{data}{number}")

    def do_inflight(self, node: str) -> None:
        """Print the number of entries and bytes in transit to each receiver."""
        for seat in self.seats.values():
            found = [
                m for m in self.network if isinstance(m, Append) and str(m.sender) == node and m.receiver == seat.id
            ]
            if found:
                size = sum(e.size_bytes for m in found for e in m.entries)
                self.say(f"{node}->{seat.id}: {len(found)} messages, {size} bytes")

    def do_propose_bytes(self, node: str, size: str) -> None:
        self.answer(self.seat(node).node.propose(b"x" * int(size)))
        self.seat(node).pump()

    def do_change(self, node: str, version: str, voters: str = "", learners: str = "") -> None:
        target = membership(int(version), numbers(voters), numbers(learners))
        self.answer(self.seat(node).node.propose_membership(target))
        self.seat(node).pump()

    def answer(self, answer: Accepted | Refused) -> None:
        if isinstance(answer, Refused):
            self.say(f"refused: {answer.reason.value}" + (f", {answer.leader} leads" if answer.leader else ""))

    def do_transfer(self, node: str, to: str) -> None:
        if not self.seat(node).node.transfer(NodeId(int(to))):
            self.say("no")
        self.seat(node).pump()

    def do_transfer_among(self, node: str, among: str) -> None:
        if not self.seat(node).node.transfer_among([NodeId(number) for number in numbers(among)]):
            self.say("no")
        self.seat(node).pump()

    def do_defer(self, node: str, off: str = "") -> None:
        self.seat(node).node.defer_elections(not off)

    def do_alone(self, node: str, version: str, learners: str = "") -> None:
        self.seat(node).node.force_single_voter(membership(int(version), numbers(node), numbers(learners)))
        self.seat(node).pump()

    def do_step_down(self, node: str) -> None:
        self.seat(node).node.step_down()
        self.seat(node).pump()

    def do_compact(self, node: str, index: str) -> None:
        self.seat(node).compact(int(index))

    def do_read(self, node: str) -> None:
        self.seat(node).node.read_index()
        self.seat(node).pump()

    # ------------------------------------------------------------------ messages

    def choose(self, words: tuple[str, ...]) -> list[Message]:
        """Return the messages that a command selects, oldest first."""
        found, count = list(self.network), None
        for word in words:
            if "->" in word:
                sender, receiver = word.split("->")
                found = [m for m in found if sender in ("", str(m.sender)) and receiver in ("", str(m.receiver))]
            elif word.isdigit():
                count = int(word)
            else:
                found = [m for m in found if isinstance(m, _TYPES[word])]
        return found[:count]

    def take(self, words: tuple[str, ...]) -> list[Message]:
        found = self.choose(words)
        for message in found:
            place = next(i for i, m in enumerate(self.network) if m is message)
            del self.network[place]
        return found

    def do_deliver(self, *words: str) -> None:
        for message in self.take(words):
            self.arrive(message)

    def do_drop(self, *words: str) -> None:
        for message in self.take(words):
            self.say(f"x {show_message(message)}")

    def do_hold(self, *words: str) -> None:
        self.held += self.take(words)

    def do_release(self) -> None:
        self.network += self.held
        self.held = []

    def do_duplicate(self, *words: str) -> None:
        self.held += self.choose(words)

    def do_settle(self) -> None:
        for _ in range(_MESSAGES_MAX):
            if not self.network:
                return
            self.arrive(self.network.pop(0))
        raise AssertionError("they do not stop")

    def arrive(self, message: Message) -> None:
        seat = self.seats.get(message.receiver)
        ends = {message.sender, message.receiver}
        apart = ends in self.cut_links or any(len(ends & side) == 1 for side in self.cuts)
        if seat is None or seat.node is None or apart:
            self.say(f"x {show_message(message)}")
            return
        self.say(show_message(message))
        refused = seat.node.status.rejected
        seat.node.step(message)
        if seat.node.status.rejected > refused:
            self.say(f"{seat.id} refuses it")
        seat.pump()

    def do_send(self, link: str, kind: str, **values: str) -> None:
        sender, receiver = link.split("->")
        type_ = _TYPES[kind]
        known: dict[str, object] = {"group": GROUP, "sender": int(sender), "receiver": int(receiver)}
        for name in type_.__struct_fields__:
            if name in values:
                known[name] = _FORGED.get(name, int)(values[name])
        self.network.append(type_(**known))

    def do_cut(self, *nodes: str) -> None:
        self.cuts.append({int(n) for n in nodes})

    def do_cut_link(self, *nodes: str) -> None:
        self.cut_links.append({int(n) for n in nodes})

    def do_heal(self) -> None:
        self.cuts, self.cut_links = [], []

    def do_waiting(self) -> None:
        for message in self.network:
            self.say(show_message(message))

    # ------------------------------------------------------------------ slow parts

    def do_slow_disk(self, node: str, off: str = "") -> None:
        self.seat(node).slow_disk = not off

    def do_persist(self, node: str) -> None:
        if self.seat(node).persisting is not None:
            self.seat(node).persist()
        self.seat(node).pump()

    def do_slow_machine(self, node: str, off: str = "") -> None:
        self.seat(node).slow_machine = not off

    def do_apply(self, node: str) -> None:
        self.seat(node).apply()
        self.seat(node).pump()

    def do_slow_fetch(self, node: str, off: str = "") -> None:
        self.seat(node).slow_fetch = not off

    def do_fetch(self, node: str, failed: str = "") -> None:
        self.seat(node).fetch(failed=bool(failed))
        self.seat(node).pump()

    def do_crash(self, node: str, *parts: str) -> None:
        seat = self.seat(node)
        if seat.persisting is not None:
            seat.disk.write(seat.persisting, parts)
        seat.node = None

    def do_start(self, node: str) -> None:
        seat = self.seat(node)
        seat.start()
        self.say(f"{node} is {seat.face}")
        seat.pump()

    def do_leave(self, node: str, term: str) -> None:
        seat = self.seats[NodeId(int(node))] = Seat(self, NodeId(int(node)), Position(0, 0, membership(0, ())))
        seat.disk.hard_state = HardState(int(term))
        self.do_start(node)

    # ------------------------------------------------------------------ printing

    def do_status(self, *nodes: str) -> None:
        for seat in [self.seat(n) for n in nodes] or list(self.seats.values()):
            if seat.node is None:
                self.say(f"{seat.id}: down")
                continue
            status = seat.node.status
            counts = f"commit {status.commit}, applied {status.applied}, last {status.last_index}"
            self.say(f"{seat.id}: {seat.look()}, {counts}, {show_membership(seat.node.membership)}")

    def do_log(self, node: str) -> None:
        """Print the durable log."""
        disk = self.seat(node).disk
        self.say(f"{disk.base.index}/{disk.base.term} {show_entries(disk.entries)}")
        self.say(f"term {disk.hard_state.term} vote {disk.hard_state.vote}")

    def do_state(self, node: str) -> None:
        self.say(" ".join(self.seat(node).commands))


def numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",") if n]


def _entries(text: str) -> tuple[Entry, ...]:
    """Return the entries of a text such as 7/2:a,8/2:b."""
    found = []
    for part in filter(None, text.split(",")):
        place, _, data = part.partition(":")
        index, term = place.split("/")
        found.append(Entry(int(index), int(term), EntryKind.DATA, data.encode()))
    return tuple(found)


def _snapshot(text: str) -> Snapshot:
    """Return the snapshot of a text such as 9/2:a+b, in which + stands for a space."""
    place, _, data = text.partition(":")
    index, term = place.split("/")
    return Snapshot(Position(int(index), int(term), membership(1, (1, 2, 3))), data.replace("+", " ").encode())


#: The parsers of the fields of a forged message.
_FORGED: dict[str, Callable[[str], object]] = {
    "granted": lambda text: text == "yes",
    "accepted": lambda text: text == "yes",
    "installed": lambda text: text == "yes",
    "transfer": lambda text: text == "yes",
    "entries": _entries,
    "snapshot": _snapshot,
}
