"""Calls of IoTDB's session protocol that concern databases, series, templates or deletions."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from server.thrift_client import Failed, ThriftClient, ThriftServer, checked

from saros_server.thrift import structs
from saros_server.thrift.structs import Status

INT32, DOUBLE, TEXT = 1, 4, 5
PLAIN, RLE, GORILLA = 0, 2, 8
SNAPPY, LZ4 = 1, 7


@pytest.fixture
def client(tmp_path: Path) -> Iterator[ThriftClient]:
    server = ThriftServer(tmp_path)
    with server.connect() as made:
        made.open()
        yield made
    server.close()


def texts(client: ThriftClient, statement: str, *columns: str) -> list[tuple[str | None, ...]]:
    """Return the rows of a statement, sorted and reduced to the given columns."""
    result = client.execute(statement)
    places = [result.answer.columns.index(column) for column in columns]
    found = [tuple(row[place] for place in places) for row in result.all()]
    return sorted(tuple(None if cell is None else cell.decode() for cell in row) for row in found)


def refused(client: ThriftClient, code: int, name: str, request: object, *, bare: bool = False) -> str:
    with pytest.raises(Failed) as failed:
        client.done(name, request, bare=bare)
    assert code == failed.value.code
    return str(failed.value)


# ---------------------------------------------------------------------------------------------- databases and series


def test_databases_are_created_and_deleted(client: ThriftClient) -> None:
    for name in ("root.a", "root.`b c`", "root.c.d"):
        client.done("setStorageGroup", structs.SetStorageGroup(1, name), bare=True)
    refused(client, 501, "setStorageGroup", structs.SetStorageGroup(1, "root.a"), bare=True)
    client.done("deleteStorageGroups", structs.Paths(1, ["root.a", "root.c.*"]), bare=True)
    assert [("root.`b c`",)] == texts(client, "show databases", "Database")
    refused(client, 508, "deleteStorageGroups", structs.Paths(1, ["root.nothing"]), bare=True)


def test_a_series_is_created_with_all_that_it_has(client: ThriftClient) -> None:
    request = structs.CreateTimeseries(
        1,
        "root.a.d.`x y`",
        DOUBLE,
        GORILLA,
        SNAPPY,
        {},
        {"unit": "it's", "k": "v"},
        {"a": "b"},
        "the alias",
    )
    client.done("createTimeseries", request)
    columns = ("Timeseries", "Alias", "DataType", "Encoding", "Compression", "Tags", "Attributes")
    assert [
        (
            "root.a.d.`x y`",
            "`the alias`",
            "DOUBLE",
            "GORILLA",
            "SNAPPY",
            '{"unit":"it\'s","k":"v"}',
            '{"a":"b"}',
        )
    ] == texts(client, "show timeseries", *columns)
    refused(client, 503, "createTimeseries", structs.CreateTimeseries(1, "root.a.d.`x y`", TEXT, PLAIN, LZ4))
    request = structs.CreateTimeseries(1, "root.a.d.z", DOUBLE, GORILLA, LZ4, {"deadband": "sdt"})
    assert "property deadband" in refused(client, 300, "createTimeseries", request)


def test_types_encodings_and_compressors_that_are_not_known_are_named(client: ThriftClient) -> None:
    for numbers, what in (((99, PLAIN, LZ4), "data type 99"), ((INT32, 99, LZ4), "encoding 99")):
        assert what in refused(client, 507, "createTimeseries", structs.CreateTimeseries(1, "root.a.d.x", *numbers))
    assert "compressor 3" in refused(
        client, 507, "createTimeseries", structs.CreateTimeseries(1, "root.a.d.x", INT32, PLAIN, 3)
    )


def test_aligned_series_are_created_together(client: ThriftClient) -> None:
    request = structs.CreateAlignedTimeseries(
        1,
        "root.a.d",
        ["x", "y z"],
        [INT32, TEXT],
        [RLE, PLAIN],
        [LZ4, SNAPPY],
        ["", "why"],
        [{"k": "v"}, {}],
        [{}, {"a": "b"}],
    )
    client.done("createAlignedTimeseries", request)
    columns = ("Timeseries", "Alias", "DataType", "Encoding", "Compression", "Tags", "Attributes")
    assert [
        ("root.a.d.`y z`", "why", "TEXT", "PLAIN", "SNAPPY", None, '{"a":"b"}'),
        ("root.a.d.x", None, "INT32", "RLE", "LZ4", '{"k":"v"}', None),
    ] == texts(client, "show timeseries", *columns)
    assert [("true",)] == texts(client, "show devices", "IsAligned")
    short = structs.CreateAlignedTimeseries(1, "root.a.e", ["x", "y"], [INT32], [RLE], [LZ4])
    assert "2 series and 1 data types" in refused(client, 303, "createAlignedTimeseries", short)


def test_each_of_several_series_is_created_for_itself(client: ThriftClient) -> None:
    paths = ["root.a.d.x", "root.a.d.x", "root.a..y", "root.a.e.z"]
    request = structs.CreateMultiTimeseries(1, paths, [INT32] * 4, [PLAIN] * 4, [LZ4] * 4, aliases=["p", "q", "r", "s"])
    status = client.call("createMultiTimeseries", request, Status)
    assert (302, [200, 503, 509, 200]) == (status.code, [part.code for part in status.parts])
    assert [("root.a.d.x", "p"), ("root.a.e.z", "s")] == texts(client, "show timeseries", "Timeseries", "Alias")
    client.done("createMultiTimeseries", structs.CreateMultiTimeseries(1, ["root.a.f.z"], [INT32], [PLAIN], [LZ4]))


def test_series_and_data_are_deleted(client: ThriftClient) -> None:
    client.execute("insert into root.a.d(time, x, y) values (1, 1, 1), (2, 2, 2), (3, 3, 3)")
    client.done("deleteData", structs.DeleteData(1, ["root.a.d.x", "root.a.*.x"], -(2**63), 2))
    assert [(1, None, 1.0), (2, None, 2.0), (3, 3.0, 3.0)] == client.execute("select x, y from root.a.d").all()
    client.done("deleteTimeseries", structs.Paths(1, ["root.a.d.x", "root.a.*.y"]), bare=True)
    assert [] == texts(client, "show timeseries", "Timeseries")
    refused(client, 508, "deleteTimeseries", structs.Paths(1, ["root.a.d.x"]), bare=True)


@pytest.mark.parametrize(
    "path", ["root.a; drop user ann", "root.a'", "root.a b", "root.", "a", "", "root.a.d where 1 = 1"]
)
def test_paths_are_no_sql(client: ThriftClient, path: str) -> None:
    for name, request, bare in (
        ("setStorageGroup", structs.SetStorageGroup(1, path), True),
        ("deleteStorageGroups", structs.Paths(1, [path]), True),
        ("createTimeseries", structs.CreateTimeseries(1, path, INT32, PLAIN, LZ4), False),
        ("createAlignedTimeseries", structs.CreateAlignedTimeseries(1, path, ["x"], [1], [0], [7]), False),
        ("deleteTimeseries", structs.Paths(1, [path]), True),
        ("deleteData", structs.DeleteData(1, [path], 0, 1), False),
        ("setSchemaTemplate", structs.SetTemplate(1, "t", path), False),
        ("unsetSchemaTemplate", structs.UnsetTemplate(1, path, "t"), False),
    ):
        refused(client, 509, name, request, bare=bare)
    assert [("ann",), ("root",)] == texts(client, "list user", "User")


def test_calls_about_nothing_are_refused(client: ThriftClient) -> None:
    for name in ("deleteStorageGroups", "deleteTimeseries"):
        assert "names no paths" in refused(client, 301, name, structs.Paths(1, []), bare=True)


# ---------------------------------------------------------------------------------------------- templates


def serialized(name: str, aligned: bool, *series: tuple[str, str, int, int, int]) -> bytes:
    """Return a template in the encoding that the Java and Python clients use."""

    def text(value: str) -> bytes:
        return struct.pack(">i", len(value.encode())) + value.encode()

    rows = [text(prefix) + bytes([aligned]) + text(node) + bytes(numbers) for prefix, node, *numbers in series]
    return text(name) + bytes([aligned]) + b"".join(rows)


def asked(client: ThriftClient, kind: int, name: str = "t 1", measurement: str = "") -> structs.QueryTemplateAnswer:
    request = structs.QueryTemplate(1, name, kind, measurement)
    return checked(client.call("querySchemaTemplate", request, structs.QueryTemplateAnswer))


def test_a_template_is_made_extended_set_used_and_dropped(client: ThriftClient) -> None:
    columns = (("", "x", INT32, RLE, LZ4), ("", "y z", TEXT, PLAIN, SNAPPY))
    client.done("createSchemaTemplate", structs.CreateTemplate(1, "t 1", serialized("t 1", True, *columns)))
    request = structs.AppendTemplate(1, "t 1", True, ["w"], [DOUBLE], [GORILLA], [LZ4])
    client.done("appendSchemaTemplate", request)
    columns = ("ChildNodes", "DataType", "Encoding", "Compression")
    assert [
        ("`y z`", "TEXT", "PLAIN", "SNAPPY"),
        ("w", "DOUBLE", "GORILLA", "LZ4"),
        ("x", "INT32", "RLE", "LZ4"),
    ] == texts(client, "show nodes in device template `t 1`", *columns)
    client.done("setStorageGroup", structs.SetStorageGroup(1, "root.a"), bare=True)
    client.done("setSchemaTemplate", structs.SetTemplate(1, "t 1", "root.a"))
    client.done("createTimeseriesUsingSchemaTemplate", structs.ActivateTemplate(1, ["root.a.d"]))
    assert ["t 1"] == asked(client, 4).measurements
    assert (3, True, False) == (
        asked(client, 0).count,
        asked(client, 1, measurement="x").result,
        asked(client, 2).result,
    )
    assert {"x", "`y z`", "w"} == set(asked(client, 3).measurements)
    assert (["root.a"], ["root.a.d"]) == (asked(client, 5).measurements, asked(client, 6).measurements)
    refused(client, 515, "unsetSchemaTemplate", structs.UnsetTemplate(1, "root.a", "t 1"))
    client.execute("deactivate device template `t 1` from root.a.d")
    client.done("unsetSchemaTemplate", structs.UnsetTemplate(1, "root.a", "t 1"))
    client.done("dropSchemaTemplate", structs.DropTemplate(1, "t 1"))
    assert [] == asked(client, 4).measurements


def test_what_templates_cannot_do_is_refused(client: ThriftClient) -> None:
    refused(client, 300, "pruneSchemaTemplate", structs.PruneTemplate(1, "t", "x"))
    nested = serialized("t", False, ("GPS", "x", INT32, RLE, LZ4))
    assert "GPS is a second" in refused(client, 510, "createSchemaTemplate", structs.CreateTemplate(1, "t", nested))
    whole = serialized("t", False, ("", "x", INT32, RLE, LZ4))
    for data in (b"", whole[:-1], whole[:8], whole[:4] + b"\xff" + whole[5:], b"\x7f\xff\xff\xff"):
        request = structs.CreateTemplate(1, "t", data)
        assert "a template that cannot be read" in refused(client, 303, "createSchemaTemplate", request)
    refused(client, 507, "dropSchemaTemplate", structs.DropTemplate(1, "missing"))
    with pytest.raises(Failed, match="query 9 of templates"):
        asked(client, 9)
