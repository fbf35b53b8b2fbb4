"""Strong, mid and weak reads at the leader, at a follower, and at a node that is cut off.

                connected               cut off
    strong      all acknowledged        2017 within its deadline, never older than what was acknowledged before
    mid         as strong               the data of the node's own replicas, flagged `stale`; or as strong
    weak        committed, maybe old    committed, maybe old

A register (one timestamp of one series) is overwritten with 1, 2, 3 ...; the value of a read is compared with the last
value that was acknowledged when the read began. Node 1 leads all groups, since a strong read asks all groups.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from system.town import Clocked, Served, Town, a_town
from waiting import PATIENCE_S, wait_until

import saros
from saros_cluster.data.command import NO_REQUEST, encode_command
from saros_cluster.database import read_views, write_coordinator
from saros_cluster.multiraft.host import NotLeader
from saros_cluster.multiraft.state_machine import ProposalLost
from saros_cluster.raft.messages import GroupId
from saros_storage.base.block import Column
from saros_storage.base.errors import StorageError
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import DataType
from saros_storage.mutation.mutation import Mutation, PlacedTablet
from saros_storage.mutation.tablet_codec import encode_tablet

pytestmark = pytest.mark.slow

LEADER, FOLLOWER, OTHER = 0, 1, 2
NO_LEADER = 2017
#: The timeout of those strong reads that must fail; it is shorter than the timeout of other reads.
HURRIED_SECONDS = 1.0
POISON = -1


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with a_town(tmp_path_factory.mktemp("town"), 3, 3, Clocked) as town:
        yield town


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Town]:
    with a_town(tmp_path, 3, 3, Served) as town:
        yield town


@pytest.fixture
def register(town: Town) -> Iterator[Register]:
    town.arrange_leaders(of_all=LEADER)
    yield Register(town)
    town.weather.heal()
    town.nodes.clocks[LEADER].go_on()
    town.nodes.wait_ready()


class Register:
    """One timestamp of a new series. Its values are 1, 2, 3 ..., written one at a time; reads may run concurrently."""

    def __init__(self, town: Town) -> None:
        self.town = town
        group = next(g for g in town.routing().groups if town.routing().members(g)[0] == LEADER + 1)
        self.group = group
        self.device = f"{town.database(group)}.d"
        self.query = f"select x from {self.device}"
        #: The newest value whose write began, and the newest acknowledged value.
        self.begun = self.acknowledged = 0
        self.write(LEADER)
        for number in range(3):
            town.nodes.run(number, self.query)

    def write(self, number: int) -> None:
        self.begun += 1
        self.town.insert(number, self.device, [0], [self.begun], DataType.INT64)
        self.acknowledged = self.begun

    def read(self, number: int, consistency: str) -> tuple[int, bool]:
        """Read the register; return its value, and True if the value may be stale."""
        rows, stale = self.town.read(number, self.query, consistency)
        ((_, value),) = rows
        assert isinstance(value, int)
        return value, stale

    def check(self, number: int, consistency: str) -> str:
        """Read a value, check the guarantee of `consistency`, and return the outcome: fresh, stale or failed."""
        acknowledged, began = self.acknowledged, time.monotonic()
        try:
            value, stale = self.read(number, consistency)
        except StorageError as error:
            if (consistency, error.code) != ("strong", NO_LEADER):
                raise
            return "failed"
        finally:
            assert time.monotonic() - began < read_views.STRONG_SECONDS + PATIENCE_S
        assert POISON != value
        assert value <= self.begun
        if consistency == "strong" or (consistency == "mid" and not stale):
            assert acknowledged <= value
        assert not (stale and consistency != "mid")
        return "stale" if stale else "fresh"

    def poison(self, number: int) -> object:
        """Propose a write, without retries, at a node that may no longer be the leader, but believes that it is."""
        column = Column.of(DataType.INT64, [POISON])
        frame = encode_tablet(Tablet(self.device, ("x",), np.array([0]), (column,), False))
        command = encode_command(NO_REQUEST, Mutation(tablets=[PlacedTablet(2, frame)]))
        return self.town.host(number).propose(self.group, command)

    def agree(self) -> None:
        """Wait until all nodes return the newest value at every consistency."""
        for number in range(3):
            wait_until(lambda n=number: self.check(n, "strong") == "fresh")
            wait_until(lambda n=number: self.read(n, "mid") == (self.acknowledged, False))
            wait_until(lambda n=number: self.read(n, "weak") == (self.acknowledged, False))


@contextmanager
def hurried() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_views, "STRONG_SECONDS", HURRIED_SECONDS)
        patch.setattr(write_coordinator, "SEE_SECONDS", HURRIED_SECONDS)
        yield


@contextmanager
def reading(read: Callable[[], object]) -> Iterator[list[object]]:
    """Call `read` repeatedly in a thread while the block runs, and yield the list of its answers."""
    stop, answers = threading.Event(), []

    def run() -> None:
        while not stop.is_set():
            answers.append(read())

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run)
        try:
            yield answers
        finally:
            stop.set()
            future.result()


@pytest.mark.parametrize("reader", [LEADER, FOLLOWER])
@pytest.mark.parametrize("writer", [LEADER, FOLLOWER, OTHER])
def test_connected_nodes_see_what_was_acknowledged_a_moment_ago(register: Register, reader: int, writer: int) -> None:
    for _ in range(10):
        register.write(writer)
        assert "fresh" == register.check(reader, "strong")
        assert register.check(reader, "mid") in ("fresh", "stale")
        assert "fresh" == register.check(reader, "weak")
    wait_until(lambda: register.read(reader, "mid") == (register.acknowledged, False))
    wait_until(lambda: register.read(reader, "weak") == (register.acknowledged, False))


def test_a_follower_that_is_cut_off(register: Register) -> None:
    town = register.town
    before = register.acknowledged
    town.weather.isolate(FOLLOWER + 1)
    register.write(LEADER)
    with hurried():
        assert "failed" == register.check(FOLLOWER, "strong")
        assert (before, True) == register.read(FOLLOWER, "mid")
        assert (before, False) == register.read(FOLLOWER, "weak")
        assert ([(1,)], True) == town.read(FOLLOWER, f"count timeseries {register.device}.*", "mid")
        assert ([(1,)], False) == town.read(FOLLOWER, f"count timeseries {register.device}.*", "weak")
        with pytest.raises(StorageError) as caught:
            town.read(FOLLOWER, f"count timeseries {register.device}.*", "strong")
        assert NO_LEADER == caught.value.code
    assert "fresh" == register.check(OTHER, "strong")
    town.weather.heal()
    register.agree()


@pytest.mark.parametrize("cut", ["isolated", "deaf", "isolated, and its clock stands still"])
def test_a_leader_that_is_cut_off_and_does_not_know_yet_shows_nothing_old_as_new(register: Register, cut: str) -> None:
    """1. The leader is cut off: no message reaches it. Its own messages are lost as well, except in the case "deaf". If
    its clock stands still, it continues to believe that it leads. 2. Clients then read from it at every consistency,
    and one write to it is never committed. 3. The other nodes elect a leader, and continue to write. 4. The links heal.
    """
    town, weather = register.town, register.town.weather
    others = (FOLLOWER + 1, OTHER + 1)
    with hurried():
        if cut == "deaf":
            for other in others:
                weather.cut(other, LEADER + 1)
        else:
            weather.isolate(LEADER + 1)
        if "clock" in cut:
            town.nodes.clocks[LEADER].stop()
        poison = None if cut == "deaf" else register.poison(LEADER)
        kinds = itertools.cycle(["strong", "weak", "mid", "weak"])
        with reading(lambda: register.check(LEADER, next(kinds))) as answers:
            wait_until(lambda: town.host(FOLLOWER).leader_of(register.group) in others)
            for _ in range(5):
                register.write(OTHER)
            seen = len(answers)
            wait_until(lambda: len(answers) >= seen + 8)
        if "clock" in cut:
            assert LEADER + 1 == town.host(LEADER).leader_of(register.group)
    assert "failed" in answers
    assert "stale" in answers
    weather.heal()
    town.nodes.clocks[LEADER].go_on()
    register.agree()
    if poison is not None:
        with pytest.raises((ProposalLost, NotLeader)):
            poison.result(PATIENCE_S)


def test_reads_beside_writes_never_go_back_at_one_node(register: Register) -> None:
    """A weak read may return an old value, but never a value older than that of an earlier read at the same node."""
    for consistency in ("strong", "weak"):
        with reading(lambda c=consistency: register.read(FOLLOWER, c)[0]) as answers:
            for number in (LEADER, OTHER) * 15:
                register.write(number)
        assert sorted(answers) == answers
        assert len(answers) > 2


def test_the_driver_tells_which_results_may_be_stale(served: Town) -> None:
    """All results come from one node, since a connection stays at its first node as long as that node answers."""
    town = served
    town.arrange_leaders(of_all=LEADER)
    register = Register(town)
    target = f"saros://{town.nodes.servers[FOLLOWER].address}"
    with saros.connect(target, consistency="mid", timestamps="epoch") as connection:
        cursor = connection.cursor()

        def found() -> tuple[bool, int]:
            cursor.execute(register.query)
            return cursor.stale, cursor.fetchall()[0][1]

        wait_until(lambda: found() == (False, register.acknowledged))
        town.weather.isolate(FOLLOWER + 1)
        register.write(LEADER)
        for _ in range(3):
            assert (True, register.acknowledged - 1) == found()
        with saros.connect(target, consistency="weak", timestamps="epoch") as weak:
            assert not weak.execute(register.query).stale
        town.weather.heal()
        wait_until(lambda: found() == (False, register.acknowledged))


def test_a_node_that_comes_back_does_not_take_series_that_it_does_not_know_for_none(tmp_path: Path) -> None:
    """The node has no replica of the group with the series, and no strong read has updated its schema yet."""
    with a_town(tmp_path, 3, 1) as town:
        device = f"{town.database(GroupId(3))}.d"
        town.insert(0, device, [1], [1], DataType.INT64)
        town.nodes.stop(0)
        town.nodes.start(0)
        wait_until(lambda: town.database_of(0)._parts.schema.version > 0)
        for consistency in ("weak", "mid"):
            assert [(1, 1)] == town.read(0, f"select x from {device}", consistency)[0]
        town.insert(1, f"{device}2", [1], [2], DataType.INT64)
        wait_until(lambda: [(1, 2)] == town.read(0, f"select x from {device}2", "weak")[0])
        town.nodes.stop(0)
        town.nodes.stop(2)
        town.nodes.start(0)
        wait_until(lambda: town.database_of(0)._parts.schema.version > 0)
        for consistency in ("weak", "mid"):
            with pytest.raises(
                StorageError, match=r"group 3: node 3\) has no replica that provides its schema"
            ) as caught:
                town.read(0, f"select x from {device}", consistency)
            assert 2016 == caught.value.code
