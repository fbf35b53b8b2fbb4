"""The routing of a row to its group."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from saros_cluster.placement.ring import NodeId
from saros_cluster.routing.routes import Routes
from saros_cluster.routing.routing import Routing
from saros_cluster.topology.commands import Begin, Fenced, Opened, Proceed
from saros_cluster.topology.topology import META, Node, Topology
from saros_cluster.topology.transitions import apply
from saros_storage.base.block import Column
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import DataType
from saros_storage.mutation.mutation import PlacedTablet
from saros_storage.mutation.tablet_codec import TabletFrame, decode_tablet
from saros_storage.scan.reading import TimeRange

NODES = [NodeId(n) for n in (1, 2, 3, 4, 5)]
ROUTING = Routing(Topology.first({node: Node(f"host{node}:1", f"host{node}:2") for node in NODES}, 3, 10_000), 100)


def placed(times: list[int]) -> PlacedTablet:
    values = np.array(times, np.int64)
    tablet = Tablet("root.a.d", ("x",), values, (Column(DataType.INT64, values * 10),), False)
    return PlacedTablet(2, TabletFrame.of_tablet(tablet))


def test_a_tablet_of_one_slice_goes_as_it_is() -> None:
    tablet = placed([100, 150, 199])
    assert [(ROUTING.group_at("root.a", 1), "root.a", 1, tablet)] == list(ROUTING.split_tablet(tablet))


def test_a_tablet_of_many_slices_is_cut_at_their_borders() -> None:
    times = [-1, 0, 99, 100, 350, 201]
    found = list(ROUTING.split_tablet(placed(times)))
    slices = (-1, 0, 1, 2, 3)
    assert [(ROUTING.group_at("root.a", n), "root.a", n) for n in slices] == [rows[:3] for rows in found]
    parts = [decode_tablet(rows.tablet.frame) for rows in found]
    assert [[-1], [0, 99], [100], [201], [350]] == [part.times.tolist() for part in parts]
    assert [[-10], [0, 990], [1000], [2010], [3500]] == [part.columns[0].to_list() for part in parts]


def test_the_groups_of_a_range_are_those_of_its_slices() -> None:
    time = TimeRange(150, 401)
    assert sorted({ROUTING.group_at("root.a", n) for n in (1, 2, 3, 4)}) == ROUTING.groups_for("root.a", time)
    assert ROUTING.groups == ROUTING.groups_for("root.a", TimeRange())


def test_a_range_without_bounds_stands_for_the_groups_of_the_registered_slices() -> None:
    partitions = dict.fromkeys((3, 4, 900), 1)
    owners = [ROUTING.group_at("root.a", n) for n in (3, 4, 900)]
    assert sorted(set(owners)) == ROUTING.groups_for("root.a", TimeRange(), partitions)
    assert sorted(set(owners[:2])) == ROUTING.groups_for("root.a", TimeRange(0, 500), partitions)
    assert sorted({owners[1]}) == ROUTING.groups_for("root.a", TimeRange(499, 500), partitions)
    assert [] == ROUTING.groups_for("root.a", TimeRange(500, 90_000), partitions)
    grown = {**partitions, 901: 2}
    assert sorted({*owners, ROUTING.group_at("root.a", 901)}) == ROUTING.groups_for("root.a", TimeRange(), grown)


def test_the_meta_group_is_of_all_nodes_and_a_data_group_of_its_own() -> None:
    assert set(NODES) == set(ROUTING.members(META))
    for group in ROUTING.groups:
        members = ROUTING.members(group)
        assert (group, 3) == (members[0], len(members))
    assert [len(ROUTING.groups_of(node)) for node in NODES] == [3] * 5


def test_who_was_refused_waits_for_a_newer_table_by_which_all_slots_are_open() -> None:
    first = Topology.first({node: Node(f"host{node}:1", f"host{node}:2") for node in NODES}, 3, 10_000)
    routes = Routes(first, 100)
    refused = routes.now
    assert not routes.await_open(refused, 0.01)
    fenced = apply(first, Begin(leaving=(NodeId(5),)), 2)
    assert fenced.change is not None
    for index, step in enumerate([Proceed(2), Fenced(2, 0, 17)], 3):
        fenced = apply(fenced, step, index)
    routes.learn(fenced)
    assert not routes.now.is_open
    assert not routes.await_open(refused, 0.01)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(routes.await_open, refused, 60.0)
        group = fenced.change.moves[0].target
        routes.learn(apply(fenced, Opened(2, 0, fenced.wanted[group].version), 5))
        assert waiting.result()
    assert routes.now.is_open
    assert not routes.await_open(routes.now, 0.01)
