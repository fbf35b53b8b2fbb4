"""SHOW SENDERS, SYNC, RECEIVERS; TRANSFER DEVICE, DROP SENDER; queries over devices of several senders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from storage.store_model import delete_points, write_rows
from sync.sync_world import Direct, Edge

import saros
from saros_cluster.users.effective_privileges import Granted, Rights
from saros_cluster.users.privileges import Privilege
from saros_engine.base.access import Access, NoPermission
from saros_server.api.session import EmbeddedSession, open_session
from saros_storage.io.disk import LocalDisk
from saros_sync.receiver.receiver import Receiver
from saros_sync.sender.folder import ReceiverOptions, SenderFolder


@pytest.fixture
def session(tmp_path: Path) -> Iterator[EmbeddedSession]:
    made = open_session(str(tmp_path / "centre"), time_zone="+00:00", options={"durability": "os"})
    yield made
    made.close()


def ask(session: EmbeddedSession, statement: str) -> list[dict[str, object]]:
    outcome = session.execute(statement, [], None)
    rows: list[dict[str, object]] = []
    while (batch := outcome.next_batch()) is not None:
        rows += batch.to_pylist()
    outcome.close()
    return rows


def edge_to(session: EmbeddedSession) -> Edge:
    receiver = session.node.receiver
    assert isinstance(receiver, Receiver)
    return Edge(Direct(lambda: receiver))


def test_who_sent_what_is_shown_and_changes_hands(session: EmbeddedSession) -> None:
    assert [] == ask(session, "show senders")
    first, second = edge_to(session), edge_to(session)
    first.tell(write_rows("root.a.d1", range(250), 1), write_rows("root.a.d2", [1], 1))
    second.tell(write_rows("root.a.d1", range(10), 2), write_rows("root.b.c.d1", [2], 2))
    first.sync()
    second.sync()
    shown = {str(row["Sender"]): row for row in ask(session, "show senders")}
    assert {first.id, second.id} == set(shown)
    row = shown[second.id]
    assert ("edge", 1, 1, 1) == (row["Name"], row["Round"], row["Devices"], row["Refused"])
    assert 3 == shown[first.id]["Files"]
    assert (None, None) == (row["Receiving"], row["Lacking"])
    assert str(row["Committed"]).startswith("20")
    (refused,) = ask(session, "show sync")
    assert (second.id, "root.a.d1") == (refused["Sender"], refused["Device"])
    assert first.id in str(refused["Owner"])
    count = "select count(x) from root.a.d1"
    assert [250] == list(ask(session, count)[0].values())
    session.execute(f"transfer device root.a.d1 to sender '{second.id}'", [], None)
    assert [10] == list(ask(session, count)[0].values())
    assert [first.id] == [row["Sender"] for row in ask(session, "show sync")]
    assert 1 == session.execute(f"drop sender '{first.id}'", [], None).update_count
    assert ["root.a.d1", "root.b.c.d1"] == [row["Device"] for row in ask(session, "show devices")]


def test_queries_over_devices_of_senders_and_of_the_server_are_one(session: EmbeddedSession) -> None:
    edges = [edge_to(session), edge_to(session)]
    session.execute("insert into root.a.own(time, x) values (1, 100), (150, 101), (1000, 102)", [], None)
    edges[0].tell(write_rows("root.a.d1", range(0, 300, 3), 1), write_rows("root.a.d1", range(50), 2))
    edges[1].tell(write_rows("root.a.d2", range(0, 300, 2), 1), delete_points(["root.a.d2.x"], 100, 200))
    for edge in edges:
        edge.sync()
    (counts,) = ask(session, "select count(x) from root.a.* align by time")
    assert {"count(root.a.d1.x)": 133, "count(root.a.d2.x)": 100, "count(root.a.own.x)": 3} == counts
    assert 133 == len(ask(session, "select x from root.a.d1"))
    last = {str(row["Timeseries"]): str(row["Value"]) for row in ask(session, "select last x from root.a.*")}
    assert {"root.a.d1.x", "root.a.d2.x", "root.a.own.x"} == set(last)
    assert "102.0" == last["root.a.own.x"]
    windows = ask(session, "select count(x) from root.a.d2 group by ([0, 300), 100ms)")
    assert [50, 0, 50] == [row["count(root.a.d2.x)"] for row in windows]
    edges[1].tell(write_rows("root.a.d2", [500], 3))
    edges[1].sync()
    (row,) = ask(session, "select last x from root.a.d2")
    assert "00.500Z" in str(row["Time"]) or "500000" in str(row["Time"])
    assert 101 == len(ask(session, "select x from root.a.d2"))


def test_a_user_sends_what_it_may_write_and_nothing_else(session: EmbeddedSession) -> None:
    rights = Rights([Granted(Privilege.WRITE_DATA, "root.a.**"), Granted(Privilege.WRITE_SCHEMA, "root.a.**")])
    session.set_access(Access("ann", rights, "ann 1"), None)
    receiver, speaker = session.receive()
    edge = Edge(Direct(lambda: receiver, speaker))
    edge.tell(write_rows("root.a.d1", [1], 1), write_rows("root.b.c.d1", [2], 2))
    assert ["root.b.c.d1"] == [conflict.device for conflict in edge.sync().conflicts]
    assert "ann" == receiver.catalog.senders[edge.id].user
    with pytest.raises(NoPermission):
        session.execute("show senders", [], None)
    for others in (Rights([]), Rights([Granted(Privilege.READ_DATA, "root.**")])):
        session.set_access(Access("bob", others, "bob 1"), None)
        with pytest.raises(NoPermission):
            session.receive()


def test_mistakes_are_told(session: EmbeddedSession) -> None:
    edge = edge_to(session)
    edge.tell(write_rows("root.a.d1", [1], 1))
    edge.sync()
    for statement, code in (
        ("drop sender 'nobody'", 2062),
        (f"transfer device root.a.d9 to sender '{edge.id}'", 2060),
        ("insert into root.a.d1(time, x) values (2, 2)", 2061),
        ("delete from root.a.** where time < 5", 2061),
        ("delete timeseries root.a.d1.x", 2061),
        ("drop database root.a", 2061),
        ("alter timeseries root.a.d1.x upsert alias = other", 2061),
    ):
        with pytest.raises(Exception) as caught:
            session.execute(statement, [], None)
        assert (statement, code) == (statement, getattr(caught.value, "code", None))


def test_receivers_of_a_folder_are_shown_where_it_is_served(tmp_path: Path) -> None:
    with saros.connect(str(tmp_path)) as db:
        assert [] == db.cursor().execute("show receivers").fetchall()
        SenderFolder(str(tmp_path), LocalDisk()).add("centre:6667", ReceiverOptions("saros://centre:6667"))
        ((name, state, round_, *_),) = db.cursor().execute("show receivers").fetchall()
        assert ("centre_6667", "waiting", 0) == (name, state, round_)
