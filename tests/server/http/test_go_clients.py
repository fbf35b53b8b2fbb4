"""Run Go programs that use the service, one with a generated client, one with the data types of Grafana's plugins.

The tests are skipped if Go, Java, Maven or modules are absent; `go mod download` in `go_clients/grafana` fetches the
modules.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server.http.http_node import HttpNode, http_server, make_users
from server.secured import ROOT
from server.stock_clients import artefacts

PROGRAMS = Path(__file__).parent / "go_clients"
_SECONDS = 60


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpNode]:
    folder = tmp_path_factory.mktemp("go") / "data"
    make_users(folder)
    with http_server(folder, auth=("root", ROOT)) as made:
        made.written(
            "create timeseries root.p.d.x DOUBLE",
            "create timeseries root.p.d.n INT32",
            "create timeseries root.p.d.ok BOOLEAN",
            "create timeseries root.p.d.t TEXT",
            "insert into root.p.d(time, x, n, ok, t) values (1000, 1.5, 7, true, 'a')",
            "insert into root.p.d(time, n) values (2000, 8)",
            "insert into root.p.d(time, x, ok, t) values (3000, 2.5, false, 'b')",
        )
        yield made


@pytest.fixture(scope="module")
def data_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a compiled program that reads from a service in the same way as Grafana's data source."""
    try:
        return artefacts.go_program(PROGRAMS / "grafana", tmp_path_factory.mktemp("programs") / "grafana")
    except artefacts.Unavailable as error:
        pytest.skip(str(error))


def ran(program: Path, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *arguments], input=text, capture_output=True, text=True, timeout=_SECONDS, check=False
    )


@pytest.mark.slow
def test_a_generated_client_writes_and_reads(node: HttpNode, tmp_path: Path) -> None:
    document = node.client.get("/openapi.json").text
    try:
        options = ("packageName=saros", "withGoMod=false", "generateTests=false")
        sources = artefacts.openapi_client("go", document, *options)
        package = shutil.copytree(sources, tmp_path / "client")
        (package / "go.mod").write_text("module example.org/saros\n\ngo 1.23\n")
        shutil.copytree(PROGRAMS / "generated", package / "program")
        program = artefacts.go_program(package / "program", tmp_path / "program")
    except artefacts.Unavailable as error:
        pytest.skip(str(error))
    created = node.client.post("/query.json", content="create token generated")
    done = ran(program, node.url.removeprefix("http://"), created.json()["Secret"])
    expected = """200 SUCCESS_STATUS
[root.g.d.x root.g.d.t] [DOUBLE TEXT] [1 2] [[1.5 <nil>] [a b]]
"Time","root.g.d.t"
"1970-01-01T00:00:00.001Z","a"
"1970-01-01T00:00:00.002Z","b"
"""
    assert (expected, "") == (done.stdout, done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_panel_becomes_a_frame_of_grafana(node: HttpNode, data_source: Path, version: str) -> None:
    names = {"v1": ("prefixPath", "startTime", "endTime"), "v2": ("prefix_path", "start_time", "end_time")}[version]
    body: dict[str, Any] = dict(zip(names, (["root.p.d"], 0, 10_000), strict=True))
    body |= {"expression": ["x", "n", "ok", "t"], "condition": "", "control": ""}
    done = ran(data_source, node.url, "root", ROOT, f"/grafana/{version}/query/expression", text=json.dumps(body))
    assert "" == done.stderr
    times = [f"1970-01-01 00:00:0{second} +0000 UTC" for second in (1, 2, 3)]
    expected = [
        ("Time", "time.Time", times),
        ("root.p.d.x", "float64", ["1.5", "NaN", "2.5"]),
        ("root.p.d.n", "float64", ["7", "8", "NaN"]),
        ("root.p.d.ok", "bool", ["true", "false", "false"]),
        ("root.p.d.t", "string", ["a", "", "b"]),
    ]
    assert expected == [(each["name"], each["type"], each["values"]) for each in json.loads(done.stdout)]


@pytest.mark.slow
def test_an_error_of_a_panel_is_shown(node: HttpNode, data_source: Path) -> None:
    body = {"expression": ["x +"], "prefix_path": ["root.p.d"], "start_time": 0, "end_time": 1}
    done = ran(data_source, node.url, "root", ROOT, "/grafana/v2/query/expression", text=json.dumps(body))
    assert (1, "") == (done.returncode, done.stdout)
    assert "line 1" in done.stderr
