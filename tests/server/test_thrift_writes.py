"""Writes of IoTDB's session protocol: the rows that they store, the statuses of their parts, and refusals."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from server.test_thrift_tablets import ints, text, times

from saros_cluster.users.commands import CreateUser
from saros_cluster.users.directory import FileDirectory
from saros_server.api.calls import Peer
from saros_server.api.client_api import ClientApi
from saros_server.api.errors import BadMessage
from saros_server.api.session import EmbeddedSession
from saros_server.auth.passwords import Cost, hash_password
from saros_server.thrift import structs
from saros_server.thrift.methods import METHODS
from saros_server.thrift.sessions import NotLoggedIn, ThriftSession, WrongCall
from saros_server.thrift.status_codes import merged, success
from saros_server.thrift.structs import EndPoint, Status
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import UserMistake
from saros_storage.io.disk import LocalDisk

CHEAP = Cost(10)
ROOT, ANN = "the root's password", "the password of ann"
INT32, TEXT = 1, 5
PEER = Peer.at("127.0.0.1")
Opened = Callable[..., ThriftSession]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ClientApi]:
    (tmp_path / "saros.toml").write_text('password_cost = 10\ndurability = "os"\n')
    users = FileDirectory(str(tmp_path), LocalDisk())
    users.change(CreateUser("root", hash_password(ROOT, CHEAP), administrator=True))
    users.change(CreateUser("ann", hash_password(ANN, CHEAP)))
    made = ClientApi(str(tmp_path), SystemClock(), authentication=True)
    yield made
    made.close()


def opened(api: ClientApi, user: str, password: str) -> ThriftSession:
    session = ThriftSession(api, PEER)
    session.open(structs.OpenSession(zone="UTC", user=user, password=password))
    return session


@pytest.fixture
def session(api: ClientApi) -> Iterator[ThriftSession]:
    made = opened(api, "root", ROOT)
    yield made
    made.close()


def call(session: ThriftSession, name: str, request: object) -> Status:
    status = METHODS[name].run(session, request)
    assert isinstance(status, Status)
    return status


def rows(session: ThriftSession, query: str) -> list[dict[str, Any]]:
    """Return all rows of a query, in which times are numbers."""
    own: EmbeddedSession = session.api._own
    outcome, found = own.execute(query, (), None), []
    while (batch := outcome.next_batch()) is not None:
        found += batch.to_pylist()
    return [{k: int(v.timestamp() * 1000) if k == "Time" else v for k, v in row.items()} for row in found]


def tablet(device: str, columns: dict[str, tuple[int, bytes]], *at: int, **others: Any) -> structs.InsertTablet:
    values = b"".join(data for _, data in columns.values())
    types = [type_ for type_, _ in columns.values()]
    return structs.InsertTablet(0, device, list(columns), values, times(*at), types, len(at), **others)


def number(value: int) -> bytes:
    return struct.pack(">Bi", INT32, value)


def letters(value: bytes) -> bytes:
    return struct.pack(">Bi", TEXT, len(value)) + value


def records(*given: tuple[str, int, str, bytes]) -> structs.InsertRecords:
    devices, at, names, values = zip(*given, strict=True)
    return structs.InsertRecords(0, list(devices), [[name] for name in names], list(values), list(at))


def codes(status: Status) -> list[int]:
    return [part.code for part in status.parts or ()]


def test_a_tablet_is_written_with_its_nulls(session: ThriftSession) -> None:
    request = tablet("root.a.d", {"i": (INT32, ints(1, 2)), "t": (TEXT, text(b"x", b"") + b"\x00\x01\x02")}, 1, 2)
    assert Status(200) == call(session, "insertTablet", request)
    expected = [{"Time": 1, "root.a.d.i": 1, "root.a.d.t": "x"}, {"Time": 2, "root.a.d.i": 2, "root.a.d.t": None}]
    assert expected == rows(session, "select i, t from root.a.d")


def test_times_may_come_in_any_order_and_twice(session: ThriftSession) -> None:
    call(session, "insertTablet", tablet("root.a.d", {"i": (INT32, ints(1, 2, 3))}, 5, 5, 4))
    expected = [{"Time": 4, "root.a.d.i": 3}, {"Time": 5, "root.a.d.i": 2}]
    assert expected == rows(session, "select i from root.a.d")


@pytest.mark.parametrize("aligned", [False, True])
def test_a_new_device_is_aligned_if_the_tablet_says_so(session: ThriftSession, *, aligned: bool) -> None:
    call(session, "insertTablet", tablet("root.a.d", {"i": (INT32, ints(1))}, 1, aligned=aligned))
    call(session, "insertTablet", tablet("root.a.d", {"i": (INT32, ints(2))}, 2, aligned=not aligned))
    assert [str(aligned).lower()] == [row["IsAligned"] for row in rows(session, "show devices root.a.d")]
    assert [{"count(root.a.d.i)": 2}] == rows(session, "select count(i) from root.a.d")


def test_a_tablet_without_rows_writes_nothing(session: ThriftSession) -> None:
    assert Status(200) == call(session, "insertTablet", tablet("root.a.d", {"i": (INT32, b"")}))
    assert [] == rows(session, "show devices root.a.d")


@pytest.mark.parametrize("others", [{"compressed": True}, {"to_table": True}], ids=["compressed", "for a table"])
def test_a_tablet_that_saros_has_not_is_refused(session: ThriftSession, others: dict[str, bool]) -> None:
    with pytest.raises(WrongCall, match=r"turn compression off|no table model"):
        call(session, "insertTablet", tablet("root.a.d", {"i": (INT32, ints(1))}, 1, **others))
    assert [] == rows(session, "show devices root.a.d")


def test_tablets_of_one_device_are_written_in_their_order(session: ThriftSession) -> None:
    given = [tablet("root.a.d", {"i": (INT32, ints(n))}, 1) for n in range(20)]
    given += [tablet(f"root.a.e{n}", {"i": (INT32, ints(n))}, 1) for n in range(70)]
    request = structs.InsertTablets(
        0,
        [each.device for each in given],
        [each.measurements for each in given],
        [each.values for each in given],
        [each.times for each in given],
        [each.types for each in given],
        [each.rows for each in given],
    )
    assert Status(200) == call(session, "insertTablets", request)
    assert [{"Time": 1, "root.a.d.i": 19}] == rows(session, "select i from root.a.d")
    assert [{"sum(root.a.e69.i)": 69.0}] == rows(session, "select sum(i) from root.a.e69")
    assert [{"count(devices)": 71}] == rows(session, "count devices root.a.*")


def test_a_part_that_fails_leaves_the_others(session: ThriftSession) -> None:
    call(session, "insertRecords", records(("root.a.d", 1, "i", number(1)), ("root.a.e", 1, "i", number(1))))
    request = records(("root.a.d", 2, "i", number(2)), ("root.a.e", 2, "i", letters(b"x")))
    status = call(session, "insertRecords", request)
    assert (302, [200, 507]) == (status.code, codes(status))
    assert status.message == "root.a.e.i is INT32: a column of TEXT does not fit"
    expected = [{"Time": 1, "root.a.d.i": 1, "root.a.e.i": 1}, {"Time": 2, "root.a.d.i": 2, "root.a.e.i": None}]
    assert expected == rows(session, "select i from root.a.d, root.a.e")


def test_a_record_of_another_type_fails_alone(session: ThriftSession) -> None:
    request = records(
        ("root.a.d", 1, "i", number(1)), ("root.a.d", 2, "i", letters(b"x")), ("root.a.d", 3, "i", number(3))
    )
    status = call(session, "insertRecords", request)
    assert (302, [200, 507, 200]) == (status.code, codes(status))
    assert [1, 3] == [row["Time"] for row in rows(session, "select i from root.a.d")]


def test_records_that_cannot_be_read_write_nothing(session: ThriftSession) -> None:
    with pytest.raises(BadMessage):
        call(session, "insertRecords", records(("root.a.d", 1, "i", number(1)), ("root.a.e", 1, "i", b"\x01\x00")))
    with pytest.raises(UserMistake):
        call(session, "insertRecords", records(("root.a.d", 1, "i", number(1)), ("elsewhere", 1, "i", number(1))))
    assert [] == rows(session, "show devices root.a.*")


def test_records_of_one_device_may_have_different_measurements(session: ThriftSession) -> None:
    request = structs.InsertRecordsOfOneDevice(
        0, "root.a.d", [["a"], ["b"], ["a"]], [number(1), letters(b"y"), number(3)], [1, 2, 2]
    )
    assert Status(200) == call(session, "insertRecordsOfOneDevice", request)
    expected = [{"Time": 1, "root.a.d.a": 1, "root.a.d.b": None}, {"Time": 2, "root.a.d.a": 3, "root.a.d.b": "y"}]
    assert expected == rows(session, "select a, b from root.a.d")


def test_one_record_is_written(session: ThriftSession) -> None:
    request = structs.InsertRecord(0, "root.a.d", ["i", "`a b`", "n"], number(1) + letters(b"x") + b"\xfe", -5)
    assert Status(200) == call(session, "insertRecord", request)
    assert [{"Time": -5, "root.a.d.i": 1, "root.a.d.`a b`": "x"}] == rows(session, "select i, `a b` from root.a.d")
    assert [{"count(timeseries)": 2}] == rows(session, "count timeseries root.a.d.*")


def test_no_records_are_written_at_once(session: ThriftSession) -> None:
    assert Status(200) == call(session, "insertRecords", structs.InsertRecords(0, [], [], [], []))
    assert Status(200) == call(session, "insertStringRecords", structs.InsertStringRecords(0, [], [], [], []))


def test_texts_have_the_types_of_an_insert(session: ThriftSession) -> None:
    given = {
        "a": "1",
        "b": "-1.5e3",
        "c": "TRUE",
        "d": "it's",
        "e": "NaN",
        "f": "'q'",
        "g": '"w"',
        "h": "X'01ff'",
        "j": "",
        "k": "1f",
        "l": "2024-01-01",
        "m": "x'); delete from root.** --",
    }
    request = structs.InsertStringRecord(0, "root.a.d", list(given), list(given.values()), 1)
    assert Status(200) == call(session, "insertStringRecord", request)
    (found,) = rows(session, "select * from root.a.d")
    expected = {"Time": 1, "a": 1.0, "b": -1500.0, "c": True, "d": "it's", "f": "q", "g": "w", "h": b"\x01\xff"}
    expected |= {"j": "", "k": "1f", "l": "2024-01-01", "m": "x'); delete from root.** --"}
    assert expected == {k.removeprefix("root.a.d."): v for k, v in found.items() if k != "root.a.d.e"}
    assert str(found["root.a.d.e"]) == "nan"


def test_texts_become_values_of_their_series(session: ThriftSession) -> None:
    session.run("create aligned timeseries root.a.d(i INT32, t TEXT, ts TIMESTAMP, da DATE, b BOOLEAN)")
    names, values = ["i", "t", "ts", "da", "b"], ["7", "1.50", "1970-01-01T00:00:01Z", "2024-02-29", "true"]
    request = structs.InsertStringRecordsOfOneDevice(0, "root.a.d", [names] * 2, [values, ["x"] * 5], [1, 2])
    status = call(session, "insertStringRecordsOfOneDevice", request)
    assert (302, [507, 507]) == (status.code, codes(status))
    assert "6 of 10 points of root.a.d were written" in (status.message or "")
    first, second = rows(session, "select i, t, cast(ts as INT64), cast(da as TEXT), b from root.a.d")
    assert [1, 7, "1.50", 1000, "2024-02-29", True] == list(first.values())
    assert [2, None, "x", None, None, None] == list(second.values())


def test_a_record_of_texts_needs_a_value_for_each_measurement(session: ThriftSession) -> None:
    request = structs.InsertStringRecords(0, ["root.a.d"] * 2, [["i", "j"]] * 2, [["1", "2"], ["1"]], [1, 2])
    with pytest.raises(BadMessage, match="2 measurements and 1 values"):
        call(session, "insertStringRecords", request)
    assert [] == rows(session, "show devices root.a.*")


@pytest.mark.parametrize("name", [name for name in METHODS if name.startswith("testInsert")])
def test_calls_that_test_the_connection_write_nothing(session: ThriftSession, name: str) -> None:
    assert Status(200) == call(session, name, tablet("root.a.d", {"i": (INT32, ints(1))}, 1))
    assert [] == rows(session, "show devices root.a.d")


@pytest.mark.parametrize("name", [name for name in METHODS if "Insert" in name or name.startswith("insert")])
def test_a_write_needs_a_session(api: ClientApi, name: str) -> None:
    given: dict[str, object] = {
        "insertTablet": tablet("root.a.d", {"i": (INT32, ints(1))}, 1),
        "insertTablets": structs.InsertTablets(0, ["root.a.d"], [["i"]], [ints(1)], [times(1)], [[INT32]], [1]),
        "insertRecord": structs.InsertRecord(0, "root.a.d", ["i"], number(1), 1),
        "insertRecords": records(("root.a.d", 1, "i", number(1)), ("root.a.e", 1, "i", number(1))),
        "insertRecordsOfOneDevice": structs.InsertRecordsOfOneDevice(0, "root.a.d", [["i"]], [number(1)], [1]),
        "insertStringRecord": structs.InsertStringRecord(0, "root.a.d", ["i"], ["1"], 1),
        "insertStringRecords": structs.InsertStringRecords(0, ["root.a.d"], [["i"]], [["1"]], [1]),
        "insertStringRecordsOfOneDevice": structs.InsertStringRecordsOfOneDevice(0, "root.a.d", [["i"]], [["1"]], [1]),
    }
    with pytest.raises(NotLoggedIn):
        call(ThriftSession(api, PEER), name, given.get(name))


def test_a_user_without_the_privilege_writes_nothing(api: ClientApi, session: ThriftSession) -> None:
    session.run("create timeseries root.a.d.i INT32")
    session.run("create timeseries root.a.e.i INT32")
    session.run("grant WRITE_DATA on root.a.d.** to user ann")
    ann = opened(api, "ann", ANN)
    status = call(ann, "insertRecords", records(("root.a.d", 1, "i", number(1)), ("root.a.e", 1, "i", number(1))))
    assert (302, [200, 803]) == (status.code, codes(status))
    assert [{"count(root.a.d.i)": 1, "count(root.a.e.i)": 0}] == rows(session, "select count(i) from root.a.*")
    ann.close()


def test_a_write_that_another_node_leads_names_it() -> None:
    assert Status(400, redirect=EndPoint("::1", 6668)) == success("[::1]:6668")
    parts = [Status(200), success("b:6667")]
    assert Status(400, parts=parts) == merged(parts)
