"""Tasks that write, tested without Spark: rows by device, errors for unsuitable rows, tablets and sealed files."""

from __future__ import annotations

import itertools
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace
from system.town import Served

import saros
from saros_spark.base.errors import SourceError
from saros_spark.base.options import Connecting, WriteOptions
from saros_spark.write import tsfile_output, writing
from saros_spark.write.rows import first_misfit, shape_of, split_rows
from saros_spark.write.writing import Attempt, Receipt, commit, discard, prepare, write_rows

INSTANT = pa.timestamp("us", "UTC")
WEEK = 604_800_000
#: Numbers that make the jobs' names unique.
NUMBERS = itertools.count()


def batch(**columns: Any) -> pa.RecordBatch:
    arrays = {name: values if isinstance(values, pa.Array) else pa.array(values) for name, values in columns.items()}
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


@pytest.fixture
def options(url: str, folder: Path, request: pytest.FixtureRequest) -> WriteOptions:
    method = getattr(request, "param", "tablet")
    if method == "uploaded":
        return WriteOptions(Connecting(url), method="bulk")
    return WriteOptions(Connecting(url), method=method, bulk_folder=str(folder / "files"))


def face(options: WriteOptions) -> str:
    """Return a text for the method of writing, for use in names."""
    return f"{options.method}_{'shared' if options.bulk_folder else 'sent'}"


both = pytest.mark.parametrize("options", ["tablet", "bulk", "uploaded"], indirect=True)


def write(options: WriteOptions, *batches: pa.RecordBatch, job: str = "j", overwrite: bool = False) -> list[Receipt]:
    """Run a job with one task per batch; return the receipts."""
    schema = batches[0].schema
    job = f"{job}-{next(NUMBERS)}"
    made = prepare(schema, options, job, overwrite=overwrite)
    receipts = [
        write_rows([part], schema, options, Attempt(job, number, 0), made) for number, part in enumerate(batches)
    ]
    commit(receipts, options, made)
    return receipts


def answers(options: WriteOptions, text: str) -> list[tuple[Any, ...]]:
    with saros.connect(options.connecting.url, timestamps="epoch") as connection:
        return connection.execute(text).fetchall()


def test_rows_keep_their_order_within_a_device() -> None:
    part = batch(
        time=[5, 1, 3, 5], device=["root.b", "root.a", "root.b", "root.b"], x=[1.0, 2.0, 3.0, None], y=[None] * 4
    )
    found = list(split_rows(part, shape_of(part.schema, WriteOptions(Connecting("u"))), 0))
    assert [("root.b", [5, 3, 5], {"x": [1.0, 3.0, None]}), ("root.a", [1], {"x": [2.0]})] == [
        (rows.device, rows.times.to_pylist(), {n: c.to_pylist() for n, c in rows.columns.items()}) for rows in found
    ]


@pytest.mark.parametrize(
    ("columns", "layout", "said"),
    [
        ({"device": ["root.a"], "x": [1]}, "by_device", "needs the columns time, device; time is missing"),
        ({"time": [1], "x": [1]}, "by_device", "the option device is not given"),
        ({"time": ["1"], "device": ["root.a"], "x": [1]}, "by_device", "column time must be a timestamp, or a bigint"),
        ({"time": [1], "device": ["root.a"]}, "by_device", "no column of values"),
        ({"time": [1], "device": ["root.a"], "value": [1]}, "narrow", "measurement is missing"),
    ],
)
def test_a_frame_of_another_shape_is_refused(columns: dict[str, Any], layout: Any, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        shape_of(batch(**columns).schema, WriteOptions(Connecting("u"), layout=layout))


def test_the_first_misfit_is_found() -> None:
    values = pa.array([1, None, 2**31 - 1, 2**31, 5, 2**40])
    assert 3 == first_misfit(values, pa.int32())
    assert first_misfit(values.slice(0, 3), pa.int32()) is None


@both
def test_all_layouts_write_the_same_points(options: WriteOptions) -> None:
    name = f"root.{face(options)}"
    when = pa.array([1000, 2000, 1000], INSTANT)
    write(
        options,
        batch(time=when, device=[f"{name}.a", f"{name}.a", f"{name}.b"], x=[1.0, None, 3.0], s=[None, "é", "u"]),
    )
    narrow = replace(options, layout="narrow")
    write(narrow, batch(time=when, device=[f"{name}.c"] * 3, measurement=["x", "x", "p q"], value=[1.0, 2.0, 3.0]))
    write(
        replace(options, layout="by_time"),
        batch(time=when.slice(0, 2), **{f"{name}.e.x": [1, 2], f"{name}.f.x": [3, None]}),
    )
    write(replace(options, device=f"{name}.g"), batch(time=when.slice(0, 1), flag=[True]))
    assert [(1, f"{name}.a", 1.0, None), (2, f"{name}.a", None, "é"), (1, f"{name}.b", 3.0, "u")] == answers(
        options, f"select x, s from {name}.a, {name}.b align by device"
    )
    assert [(1, 3.0, 1.0), (2, None, 2.0)] == answers(options, f"select `p q`, x from {name}.c")
    assert [(1, 1, 3), (2, 2, None)] == answers(options, f"select x from {name}.e, {name}.f")
    assert [(1, True)] == answers(options, f"select flag from {name}.g")


@both
def test_a_task_that_runs_again_leaves_the_same(options: WriteOptions) -> None:
    name = f"root.again_{face(options)}"
    part = batch(time=np.arange(100), device=[f"{name}.d"] * 100, x=np.arange(100.0))
    job = prepare(part.schema, options, f"twice-{next(NUMBERS)}", overwrite=False)
    lost = write_rows([part], part.schema, options, Attempt(job.name, 0, 0), job)
    receipt = write_rows([part], part.schema, options, Attempt(job.name, 0, 1), job)
    assert 100 == lost.rows == receipt.rows
    assert set(lost.files).isdisjoint(receipt.files)
    commit([receipt], options, job)
    assert [(100,)] == answers(options, f"select count(x) from {name}.d")


@pytest.mark.parametrize("options", ["tablet"], indirect=True)
def test_a_misfit_names_its_row_and_counts_the_refused_batches(options: WriteOptions) -> None:
    with saros.connect(options.connecting.url) as connection:
        for device in "de":
            connection.execute(f"create timeseries root.misfit.{device}.x INT32")
    for devices, said in (("d", "1 batch was refused"), ("de", "2 batches were refused")):
        part = batch(
            time=[5] * len(devices), device=[f"root.misfit.{name}" for name in devices], x=["a"] * len(devices)
        )
        with pytest.raises(SourceError, match=rf"root\.misfit\.d at 5: x is INT32, and 'a' .* is not; {said}$"):
            write(options, part)


@pytest.mark.parametrize("options", ["bulk"], indirect=True)
def test_files_are_seen_only_after_the_commit(options: WriteOptions, folder: Path) -> None:
    part = batch(time=[1, 2], device=["root.later.d"] * 2, x=[1.0, 2.0])
    job = prepare(part.schema, options, "late", overwrite=False)
    receipt = write_rows([part], part.schema, options, Attempt("late", 0, 0), job)
    assert [] == answers(options, "select x from root.later.d")
    discard(options, job)
    assert [] == list((folder / "files").iterdir())
    with pytest.raises(FileNotFoundError):  # an attempt that still runs is fenced off
        write_rows([part], part.schema, options, Attempt("late", 0, 1), job)
    with pytest.raises(SourceError, match="0 of 1 files are loaded"):
        commit([receipt], options, job)
    assert [] == answers(options, "select x from root.later.d")


@pytest.mark.parametrize("options", ["bulk", "uploaded"], indirect=True)
def test_a_commit_that_is_cut_after_the_server_carried_it_out_has_one_effect(
    options: WriteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All answers are lost, and another client writes the same points before the statements are repeated."""
    monkeypatch.setattr(writing, "_COMMIT_PAUSE_S", 0.0)
    name = f"root.cut_{face(options)}"
    scope = replace(options, devices=(f"{name}.**",))
    parts = [batch(time=[1, 2], device=[f"{name}.d{number}"] * 2, x=[1.0, 2.0]) for number in range(2)]
    write(options, batch(time=[2, 3], device=[f"{name}.d0"] * 2, x=[-2.0, -3.0]))
    job = prepare(parts[0].schema, scope, f"cut-{next(NUMBERS)}", overwrite=True)
    receipts = [
        write_rows([part], part.schema, scope, Attempt(job.name, number, 0), job) for number, part in enumerate(parts)
    ]
    lost: list[str] = []
    real = saros.Connection.execute

    def execute(connection: saros.Connection, text: str, *rest: Any, **given: Any) -> saros.Cursor:
        cursor = real(connection, text, *rest, **given)
        if text.startswith(("load", "delete")) and text not in lost:
            lost.append(text)
            with saros.connect(options.connecting.url) as other:
                other.insert(f"{name}.d0", [2], {"x": [20.0 + len(lost)]})
            raise saros.OperationalError("the answer is lost", 2016)
        return cursor

    monkeypatch.setattr(saros.Connection, "execute", execute)
    monkeypatch.setattr(writing, "_COMMIT_ATTEMPTS", 4)
    commit(receipts, scope, job)
    assert ["delete", "load", "load"] == [text.split()[0] for text in lost]
    assert [(1, 1.0), (2, 23.0)] == answers(options, f"select x from {name}.d0")
    assert [(1, 1.0), (2, 2.0)] == answers(options, f"select x from {name}.d1")


@pytest.mark.parametrize("options", ["bulk"], indirect=True)
def test_a_commit_that_comes_again_as_a_whole_has_one_effect(
    options: WriteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit has more files than a node remembers sequence numbers for each client."""
    monkeypatch.setattr(writing, "SEQUENCES_KEPT", 2)
    monkeypatch.setattr(writing, "discard", lambda *_: None)
    part = batch(time=[1, 2], device=["root.whole.d"] * 2, x=[1.0, 2.0])
    job = prepare(part.schema, options, f"whole-{next(NUMBERS)}", overwrite=False)
    receipts = [write_rows([part], part.schema, options, Attempt(job.name, number, 0), job) for number in range(5)]
    commit(receipts, options, job)
    with saros.connect(options.connecting.url) as connection:
        connection.insert("root.whole.d", [2], {"x": [20.0]})
    commit(receipts, options, job)
    assert [(1, 1.0), (2, 20.0)] == answers(options, "select x from root.whole.d")


@pytest.mark.parametrize("options", ["bulk"], indirect=True)
def test_sealed_rows_are_sorted_and_of_equal_times_the_last(options: WriteOptions) -> None:
    """The rows are late, repeat times with nulls, span several slices, and have declared types; memory is scarce."""
    with saros.connect(options.connecting.url) as connection:
        connection.execute("create timeseries root.seal.d.i with datatype=INT32, encoding=RLE")
        connection.execute("create aligned timeseries root.seal.l(i INT32, s STRING)")
    times = [3 * WEEK, 5, 5, 1, 5, WEEK]
    for device in ("d", "l"):
        part = batch(
            time=times, device=[f"root.seal.{device}"] * 6, i=[1, 2, 3, 4, None, 5], s=["a", "b", None, "d", None, "f"]
        )
        write(replace(options, bulk_points=7), part.slice(0, 3), part.slice(3), job=f"seal-{device}")
        expected = [(1, 4, "d"), (5, 3, "b"), (WEEK, 5, "f"), (3 * WEEK, 1, "a")]
        assert expected == answers(options, f"select i, s from root.seal.{device}")
    assert "INT32" == answers(options, "show timeseries root.seal.d.i")[0][3]


@both
def test_a_row_that_does_not_fit_is_named(options: WriteOptions) -> None:
    name = f"root.fit_{face(options)}"
    with saros.connect(options.connecting.url) as connection:
        connection.execute(f"create timeseries {name}.d.i with datatype=INT32")
    device = [f"{name}.d"] * 3
    for bad, said in [
        (batch(time=[1, 2, 3], device=device, i=[1, 2**40, 2**41]), rf"{name}\.d at 2: i is INT32, and 1099511627776"),
        (batch(time=[1, 2, 3], device=device, i=[None, "x", "y"]), rf"{name}\.d at 2: i is INT32, and 'x'"),
        (batch(time=[1, 2, 3], device=device, i=[None, 0.5, 1.0]), rf"{name}\.d at 2: i is INT32, and 0\.5"),
        (
            batch(time=pa.array([1000, 1001], INSTANT), device=device[:2], i=[1, 2]),
            r"finer than the database's unit, ms",
        ),
        (batch(time=[1, None, 3], device=device, i=[1, 2, 3]), "time is null in row 1"),
        (batch(time=[1, 2], device=[device[0], None], i=[1, 2]), "device is null in row 1"),
        (batch(time=[1], device=["pump"], i=[1]), "device 'pump'"),
    ]:
        with pytest.raises(SourceError, match=said):
            write(options, bad, job=f"bad-{abs(hash(said))}")


@both
def test_overwrite_replaces_what_the_options_describe(options: WriteOptions) -> None:
    name = f"root.over_{face(options)}"
    old = batch(time=[1, 2, 3, 4], device=[f"{name}.d"] * 4, x=[1.0, 2.0, 3.0, 4.0])
    write(options, old, job="old")
    new = batch(time=[3], device=[f"{name}.d"], x=[30.0])
    with pytest.raises(SourceError, match="give devices"):
        write(options, new, overwrite=True, job="new")
    scope = replace(options, devices=(f"{name}.*",), start="2", end="4")
    write(scope, new, overwrite=True, job="new")
    assert [(1, 1.0), (3, 30.0), (4, 4.0)] == answers(options, f"select x from {name}.d")
    for bad, said in [
        (batch(time=[3, 4], device=[f"{name}.d"] * 2, x=[1.0, 2.0]), "at 4 is outside"),
        (batch(time=[3], device=["root.other.d"], x=[1.0]), "outside the replaced devices"),
    ]:
        with pytest.raises(SourceError, match=said):
            write(scope, bad, overwrite=True, job=f"bad-{len(said)}")


# ---------------------------------------------------------------------------------------------- uploaded files


def test_uploaded_files_are_seen_after_the_commit_and_a_job_that_is_over_takes_no_more(url: str, folder: Path) -> None:
    options = WriteOptions(Connecting(url), method="bulk")
    uploads = folder / "data" / "uploads"
    part = batch(time=[1, 2], device=["root.sent.d"] * 2, x=[1.0, 2.0])
    job = prepare(part.schema, options, "sent", overwrite=False)
    receipt = write_rows([part], part.schema, options, Attempt("sent", 0, 0), job)
    lost = write_rows([part], part.schema, options, Attempt("sent", 0, 1), job)
    assert 2 == len(list(uploads.rglob("*.tsfile")))
    assert set(receipt.files).isdisjoint(lost.files)
    assert [] == answers(options, "select x from root.sent.d")
    commit([receipt], options, job)
    commit([], options, job)
    assert [(1, 1.0), (2, 2.0)] == answers(options, "select x from root.sent.d")

    with pytest.raises(saros.ProgrammingError, match="job sent has ended"):
        write_rows([part], part.schema, options, Attempt("sent", 0, 2), job)
    assert [] == list(uploads.iterdir())


def test_a_job_that_is_given_up_leaves_nothing(url: str, folder: Path) -> None:
    options = WriteOptions(Connecting(url), method="bulk")
    part = batch(time=[1, 2], device=["root.given.d"] * 2, x=[1.0, 2.0])
    job = prepare(part.schema, options, "given", overwrite=False)
    receipt = write_rows([part], part.schema, options, Attempt("given", 0, 0), job)
    discard(options, job)
    discard(options, job)
    assert [] == list((folder / "data" / "uploads").iterdir())
    with pytest.raises(SourceError, match="0 of 1 files are loaded"):
        commit([receipt], options, job)
    assert [] == answers(options, "show devices root.given.**")


def test_uploaded_files_come_to_their_groups_on_a_cluster(tmp_path: Path) -> None:
    with closing(Served(tmp_path, 3, 1)) as town:
        addresses = ",".join(server.address for server in town.servers.values())
        options = WriteOptions(Connecting(f"saros://{addresses}"), method="bulk")
        devices = [f"root.town{number}.d" for number in range(6)]
        parts = [
            batch(time=[1, WEEK, 2 * WEEK] * 3, device=[d for d in some for _ in range(3)], x=np.arange(9.0))
            for some in (devices[:3], devices[3:])
        ]
        receipts = write(options, *parts)
        assert [9, 9] == [len(receipt.files) for receipt in receipts]  # one file for each database and slice
        for device in devices:
            assert [(3,)] == answers(options, f"select count(x) from {device}")


@pytest.mark.parametrize("options", ["bulk"], indirect=True)
def test_files_for_databases_that_are_not_there_are_taken_as_they_are(options: WriteOptions, folder: Path) -> None:
    devices = ["root.hall1.a.d", "root.hall1.d", "root.hall2.a.d"]
    part = batch(time=[1] * 3, device=devices, x=[1.0, 2.0, 3.0])
    job = prepare(part.schema, options, "halls", overwrite=False)
    receipt = write_rows([part], part.schema, options, Attempt("halls", 0, 0), job)
    sealed = {Path(file).read_bytes() for file in receipt.files}
    assert 2 == len(sealed)  # one file for each database that LOAD creates
    commit([receipt], options, job)
    for device, value in zip(devices, (1.0, 2.0, 3.0), strict=True):
        assert [(1, value)] == answers(options, f"select x from {device}")
    taken = {path.read_bytes() for path in (folder / "data").rglob("*.tsfile")}
    assert sealed <= taken


@both
@pytest.mark.parametrize("shown_max", [20_000, 3])
def test_of_many_devices_each_keeps_its_types_and_alignment(
    options: WriteOptions, shown_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tsfile_output, "_SHOWN_MAX", shown_max)  # an answer that reaches this limit is not used
    root = f"root.many_{face(options)}_{shown_max}"
    with saros.connect(options.connecting.url) as connection:
        connection.execute(f"create aligned timeseries {root}.b.d0(x FLOAT encoding=RLE)")
        connection.execute(f"create timeseries {root}.b.d3.x with datatype=INT64, encoding=PLAIN")
    devices = [f"{root}.b.d{number}" for number in range(5)] + [f"{root}.c"]
    part = batch(time=[1] * 6, device=devices, x=pa.array(range(6), pa.int32()))
    write(options, part)
    write(options, part.set_column(0, "time", pa.array([2] * 6)))
    with saros.connect(options.connecting.url, timestamps="epoch") as connection:
        for number, device in enumerate(devices):
            assert [(1, number), (2, number)] == connection.execute(f"select x from {device}").fetchall()
        shown = {row[0]: row[3:5] for row in connection.execute(f"show timeseries {root}.**")}
        aligned = {row[0]: row[1] for row in connection.execute(f"show devices {root}.**")}
    expected = dict.fromkeys((f"{device}.x" for device in devices), ("INT32", "TS_2DIFF"))
    expected |= {f"{devices[0]}.x": ("FLOAT", "RLE"), f"{devices[3]}.x": ("INT64", "PLAIN")}
    assert expected == shown
    assert {device: "true" if device == devices[0] else "false" for device in devices} == aligned


@both
@pytest.mark.parametrize("type_", [pa.null(), pa.int64(), pa.string(), pa.float64()], ids=str)
def test_columns_of_nulls_are_absent(options: WriteOptions, type_: pa.DataType) -> None:
    name = f"root.null_{face(options)}_{type_}"
    device, when, nulls = f"{name}.d", [1, 2], pa.nulls(2, type_)
    with saros.connect(options.connecting.url) as connection:
        for declared in ("BOOLEAN", "INT32", "TEXT", "TIMESTAMP"):
            connection.execute(f"create timeseries {device}.of_{declared} {declared}")
    columns = {f"of_{declared}": nulls for declared in ("BOOLEAN", "INT32", "TEXT", "TIMESTAMP")}
    write(options, batch(time=when, device=[device] * 2, fresh=nulls, p=[1.5, 2.5], **columns))
    by_time = {f"{device}.{measurement}": column for measurement, column in columns.items()}
    write(replace(options, layout="by_time"), batch(time=when, **by_time, **{f"{name}.e.fresh": nulls}))
    narrow = replace(options, layout="narrow")
    for measurement in (*columns, "fresh"):
        write(narrow, batch(time=when, device=[device] * 2, measurement=[measurement] * 2, value=nulls))
    assert [(1, 1.5), (2, 2.5)] == answers(options, f"select p from {device}")
    assert ["of_BOOLEAN", "of_INT32", "of_TEXT", "of_TIMESTAMP", "p"] == [
        row[0].rpartition(".")[2] for row in answers(options, f"show timeseries {name}.**")
    ]
