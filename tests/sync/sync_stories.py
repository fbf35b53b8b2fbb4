"""Random stories: edges write, delete, merge and sync over faulty links; both sides restart; edges share devices.

After each completed round of an edge, the centre has the data of the edge's devices that was in files (sealed) when the
round began. A device that two edges have belongs to the first one, until it is transferred. `make campaign-sync` runs
many stories.

    server     restarts
    cluster    all nodes show the same data; nodes lose power, also during a round; requests between nodes and replies
               of the meta group are lost; files disappear from the nodes' disks; senders get other replicas
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from storage.store_drawing import DRAWN, Drawing
from storage.store_model import Device, write_rows
from storage.store_opening import Wrong
from sync.bad_lines import BadLine
from sync.cluster_by_chance import ClusterByChance
from sync.cluster_world import Places
from sync.sync_crashes import check_sender_clean
from sync.sync_world import CHORES, Centre, Edge, devices_of

from saros_storage.base.errors import StorageError
from saros_storage.schema import DeleteSeries
from saros_sync.errors import BeginAgain, Unreachable


class Story:
    """A story with some edges and a centre."""

    def __init__(self, chance: Random, edges: int, centre: Centre | ClusterByChance) -> None:
        self.chance = chance
        self.centre = centre
        self.lines = [BadLine(self.centre.line(), self.chance) for _ in range(edges)]
        self.edges = [Edge(line) for line in self.lines]
        #: For each edge, the devices with the data that was sealed when its current or last round began.
        self.sealed: list[Mapping[str, Device]] = [{} for _ in range(edges)]
        self.mark = 0
        self.rounds = 0

    def tell(self, steps: int) -> None:
        for _ in range(steps):
            which = self.chance.randrange(len(self.edges))
            self.chance.choice((self._operate, self._operate, self._operate, self._sync, self._restart))(which)
        if isinstance(self.centre, ClusterByChance):
            self.centre.come_to_rest()
        for which, line in enumerate(self.lines):
            line.fair = True
            self._sync(which)
            check_sender_clean("at the end", self.edges[which].disk)
        if isinstance(self.centre, ClusterByChance):
            self.centre.settle()
        self.centre.check_nothing_left("at the end")
        self.check()

    def close(self) -> None:
        for edge in self.edges:
            edge.store.close()
        self.centre.close()

    def _operate(self, which: int) -> None:
        edge = self.edges[which]
        self.mark += 1
        state = devices_of(edge.store)
        drawing = Drawing(self.chance, state, self.mark)
        operation = self.chance.choice(DRAWN)(drawing)
        if operation is None or operation.name.startswith("keep"):  # a TTL is not synced
            return
        try:
            edge.tell(operation)
        except StorageError as error:
            if not operation.may_be_refused:
                raise Wrong(f"{operation.name}: {error}") from error

    def _sync(self, which: int) -> None:
        edge = self.edges[which]
        edge.store.flush()
        in_hand = edge.disk.exists(edge.sending._folder.journal)
        if not in_hand:
            self.sealed[which] = devices_of(edge.store).devices
        for _ in range(20):
            try:
                is_new = edge.sending.run_round().is_new
            except (Unreachable, BeginAgain):
                continue
            self.rounds += 1
            if is_new and isinstance(self.centre, ClusterByChance):
                self.centre.check_durable(edge.id)
            break
        else:
            raise Wrong(f"edge {which} came to no end")
        if in_hand:  # the completed round was an old one, so run another with the current data
            self._sync(which)

    def _restart(self, which: int) -> None:
        if self.chance.random() < 0.5:
            self.centre.restart()
        else:
            self.edges[which].restart_sender()
        self.check()

    def check(self) -> None:
        """Check that for each device, the centre has the data that was sealed at the device's owner."""
        for state in self.centre.states():
            owners = self.centre.catalog.owners()
            wanted = {
                d: device
                for which, edge in enumerate(self.edges)
                for d, device in self.sealed[which].items()
                if owners.get(d) == edge.id
            }
            if state.devices != wanted:
                raise Wrong(f"the centre has {state.devices}, not {wanted}")


def tell_story(seed: int, edges: int = 2, steps: int = 40, *, cluster: bool = False) -> int:
    """Run a story; return the number of completed rounds. Raises Wrong."""
    chance = Random(seed)
    story = Story(chance, edges, ClusterByChance(chance) if cluster else Centre(chores=chance.choice(CHORES)))
    try:
        story.tell(steps)
    except Exception as error:
        raise Wrong(f"seed {seed}{', a cluster' if cluster else ''}: {error!r}") from error
    finally:
        story.close()
    return story.rounds


def two_senders_at_once() -> None:
    """Let two senders commit the same device at two nodes of a cluster at once.

    Raises Wrong unless exactly one sender becomes the owner and the other sender learns this.
    """
    places = Places()
    edges = [Edge(places.line(node)) for node in places.nodes[:2]]
    conflicts = []
    for number, edge in enumerate(edges):
        edge.tell(write_rows("root.a.d1", [number], 1))

    def meanwhile(what: str) -> None:
        if (
            what == "schema"
        ):  # the device was just created for the first sender, but the note about its round is not written yet
            places.meanwhile = lambda _: None
            places.schema.apply(DeleteSeries("root.a.d1.*"))  # as if its group had not applied the creation yet
            conflicts.append(edges[1].sync().conflicts)

    places.meanwhile = meanwhile
    conflicts.append(edges[0].sync().conflicts)
    owners = [entry.devices for entry in places.catalog.senders.values()]
    if sorted(map(len, owners)) != [0, 1] or sorted(map(len, conflicts)) != [0, 1]:
        raise Wrong(f"owned are {owners}, refused {conflicts}")
    for edge in edges:
        edge.store.close()
    places.close()
