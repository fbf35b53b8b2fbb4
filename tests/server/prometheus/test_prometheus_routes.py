"""Remote write and remote read over HTTP: samples, matchers, refusals, limits, rights."""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from server.http.http_node import HttpNode, http_server, make_users
from server.prometheus.prometheus_client import (
    HEADERS,
    Samples,
    Selector,
    ask,
    packed,
    query,
    read,
    result,
    series,
    write,
    write_bytes,
)
from server.secured import ANN, ROOT

from saros_server.prometheus import remote_read, remote_write
from saros_storage.base.clock import SystemClock
from saros_wire.generated.prometheus_pb2 import Label, LabelMatcher, ReadRequest, TimeSeries, WriteRequest

#: The NaN with which Prometheus marks the end of a series, and the NaN that it uses as a value.
STALE, NORMAL_NAN = (
    struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF0000000000002, 0x7FF8000000000001)
)
UP = {"__name__": "up", "instance": "a:9100", "job": "node"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpNode]:
    with http_server(tmp_path_factory.mktemp("prometheus") / "data") as made:
        yield made


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[HttpNode]:
    with http_server(tmp_path / "data") as made:
        yield made


def bits(samples: Samples) -> list[tuple[int, bytes]]:
    return [(time, struct.pack("<d", value)) for time, value in samples]


# ---------------------------------------------------------------------------------------------- samples


def test_samples_are_read_as_they_were_written(empty: HttpNode) -> None:
    other = {"__name__": "up", "instance": "b:9100", "job": "node"}
    answer = write(empty.client, series(UP, [(1_000, 1), (2_000, 0.5)]), series(other, [(-5, -math.inf)]))
    assert (204, b"") == (answer.status_code, answer.content)
    assert {
        "__name__=up,instance=a:9100,job=node": [(1_000, 1), (2_000, 0.5)],
        "__name__=up,instance=b:9100,job=node": [(-5, -math.inf)],
    } == read(empty.client, ("__name__", "=", "up"))


def test_nan_keeps_its_bits_in_memory_and_in_files(empty: HttpNode) -> None:
    written = [(1, 1.0), (2, STALE), (3, NORMAL_NAN), (4, -0.0)]
    assert 204 == write(empty.client, series(UP, written)).status_code
    for statement in ("show databases", "flush"):
        empty.written(statement)
        (found,) = read(empty.client, ("__name__", "=", "up")).values()
        assert bits(written) == bits(found)


def test_late_samples_and_the_same_ones_again(empty: HttpNode) -> None:
    for samples in ([(5, 5.0), (6, 6.0)], [(1, 1.0), (5, 50.0)], [(6, 6.0)]):
        assert 204 == write(empty.client, series(UP, samples)).status_code
    assert [[(1, 1), (5, 50), (6, 6)]] == list(read(empty.client, ("__name__", "=", "up")).values())


def test_a_series_that_comes_twice_in_a_request(empty: HttpNode) -> None:
    reordered = dict(reversed(UP.items())) | {"empty": ""}
    assert 204 == write(empty.client, series(UP, [(1, 1)]), series(reordered, [(2, 2), (1, 3)])).status_code
    assert [[(1, 3), (2, 2)]] == list(read(empty.client, ("job", "=", "node")).values())


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_are_milliseconds_in_databases_of_any_unit(tmp_path: Path, unit: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "saros.toml").write_text(f'time_unit = "{unit}"\n')
    with http_server(tmp_path / "data") as node:
        assert 204 == write(node.client, series(UP, [(n, n) for n in range(10)])).status_code
        assert [[(n, n) for n in range(3, 8)]] == list(read(node.client, ("job", "=", "node"), start=3, end=7).values())
        beyond = write(node.client, series(UP, [(1 << 62, 1)]), series({"__name__": "ok"}, [(1, 1)]))
        assert (204 if unit == "ms" else 400) == beyond.status_code
        assert unit == "ms" or f"time {1 << 62} ms is out of range" in beyond.json()["message"]
        assert {"__name__=ok": [(1, 1)]} == read(node.client, ("__name__", "=", "ok"))


def test_samples_within_a_millisecond_are_read_as_the_last(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "saros.toml").write_text('time_unit = "us"\n')
    with http_server(tmp_path / "data") as node:
        node.written("insert into root.prometheus.up.`{}`(time, value) values (1000, 1), (1999, 2), (2000, 3)")
        assert {"__name__=up": [(1, 2), (2, 3)]} == read(node.client, ("__name__", "=", "up"))


def test_many_series_and_samples(empty: HttpNode) -> None:
    names = [f"s{n}" for n in range(700)]
    found = [series({"__name__": "m", "n": name}, [(t, t) for t in range(3)]) for name in names]
    assert 204 == write(empty.client, *found).status_code
    for selectors, count in (([("n", "=~", "s.*")], 700), ([("n", "=~", "s[0-4]..")], 400), ([("n", "=", "s7")], 1)):
        assert [[(0, 0), (1, 1), (2, 2)]] * count == list(
            read(empty.client, ("__name__", "=", "m"), *selectors).values()
        )
    assert (
        '"count(devices)"\n700\n'
        == empty.client.get("/query.csv", params={"sql": "count devices root.prometheus.**"}).text
    )


# ---------------------------------------------------------------------------------------------- SQL


def test_series_have_their_labels_in_sql(empty: HttpNode) -> None:
    other = {"__name__": "up", "instance": "b:9100", "job": "db"}
    assert 204 == write(empty.client, series(UP, [(1, 1)]), series(other, [(1, 4)])).status_code
    shown = empty.client.get(
        "/query.json", params={"sql": "show timeseries root.prometheus.up.** where tags(job) = 'node'"}
    ).json()
    assert 'root.prometheus.up.`{instance="a:9100",job="node"}`.value' == shown["Timeseries"]
    assert {"instance": "a:9100", "job": "node"} == json.loads(shown["Tags"])
    sums = empty.client.get(
        "/query.csv", params={"sql": "select sum(value) from root.prometheus.up.** group by tags(job)"}
    )
    assert ['"job","sum(value)"', '"db",4', '"node",1'] == sorted(
        sums.text.splitlines(), key=lambda line: line[1] != "j"
    )


def test_series_that_sql_made_are_read(empty: HttpNode) -> None:
    empty.written(
        'insert into root.prometheus.up.`{job="x"}`(time, value) values (1, 2)',
        "create timeseries root.prometheus.whole.`{}`.value with datatype=INT32",
        "insert into root.prometheus.whole.`{}`(time, value) values (1, 7)",
        "insert into root.prometheus.other(time, value) values (1, 2)",
        'insert into root.prometheus.other.`{b="1",a="2"}`(time, value) values (1, 2)',
    )
    assert {"__name__=up,job=x": [(1, 2)], "__name__=whole": [(1, 7)]} == read(empty.client, ("__name__", "=~", ".*"))


def test_values_that_are_no_numbers_are_refused(empty: HttpNode) -> None:
    empty.written("insert into root.prometheus.state.`{}`(time, value) values (1, 'on')")
    refused = write(empty.client, series({"__name__": "state"}, [(1, 1)]), series(UP, [(1, 1)]))
    assert (400, True) == (refused.status_code, "(code 507)" in refused.json()["message"])
    assert 1 == len(read(empty.client, ("__name__", "=", "up")))
    assert {} == read(empty.client, ("__name__", "=", "state"))


ODD = [
    "",
    "a b",
    'q"uote',
    "back\\slash",
    "line\nbreak",
    "tick`",
    "dot.s",
    "*",
    "**",
    "{}",
    "ü€😀",
    "\x1f",
    "a=b,c",
    "';",
    "?",
    "-- a",
    "/* a",
    "}",
    "\\n",
    '\\"',
    "\r\n",
    "\u2028",
]


def test_a_zero_byte_is_refused_and_the_other_series_are_stored(node: HttpNode) -> None:
    answer = write(
        node.client, series({"__name__": "zero", "a": "b\0c"}, [(1, 1)]), series({"__name__": "one"}, [(1, 1)])
    )
    assert (400, True) == (answer.status_code, "zero byte" in answer.text)
    assert ["__name__=one"] == list(read(node.client, ("__name__", "=~", "zero|one")))


@pytest.mark.parametrize("name", ["time", "root", "null", "timestamp"])
def test_metrics_may_be_called_like_words_of_the_language(node: HttpNode, name: str) -> None:
    assert 204 == write(node.client, series({"__name__": name, "job": "words"}, [(1, 2)])).status_code
    assert {f"__name__={name},job=words": [(1, 2)]} == read(node.client, ("__name__", "=", name), ("job", "=", "words"))


def test_labels_of_any_text(node: HttpNode) -> None:
    found = [series({"__name__": f"odd:{n}", "text": text, "x": "1"}, [(1, n)]) for n, text in enumerate(ODD)]
    strange = series({"__name__": "e 1`", "über name": "1"}, [(1, 1)])
    nameless = series({"only": "label"}, [(1, 1)])
    digits = series({"__name__": "12", "a": "b"}, [(1, 1)])
    assert 204 == write(node.client, *found, strange, nameless, digits).status_code
    for n, text in enumerate(ODD):
        labels = f"__name__=odd:{n}" + (f",text={text}" if text else "") + ",x=1"
        assert {labels: [(1, n)]} == read(node.client, ("__name__", "=", f"odd:{n}"), ("text", "=", text))
    assert ["__name__=e 1`,über name=1"] == list(read(node.client, ("über name", "!=", "")))
    assert ["only=label"] == list(read(node.client, ("__name__", "=", ""), ("only", "=", "label")))
    assert ["__name__=12,a=b"] == list(read(node.client, ("__name__", "=", "12")))


# ---------------------------------------------------------------------------------------------- matchers


MATCHED: list[tuple[list[Selector], str]] = [
    ([("job", "=", "a")], "1"),
    ([("job", "!=", "a")], "234"),
    ([("job", "=", "")], "4"),
    ([("job", "!=", "")], "123"),
    ([("job", "=~", "a|ab")], "12"),
    ([("job", "=~", "b")], ""),
    ([("job", "=~", ".*b.*")], "23"),
    ([("job", "=~", ".*")], "1234"),
    ([("job", "=~", ".+")], "123"),
    ([("job", "=~", "(?i)AB")], "2"),
    ([("job", "=~", "")], "4"),
    ([("job", "!~", "a.*")], "34"),
    ([("job", "!~", ".*")], ""),
    ([("job", "=~", "(a+)+b")], "2"),
    ([("job", "=~", "[[:alpha:]]+"), ("job", "!=", "ab")], "1"),
    ([("nothing", "=", "")], "1234"),
    ([("nothing", "!=", "")], ""),
    ([("__name__", "!=", "other")], "1234"),
    ([("__name__", "=", "other")], ""),
    ([("n", "=~", "[12]"), ("job", "=~", "a.*"), ("n", "!=", "1")], "2"),
]


@pytest.mark.parametrize(("selectors", "expected"), MATCHED, ids=[str(selectors) for selectors, _ in MATCHED])
def test_matchers_select(node: HttpNode, selectors: list[Selector], expected: str) -> None:
    jobs = {"1": "a", "2": "ab", "3": "cb\n", "4": ""}
    write(node.client, *(series({"__name__": "match", "job": job, "n": n}, [(1, 1)]) for n, job in jobs.items()))
    found = read(node.client, ("__name__", "=~", "match"), *selectors)
    assert list(expected) == [labels.rpartition("n=")[2] for labels in sorted(found, key=lambda text: text[-1])]


def test_several_queries_in_a_request(node: HttpNode) -> None:
    write(node.client, *(series({"__name__": "several", "n": str(n)}, [(n, n)]) for n in range(3)))
    wanted = [query(("__name__", "=", "several"), ("n", "=", str(n))) for n in (2, 0, 7)]
    results = result(ask(node.client, wanted)).results
    assert [[2], [0], []] == [[s.timestamp for one in found.timeseries for s in one.samples] for found in results]


@pytest.mark.parametrize("pattern", ["a(?!b)", r"(a)\1", "a{1001}", "[", "a)|(b", "(?:a{500}){500}"])
def test_a_pattern_that_is_not_linear_or_wrong_is_refused(node: HttpNode, pattern: str) -> None:
    write(node.client, series(UP, [(1, 1)]))
    answer = ask(node.client, [query(("job", "=~", pattern))])
    assert (400, True) == (answer.status_code, "is not one of RE2" in answer.json()["message"])


# ---------------------------------------------------------------------------------------------- refusals


def test_wrong_series_are_named_and_the_others_written(empty: HttpNode) -> None:
    twice = series(UP, [(1, 1)])
    twice.labels.append(Label(name="job", value="again"))
    wrong = [
        series({}, [(1, 1)]),
        twice,
        series({"__name__": "x", "": "v"}, [(1, 1)]),
        series({"__name__": "long", "text": "x" * 9_000}, [(1, 1)]),
        TimeSeries(labels=[Label(name="__name__", value="native")], histograms=[b""]),
    ]
    answer = write(empty.client, *wrong, *[series({"__name__": f"ok{n}"}, [(1, 1)]) for n in range(3)])
    message = answer.json()["message"]
    assert 400 == answer.status_code
    for part in (
        "5 series were not",
        "no labels",
        "a label twice",
        "without a name",
        "characters; at most",
        "histograms",
    ):
        assert part in message
    assert 3 == len(read(empty.client, ("__name__", "=~", "ok.")))


def test_labels_that_are_not_utf_8_are_refused(empty: HttpNode) -> None:
    body = WriteRequest(timeseries=[series({"__name__": "bad", "a": "??"}, [(1, 1)]), series(UP, [(1, 1)])])
    answer = write_bytes(empty.client, body.SerializeToString().replace(b"??", b"\xff\xfe"))
    assert (400, True) == (answer.status_code, "not UTF-8" in answer.json()["message"])
    assert 1 == len(read(empty.client, ("__name__", "=~", ".+")))


def test_bodies_that_are_no_requests(node: HttpNode, monkeypatch: pytest.MonkeyPatch) -> None:
    one = WriteRequest(timeseries=[series(UP, [(1, 1), (2, 2)])]).SerializeToString()
    posted = node.client.post
    assert 400 == posted("/api/v1/write", content=one, headers=HEADERS).status_code
    assert 400 == posted("/api/v1/write", content=packed(one)).status_code
    assert 400 == write_bytes(node.client, one[:-1]).status_code
    assert 400 == posted("/api/v1/read", content=packed(b"\xff"), headers=HEADERS).status_code
    chunked = ReadRequest(accepted_response_types=[ReadRequest.STREAMED_XOR_CHUNKS]).SerializeToString()
    assert 400 == posted("/api/v1/read", content=packed(chunked), headers=HEADERS).status_code
    unknown = query(("a", "=", "b"))
    unknown.matchers.append(LabelMatcher(name="a", type=9, value="b"))  # type: ignore[arg-type]
    assert 400 == ask(node.client, [unknown]).status_code
    version_2 = {**HEADERS, "content-type": "application/x-protobuf;proto=io.prometheus.write.v2.Request"}
    assert 415 == posted("/api/v1/write", content=packed(one), headers=version_2).status_code
    monkeypatch.setattr(remote_write, "SAMPLES_MAX", 1)
    assert 413 == write_bytes(node.client, one).status_code
    monkeypatch.setattr(remote_write, "SERIES_MAX", 0)
    assert 413 == write_bytes(node.client, one).status_code


def test_a_large_length_is_refused_before_it_is_decompressed(node: HttpNode) -> None:
    for body, status in ((b"\xff\xff\xff\xff\x0f" + bytes(99), 413), (b"\xff\xff\xff\x0f" + bytes(99), 400)):
        assert status == node.client.post("/api/v1/write", content=body, headers=HEADERS).status_code
    blanks = packed(b" " * 20_000 + b"show current_user")  # a valid block, as small as Snappy permits
    answer = node.client.post("/query", content=blanks, headers={"content-encoding": "snappy"})
    assert (200, True) == (answer.status_code, len(blanks) < 1_000)


def test_more_samples_than_a_response_has(node: HttpNode, monkeypatch: pytest.MonkeyPatch) -> None:
    write(node.client, *(series({"__name__": "large", "n": str(n)}, [(1, 1), (2, 2)]) for n in range(3)))
    monkeypatch.setattr(remote_read, "SAMPLES_MAX", 5)
    answer = ask(node.client, [query(("__name__", "=", "large"))])
    assert (400, True) == (answer.status_code, "more than 5 samples: ask for a shorter" in answer.json()["message"])
    monkeypatch.setattr(remote_read, "QUERIES_MAX", 1)
    assert 400 == ask(node.client, [query(("a", "=", "b"))] * 2).status_code


def test_a_node_that_is_read_only_asks_to_try_again(empty: HttpNode) -> None:
    empty.written("set system to readonly")
    answer = write(empty.client, series(UP, [(1, 1)]))
    assert (503, 600) == (answer.status_code, answer.json()["code"])
    assert "1" == answer.headers["retry-after"]


def test_old_samples_are_refused_and_the_others_written(empty: HttpNode) -> None:
    empty.written("create database root.prometheus with ttl=3600000")
    now = SystemClock().now_ns() // 1_000_000
    answer = write(empty.client, series(UP, [(1, 1), (now, 2)]))
    assert (400, True) == (answer.status_code, "(code 607)" in answer.json()["message"])
    assert [[(now, 2)]] == list(read(empty.client, ("job", "=", "node")).values())


# ---------------------------------------------------------------------------------------------- rights


def test_a_user_writes_and_reads_as_far_as_rights_go(tmp_path: Path) -> None:
    make_users(tmp_path / "data")
    with http_server(tmp_path / "data") as node:
        ann, root = {"auth": ("ann", ANN)}, {"auth": ("root", ROOT)}
        assert 401 == write(node.client, series(UP, [(1, 1)])).status_code
        assert 401 == ask(node.client, [query(("job", "=", "node"))]).status_code
        refused = write(node.client, series(UP, [(1, 1)]), **ann)
        assert (403, True) == (refused.status_code, "(code 803)" in refused.json()["message"])
        assert 204 == write(node.client, series(UP, [(1, 1)]), **root).status_code
        (hidden,) = result(ask(node.client, [query(("job", "=", "node"))], **ann)).results
        assert 0 == len(hidden.timeseries)
        for privilege in ("READ_DATA", "READ_SCHEMA"):
            assert 200 == node.sql(f"grant {privilege} on root.prometheus.** to user ann", **root).status_code
        (shown,) = result(ask(node.client, [query(("job", "=", "node"))], **ann)).results
        assert [(1, 1)] == [(sample.timestamp, sample.value) for sample in shown.timeseries[0].samples]
        assert 403 == write(node.client, series(UP, [(1, 2)]), **ann).status_code


# ---------------------------------------------------------------------------------------------- mistakes in requests


@pytest.mark.slow
def test_mutated_requests_are_refused_or_written(node: HttpNode, caplog: pytest.LogCaptureFixture) -> None:
    randomness = random.Random(33)
    found = [series({"__name__": "mutated", "n": str(n)}, [(n, n), (n + 1, n)]) for n in range(4)]
    bodies = {
        "/api/v1/write": WriteRequest(timeseries=found).SerializeToString(),
        "/api/v1/read": ReadRequest(queries=[query(("__name__", "=~", "mut.*"), ("n", "!=", "1"))]).SerializeToString(),
    }
    for _ in range(400):
        path, plain = randomness.choice(list(bodies.items()))
        is_plain = randomness.random() < 0.7
        body = bytearray(plain if is_plain else packed(plain))
        for _ in range(randomness.randint(1, 4)):
            body[randomness.randrange(len(body))] = randomness.randrange(256)
        sent = packed(bytes(body)) if is_plain else bytes(body)
        answer = node.client.post(path, content=sent, headers=HEADERS)
        assert answer.status_code in {200, 204, 400, 413}, (bytes(body), answer.text[:500])
    assert [] == [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert 204 == write(node.client, *found).status_code


def test_times_of_a_request_may_be_of_any_order(empty: HttpNode) -> None:
    times = np.random.default_rng(1).permutation(50).tolist()
    assert 204 == write(empty.client, series(UP, [(time, time) for time in times])).status_code
    assert [[(time, time) for time in range(50)]] == list(read(empty.client, ("job", "=", "node")).values())
