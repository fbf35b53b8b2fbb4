"""A cluster receives rounds, and a node loses power during one of its disk operations, or one of them fails.

crash      the node continues with a possible state of its disk, the other nodes with their state at that moment; all
           nodes show the data of the previous round or of this round; after the sender's retry, they show the data of
           this round, and nothing is left over
failure    the operation and some after it fail with EIO or ENOSPC; then the disk works, and the sender retries
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from random import Random

from storage.crash_disk import CrashDisk, Picture
from storage.store_model import State
from sync.cluster_world import Places
from sync.sync_crashes import Rounds, check, crashes, each_failure, go_on_after_failure, no_failure
from sync.sync_world import Edge, devices_of, sender_beside

from saros_cluster.meta.metadata_kv import Notes
from saros_cluster.placement.ring import NodeId
from saros_storage.schema import SchemaTree, decode_change

#: The two nodes that may crash: the sender calls the first one, and the second one only stores a replica.
TAKES, KEEPS = NodeId(1), NodeId(2)
#: Seconds within which the other nodes complete an interrupted commit.
_FINISHED_SECONDS = 6.0


@dataclass(frozen=True)
class _Known:
    """The state of the other nodes and of the edge (the sender) at a crash, and the allowed states after it."""

    disks: dict[NodeId, Picture]
    notes: Notes
    schema: bytes
    edge: Picture
    allowed: tuple[State, ...]
    after: State

    def places(self, node: NodeId, disk: CrashDisk) -> Places:
        """Return the cluster that continues after the crash. The crashed node has `disk`."""
        disks = {other: CrashDisk(picture) for other, picture in self.disks.items()}
        tree = SchemaTree()
        for line in self.schema.splitlines():
            tree.apply(decode_change(line))
        return Places(disks={**disks, node: disk}, notes=self.notes, schema=tree)


def cluster_crashes(rounds: Rounds, chance: Random, node: NodeId, share: float = 1.0) -> int:
    """Crash a node at each operation; return how many states of its disk were tried. Raises Wrong."""
    places = Places()
    edge = Edge(places.line(TAKES))
    disk = places.running[node].disk
    tried = 0
    for operations in rounds:
        edge.tell(*operations)
        edge.store.flush()
        before, after = places.running[node].state(), devices_of(edge.store)
        disk.note = lambda before=before, after=after: _known(places, node, edge, before, after)  # type: ignore[misc]
        disk.keeps_pictures = True
        disk.pictures.clear()
        edge.sending.run_round()
        places.settle()
        for picture, how, found in crashes(disk, chance, share):
            assert isinstance(picture.note, _Known)
            _go_on(f"{picture.operation}, {how}", node, found, picture.note)
            tried += 1
    edge.store.close()
    places.close()
    return tried


def _known(places: Places, node: NodeId, edge: Edge, before: State, after: State) -> _Known:
    others = {other: place.disk.picture() for other, place in places.running.items() if other != node}
    return _Known(others, places.notes, places.schema.dump(), edge.disk.picture(), (before, after), after)


def _go_on(context: str, node: NodeId, disk: CrashDisk, known: _Known) -> None:
    places = known.places(node, disk)
    try:
        places.wait(_FINISHED_SECONDS)
        places.finish()
        places.wait(_FINISHED_SECONDS)
        places.finish()
        for state in places.states():
            check(context, state, known.allowed)
        with no_failure(context):
            sender_beside(CrashDisk(known.edge), places.line(TAKES)).run_round()
        for state in places.states():
            check(f"{context}, after the next round", state, (known.after,))
        places.settle()
        places.check_nothing_left(context)
    finally:
        places.close()


def cluster_failures(rounds: Rounds, node: NodeId, number: int, failing: int, step: int = 1, start: int = 0) -> int:
    """Let operations of a node's disk fail; return the number of runs in which one failed. Raises Wrong."""

    def tell(place: int) -> CrashDisk:
        places = Places()
        edge = Edge(places.line(TAKES))
        disk = places.running[node].disk
        disk.fails_at, disk.fails_for = (disk.operations + place, number), failing
        for operations in rounds:
            edge.tell(*operations)
            go_on_after_failure(edge, disk)
            for state in places.states():
                check(f"{errno.errorcode[number]}: {disk.failed}", state, (devices_of(edge.store),))
        disk.fails_at = None  # checked only now, since the other nodes can continue without this node
        places.settle()
        places.check_durable(edge.id)
        places.check_nothing_left(f"{errno.errorcode[number]}: {disk.failed}")
        edge.store.close()
        places.close()
        return disk

    return each_failure(tell, step, start)
