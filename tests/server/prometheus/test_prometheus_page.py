"""The examples of docs/prometheus.md: all statements find series, configurations are valid, and commands work."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from server.http.http_node import HttpNode, http_server
from server.prometheus.prometheus_client import series, write

from saros_server.prometheus import matchers, remote_read, remote_write
from saros_server.prometheus.series import Series, series_of
from saros_storage.base.paths import PATH_CHARACTERS_MAX
from saros_wire.generated.prometheus_pb2 import Label, TimeSeries

PAGE = (Path(__file__).parents[3] / "docs" / "prometheus.md").read_text(encoding="utf-8")
PROMTOOL = shutil.which("promtool")


def boxes(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpNode]:
    now_ms = time.time_ns() // 1_000_000
    labels = {"instance": "a:9100", "job": "node"}
    with http_server(tmp_path_factory.mktemp("page") / "data") as made:
        for name in ("up", "node_load1"):
            samples = [(now_ms - 60_000, 1), (now_ms - 30_000, math.nan), (now_ms, 0.5)]
            answer = write(made.client, series({"__name__": name, **labels}, samples))
            assert 204 == answer.status_code
        yield made


STATEMENTS = [line.removesuffix(";") for box in boxes("sql") for line in box.splitlines()]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_find_the_series(node: HttpNode, statement: str) -> None:
    answer = node.client.post("/query.csv", content=statement)
    assert 200 == answer.status_code, answer.text
    assert statement.startswith("set") or len(answer.text.splitlines()) > 1


def test_staleness_markers_are_left_out(node: HttpNode) -> None:
    all_values, comparable = (next(s for s in STATEMENTS if word in s) for word in ("now() - 1h align", "value <= 0"))
    for statement, count in ((all_values, 3), (comparable, 2)):
        rows = node.client.post("/query.csv", content=statement).text.splitlines()[1:]
        assert (count, count - 2) == (len(rows), sum("nan" in row.lower() for row in rows))


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_command_shows_the_series(node: HttpNode) -> None:
    (command,) = re.findall(r"^    \$ (curl .*)$", PAGE, re.MULTILINE)
    line = command.replace("127.0.0.1:18080", node.url.removeprefix("http://")).replace("curl", "curl -sS", 1)
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert 'root.prometheus.up.`{instance=\\"a:9100\\",job=\\"node\\"}`.value' in done.stdout


NAMED = re.findall(r"^\| `(.*?)`(?:, without a name)? \| ``(root.*?)`` \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("selector", "path"), NAMED, ids=[selector for selector, _ in NAMED])
def test_names_are_as_shown(selector: str, path: str) -> None:
    name, _, inner = selector.partition("{")
    labels = [("__name__", name)] if name else []
    labels += re.findall(r'(\w+)="(.*?)"', inner)
    key = TimeSeries(labels=[Label(name=name, value=value) for name, value in labels]).SerializeToString()
    found = series_of(key)
    assert isinstance(found, Series)
    assert path == f"{found.device}.value"


def test_all_names_are_tested() -> None:
    assert 4 == len(NAMED)


@pytest.mark.skipif(PROMTOOL is None, reason="there is no promtool")
@pytest.mark.parametrize("configuration", boxes("yaml"))
def test_configurations_are_right(tmp_path: Path, configuration: str) -> None:
    local = re.sub(r"/etc/prometheus/", f"{tmp_path}/", configuration)
    for name in ("saros-password", "saros-ca.pem"):
        (tmp_path / name).touch()
    (tmp_path / "prometheus.yml").write_text(local)
    done = subprocess.run(
        [PROMTOOL or "", "check", "config", str(tmp_path / "prometheus.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stdout + done.stderr


def test_limits_are_as_shown() -> None:
    for shown in (
        f"| {remote_write.SERIES_MAX:,}; {remote_write.SAMPLES_MAX:,} |",
        f"| {remote_read.QUERIES_MAX}; {remote_read.SAMPLES_MAX:,} |",
        f"| {matchers.MATCHERS_MAX}; {matchers.PATTERN_CHARACTERS_MAX:,} |",
        f"| {PATH_CHARACTERS_MAX:,} characters",
    ):
        assert shown in PAGE
