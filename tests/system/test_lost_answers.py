"""Answers between nodes are lost after a command took effect: the repeated command has no second effect (M-O).

The client calls a node that leads no group, so this node forwards every command to another node. After the answer is
lost, and before the command is sent again, another client changes the same object. The repeated command must not undo
that change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from system.town import WEEK, Served, Town, a_town
from waiting import wait_until

import saros
from saros_cluster.database.read_index import CATCH_UP
from saros_cluster.placement.ring import NodeId
from saros_cluster.routing.proposer import PROPOSE
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType
from saros_storage.base.write_request import WriteRequest

pytestmark = pytest.mark.slow

LEADER, COORDINATOR = 0, 1


@pytest.fixture(scope="module", params=[3, 1], ids=lambda replicas: f"{replicas} replicas")
def whole_town(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with a_town(tmp_path_factory.mktemp("town"), 3, request.param, Served) as town:
        yield town


@pytest.fixture
def town(whole_town: Town) -> Iterator[Town]:
    if len(whole_town.routing().members(whole_town.routing().groups[0])) == 3:
        whole_town.arrange_leaders(of_all=LEADER)
    yield whole_town
    whole_town.weather.heal()


@pytest.fixture
def client(town: Town) -> Iterator[saros.Connection]:
    target = f"saros://{town.nodes.servers[COORDINATOR].address}"
    with saros.connect(target, timestamps="epoch") as connection:
        yield connection


def new_database(town: Town) -> str:
    """Return the name of a database whose group is led by a node other than the client's."""
    routing = town.routing()
    group = next(g for g in routing.groups if routing.members(g)[0] != NodeId(COORDINATOR + 1))
    return town.database(group)


def lose(
    town: Town, name: str, answers: int, then: Callable[[], object] | None = None, *, group: int | None = None
) -> None:
    """Lose only replies to the client's node; other nodes make calls of the same names."""
    town.weather.lose(name, answers, then, group=group, to=COORDINATOR + 1)


def lost(town: Town) -> int:
    return town.weather.lost[PROPOSE]


@pytest.mark.parametrize("kind", ["statement", "batch"])
@pytest.mark.parametrize("known", [True, False])
def test_an_insert(town: Town, client: saros.Connection, kind: str, *, known: bool) -> None:
    device, before = f"{new_database(town)}.d", lost(town)
    if known:
        town.insert(LEADER, device, [1, 2], [0.0, 0.0], DataType.DOUBLE)
        town.on_all(f"select x from {device}")
    elif kind == "statement":
        town.nodes.run(LEADER, f"create database {device.removesuffix('.d')}")
    then = None if not known else lambda: town.insert(LEADER, device, [2], [9.0], DataType.DOUBLE)
    lose(town, PROPOSE, 3, then)
    if kind == "statement":
        assert 2 == client.execute(f"insert into {device}(time, x) values (1, 1), (2, 1)").rowcount
    else:
        assert 2 == client.insert(device, [1, 2], {"x": [1.0, 1.0]})
    assert lost(town) > before
    town.weather.heal()
    expected = [(1, 1.0), (2, 9.0 if known else 1.0)]
    assert [expected] * 3 == town.on_all(f"select x from {device}")


def test_a_deletion(town: Town, client: saros.Connection) -> None:
    device, before = f"{new_database(town)}.d", lost(town)
    town.insert(LEADER, device, [1, 2, WEEK], [1.0, 2.0, 3.0], DataType.DOUBLE)
    group = town.routing().schema_group(device.removesuffix(".d"))
    lose(town, PROPOSE, 2, lambda: town.insert(LEADER, device, [2], [9.0], DataType.DOUBLE), group=group)
    client.execute(f"delete from {device}.x where time >= 2")
    assert lost(town) == before + 2
    assert [[(1, 1.0), (2, 9.0)]] * 3 == town.on_all(f"select x from {device}")


def test_creating_and_dropping_a_database(town: Town, client: saros.Connection) -> None:
    name, before = new_database(town), lost(town)
    lose(town, PROPOSE, 1, lambda: town.nodes.run(LEADER, f"drop database {name}"))
    client.execute(f"create database {name}")
    if lost(town) > before:  # the database was created and dropped, and the repeated command does not create it
        assert [[]] * 3 == town.on_all(f"show databases {name}")
        client.execute(f"create database {name}")
    assert [1] * 3 == [len(rows) for rows in town.on_all(f"show databases {name}")]
    town.insert(LEADER, f"{name}.d", [1, WEEK], [1.0, 2.0], DataType.DOUBLE)
    lose(town, PROPOSE, 3)
    client.execute(f"drop database {name}")
    town.weather.heal()
    assert [[]] * 3 == town.on_all(f"show databases {name}")
    client.execute(f"insert into {name}.d(time, x) values (2, 'text now')")
    assert [[(2, "text now")]] * 3 == town.on_all(f"select x from {name}.d")
    assert lost(town) > before


def test_creating_altering_and_dropping_series(town: Town, client: saros.Connection) -> None:
    device, before = f"{new_database(town)}.d", lost(town)
    town.nodes.run(LEADER, f"create database {device.removesuffix('.d')}")
    lose(town, PROPOSE, 1, lambda: town.nodes.run(LEADER, f"delete timeseries {device}.x"))
    client.execute(f"create timeseries {device}.x with datatype=int32")
    assert lost(town) == before + 1
    assert [[]] * 3 == town.on_all(f"show timeseries {device}.*")
    for answers in (1, 4):
        lose(town, PROPOSE, answers)
        client.execute(f"create timeseries {device}.y{answers} with datatype=int32")
        lose(town, PROPOSE, answers)
        client.execute(f"alter timeseries {device}.y{answers} add tags unit=m{answers}")
        town.weather.heal()
    shown = town.on_all(f"show timeseries {device}.*")
    assert [shown[0]] * 3 == shown
    assert [f"{device}.y1", f"{device}.y4"] == [row[0] for row in shown[0]]
    assert all('"unit":"m' in str(row).replace(" ", "") for row in shown[0])
    lose(town, PROPOSE, 4)
    assert 2 == client.execute(f"delete timeseries {device}.y1, {device}.y4").rowcount
    town.weather.heal()
    assert [[]] * 3 == town.on_all(f"show timeseries {device}.*")


def test_answers_of_catching_up(town: Town, client: saros.Connection) -> None:
    device = f"{new_database(town)}.d"
    lose(town, CATCH_UP, 2)
    client.execute(f"insert into {device}(time, x) values (1, 1), ({WEEK}, 2), ({2 * WEEK}, 3)")
    lose(town, CATCH_UP, 2)
    assert [(1, 1.0), (WEEK, 2.0), (2 * WEEK, 3.0)] == client.execute(f"select x from {device}").fetchall()


def test_a_write_whose_answers_are_all_lost_is_unknown_and_had_one_effect(town: Town) -> None:
    device = f"{new_database(town)}.d"
    town.insert(LEADER, device, [1], [0.0], DataType.DOUBLE)
    town.on_all(f"select x from {device}")
    lose(town, PROPOSE, 1_000_000)
    target = f"saros://{town.nodes.servers[COORDINATOR].address}"
    with saros.connect(target, failover_s=0) as client, pytest.raises(saros.OperationalError) as caught:
        client.insert(device, [1], {"x": [1.0]})
    assert "OUTCOME_UNKNOWN" == caught.value.status
    town.weather.heal()
    assert [[(1, 1.0)]] * 3 == town.on_all(f"select x from {device}")


# ---------------------------------------------------------------------- a client that asks another node again


def test_a_request_that_comes_again_by_another_node_is_answered_as_done(town: Town) -> None:
    """Act like a driver whose node died before it answered: send the same request numbers to another node."""
    database = new_database(town)
    statements = [
        f"create database {database}",
        f"create timeseries {database}.d.x with datatype=double",
        f"create timeseries {database}.other.e.y with datatype=double",
        f"insert into {database}.d(time, x) values (1, 1), ({WEEK}, 1)",
        f"insert into {database}.d(time, z) values (1, 'new')",
        f"delete from {database}.d.z",
    ]
    for sequence, statement in enumerate(statements, 1):
        for number in (COORDINATOR, LEADER, 2):
            town.nodes.run(number, statement, request=WriteRequest(99, sequence))
            if "1, 1" in statement:
                town.insert(2, f"{database}.d", [1], [9.0], DataType.DOUBLE)
    assert [[(1, 9.0), (WEEK, 1.0)]] * 3 == town.on_all(f"select x from {database}.d")
    with pytest.raises(UserMistake) as caught:
        town.nodes.run(COORDINATOR, statements[1], request=WriteRequest(99, 50))
    assert 503 == caught.value.code
    with pytest.raises(UserMistake) as caught:
        town.nodes.run(COORDINATOR, statements[0], request=WriteRequest(99, 51))
    assert 501 == caught.value.code


def test_a_node_that_stops_takes_no_answer_with_it(town: Town, client: saros.Connection) -> None:
    """The coordinator forwards a client's write to a leader that stops; another leader executes the write once."""
    if len(town.routing().members(town.routing().groups[0])) == 1:
        pytest.skip("nobody else can lead")
    device = f"{new_database(town)}.d"
    town.insert(LEADER, device, [1], [0.0], DataType.DOUBLE)
    town.on_all(f"select x from {device}")
    lose(town, PROPOSE, 1, lambda: town.weather.isolate(LEADER + 1))
    assert 1 == client.insert(device, [1], {"x": [1.0]})
    town.weather.heal()
    town.nodes.wait_ready()
    wait_until(lambda: [[(1, 1.0)]] * 3 == town.on_all(f"select x from {device}"))
