"""Stories by chance: edges write, delete, merge and sync over bad lines; sides restart; devices collide.

After each round of an edge that came to its end, the centre shows of the edge's devices what the edge had sealed; of
devices that two edges have, what the one has that was first, until they are transferred. `make campaign-sync` tells
many.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from storage.store_drawing import DRAWN, Drawing
from storage.store_model import Device
from storage.store_opening import Wrong
from sync.bad_lines import BadLine
from sync.sync_crashes import check_nothing_left, check_sender_clean
from sync.sync_world import Centre, Edge, devices_of

from saros_storage.errors import StorageError
from saros_sync.errors import Unreachable


class Story:
    """Some edges and a centre; see the module."""

    def __init__(self, seed: int, edges: int) -> None:
        self.chance = Random(seed)
        self.centre = Centre()
        self.lines = [BadLine(self.centre.line(), self.chance) for _ in range(edges)]
        self.edges = [Edge(line) for line in self.lines]
        #: What each edge had sealed when its last round was taken.
        self.sealed: list[Mapping[str, Device]] = [{} for _ in range(edges)]
        self.mark = 0
        self.rounds = 0

    def tell(self, steps: int) -> None:
        for _ in range(steps):
            which = self.chance.randrange(len(self.edges))
            self.chance.choice((self._operate, self._operate, self._operate, self._sync, self._restart))(which)
        for which, line in enumerate(self.lines):
            line.fair = True
            self._sync(which)
            check_sender_clean("at the end", self.edges[which].disk)
        check_nothing_left("at the end", self.centre)
        self.check()

    def close(self) -> None:
        for edge in self.edges:
            edge.store.close()
        self.centre.store.close()

    def _operate(self, which: int) -> None:
        edge = self.edges[which]
        self.mark += 1
        state = devices_of(edge.store)
        drawing = Drawing(self.chance, state, self.mark)
        operation = self.chance.choice(DRAWN)(drawing)
        if operation is None or operation.name.startswith("keep"):  # rules of TTL are each side's own
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
                edge.sending.once()
            except Unreachable:
                continue
            self.rounds += 1
            break
        else:
            raise Wrong(f"edge {which} came to no end")
        if in_hand:  # that round was of an earlier moment: another one shows this
            self._sync(which)

    def _restart(self, which: int) -> None:
        if self.chance.random() < 0.5:
            self.centre.restart()
        else:
            self.edges[which].restart_sender()
        self.check()

    def check(self) -> None:
        """The centre has what each device's owner had sealed."""
        owners = self.centre.receiver.owners
        wanted = {}
        for which, edge in enumerate(self.edges):
            entry = self.centre.receiver.catalog.senders.get(edge.id)
            if entry is not None:
                wanted |= {d: device for d, device in self.sealed[which].items() if owners.get(d) == edge.id}
        found = devices_of(self.centre.store).devices
        if found != wanted:
            raise Wrong(f"the centre has {found}, not {wanted}")


def tell_story(seed: int, edges: int = 2, steps: int = 40) -> int:
    """How many rounds came to their ends. Raises Wrong with what went wrong."""
    story = Story(seed, edges)
    try:
        story.tell(steps)
    except Exception as error:
        raise Wrong(f"seed {seed}: {error!r}") from error
    finally:
        story.close()
    return story.rounds
