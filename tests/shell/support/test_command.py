"""`saros support`: a bundle contains the useful data, but no secrets of the folder, the server or its log."""

from __future__ import annotations

import json
import stat
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from server.http.http_node import make_users
from server.secured import ROOT

import saros
from saros_server.server import Server
from saros_shell.main import main

pytestmark = pytest.mark.slow

USER, PASSWORD, ROLE = "meerkatuser", "porcupinepass-81", "wombatrole"
#: Names in the schema, which a bundle contains only with --with-names.
NAMES = ("okapiplant", "bongopump", "tapirflow", "ibexalias")
HOSTS = ("quokka.example.net", "203.0.113.77", "2001:db8::77")
#: Values in data and statements, and texts in files and in the log.
LITERALS = ("narwhalvalue", "dugongtag", "axolotlcomment", "739155", "manateelog", "kinkajouerror", "pangolinline")
FOLDERS = ("numbatfolder", "fossafile", "quollkey")
_TRACE = """Traceback:
  File "/home/numbatfolder/saros_engine/coordinator.py", line 7, in run
    raise ValueError("kinkajouerror")
ValueError: kinkajouerror"""
LOG = (
    {
        "time": "2026-01-02T03:04:05.006Z",
        "level": "WARNING",
        "logger": "saros_server.server",
        "event": "stopping",
        "error": "cannot read 'kinkajouerror' of meerkatuser at quokka.example.net:6667",
        "manateelog": ["manateelog"],
        "address": "203.0.113.77:41022",
        "user": USER,
        "statement": "select tapirflow from root.okapiplant where a = 'narwhalvalue'",
    },
    {
        "level": "ERROR",
        "event": f"login of saros://{USER}:{PASSWORD}@[2001:db8::77]:6667 failed: root.okapiplant.bongopump",
        "exception": _TRACE,
    },
)


@dataclass(frozen=True)
class Planted:
    """A running server whose folder, schema, statements and log contain secrets."""

    folder: Path
    address: str
    token: str


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    folder = tmp_path_factory.mktemp("numbatfolder") / "data"
    make_users(folder)
    with (folder / "saros.toml").open("a") as stream:
        stream.write('load_folders = "/srv/fossafile"\n')
    (folder / "quollkey.pem").write_text("-----BEGIN PRIVATE KEY-----\npangolinline\n")
    (folder / "server.log").write_text("".join(json.dumps(line) + "\n" for line in LOG) + "pangolinline\n")
    server = Server(str(folder), "127.0.0.1", 0, http_port=0)
    server.start()
    try:
        server.api.node.engine.slow_queries.threshold_ms = 0
        with saros.connect(f"saros://root@{server.address}", password=ROOT) as connection:
            for text in (
                "create timeseries root.okapiplant.bongopump.tapirflow(ibexalias) TEXT tags(place=dugongtag)",
                "insert into root.okapiplant.bongopump(time, tapirflow) values (1, 'narwhalvalue')",
                "select tapirflow from root.okapiplant.** where time < 739155 /* axolotlcomment */",
                f"create user {USER} '{PASSWORD}'",
                f"create role {ROLE}",
                f"grant role {ROLE} to {USER}",
                f"alter user {USER} set password '{PASSWORD}-2'",
                "flush",
            ):
                connection.execute(text).close()
            (row,) = connection.execute(f"create token gateway for user {USER} expires in 90d").fetchall()
            token = next(str(value) for value in row if str(value).startswith("saros_"))
            with saros.connect(f"saros://{USER}@{server.address}", password=token) as other:
                other.execute("select 'narwhalvalue'").fetchall()
        yield Planted(folder, server.address, token)
    finally:
        server.stop()


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAROS_PASSWORD", ROOT)


def collect(planted: Planted, out: Path, *options: str) -> dict[str, str]:
    server = f"saros://root@{planted.address}"
    assert 0 == main(["support", str(planted.folder), "--server", server, "--out", str(out), *options])
    return contents(out)


def contents(out: Path) -> dict[str, str]:
    with zipfile.ZipFile(out) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}


def found_in(bundle: dict[str, str], words: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(name, word) for name, text in bundle.items() for word in words if word.lower() in text.lower()]


def test_nothing_that_was_planted_gets_into_a_bundle(planted: Planted, tmp_path: Path) -> None:
    bundle = collect(planted, tmp_path / "bundle.zip")
    words = (USER, PASSWORD, ROLE, ROOT, planted.token, *NAMES, *HOSTS, *LITERALS, *FOLDERS, "PRIVATE KEY")
    assert [] == found_in(bundle, words)


def test_with_names_series_are_kept_and_nothing_else(planted: Planted, tmp_path: Path) -> None:
    bundle = collect(planted, tmp_path / "bundle.zip", "--with-names")
    assert "root.okapiplant.bongopump" in bundle["log.jsonl"]
    assert "root.okapiplant" in bundle["show-files.json"]
    assert "tapirflow" in bundle["show-slow-queries.json"]
    words = (USER, PASSWORD, ROLE, ROOT, planted.token, *HOSTS, *LITERALS, *FOLDERS)
    assert [] == found_in(bundle, words)


def test_with_hosts_addresses_are_kept_and_nothing_else(planted: Planted, tmp_path: Path) -> None:
    bundle = collect(planted, tmp_path / "bundle.zip", "--with-hosts")
    assert "203.0.113.77:41022" in bundle["log.jsonl"]
    assert [] == found_in(bundle, (USER, PASSWORD, ROLE, ROOT, planted.token, *NAMES, *LITERALS, *FOLDERS))


def test_a_bundle_holds_what_a_reader_needs(planted: Planted, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    out = tmp_path / "bundle.zip"
    bundle = collect(planted, out)
    assert 0o600 == stat.S_IMODE(out.stat().st_mode)
    printed = capsys.readouterr().out
    assert [] == [name for name in bundle if name not in printed]
    machine, options = json.loads(bundle["machine.json"]), json.loads(bundle["configuration.json"])
    assert saros.__version__ == machine["saros"]
    assert {"numpy", "pyarrow"} <= machine["libraries"].keys()
    assert machine["limits"]["open files"][0] > 0
    assert {"value": "os", "source": "saros.toml"} == options["durability"]
    assert {"value": "(set)", "source": "saros.toml"} == options["load_folders"]
    assert "node.json" in bundle["files.txt"]
    assert "saros_points_written_total" in bundle["metrics.txt"]
    assert json.loads(bundle["status.json"])["uptime_ms"] > 0
    slow = [row[4] for row in json.loads(bundle["show-slow-queries.json"])["rows"]]
    assert any(text.startswith("insert into root.n-") and text.endswith("values (?, ?)") for text in slow)
    ((database, *_),) = json.loads(bundle["show-files.json"])["rows"]
    assert database in bundle["log.jsonl"]  # the same name has the same hash
    assert '"level": "WARNING"' in bundle["log.jsonl"]
    assert "saros_engine/coordinator.py" in bundle["log.jsonl"]
    assert "errors.txt" not in bundle


def test_a_server_that_cannot_be_asked_is_reported_and_the_rest_collected(
    planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAROS_PASSWORD", "wrongpass-99")
    out = tmp_path / "bundle.zip"
    server = f"saros://{USER}@{planted.address}"
    assert 1 == main(["support", str(planted.folder), "--server", server, "--out", str(out)])
    bundle = contents(out)
    assert bundle["errors.txt"].startswith("show-*.json: OperationalError")
    assert {"machine.json", "log.jsonl", "metrics.txt"} <= bundle.keys()
    assert [] == found_in(bundle, (USER, "wrongpass-99"))


def test_a_server_is_asked_without_its_folder(planted: Planted, tmp_path: Path) -> None:
    out = tmp_path / "bundle.zip"
    assert 0 == main(["support", f"saros://root@{planted.address}", "--out", str(out)])
    bundle = contents(out)
    assert "show-variables.json" in bundle
    assert "machine.json" not in bundle  # the server may be on another machine


def test_a_file_that_exists_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    out = tmp_path / "bundle.zip"
    out.write_text("mine")
    assert 1 == main(["support", str(tmp_path), "--out", str(out)])
    assert f"{out} exists; pass another file with --out" in capsys.readouterr().err
    assert "mine" == out.read_text()


def test_a_folder_without_server_is_checked_quickly(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with saros.connect(str(folder)) as connection:
        connection.execute("insert into root.okapiplant.bongopump(time, s) values (1, 2)").close()
        connection.execute("flush").close()
    (file,) = folder.rglob("*.tsfile")
    size = file.stat().st_size
    with file.open("ab") as stream:
        stream.write(b"x")
    assert 0 == main(["support", str(folder), "--out", str(tmp_path / "bundle.zip"), "--log-lines", "0"])
    bundle = contents(tmp_path / "bundle.zip")
    verified = json.loads(bundle["verify.json"])
    assert (True, 1, 1) == (verified["checked"], verified["partitions"], verified["files"])
    (problem,) = verified["problems"]
    assert f"{size + 1} bytes, the manifest says {size}" in problem
    assert [] == found_in(bundle, NAMES)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "nowhere is not a folder; pass a data folder or saros://host:port"),
        (["saros://127.0.0.1:1", "--server", "saros://127.0.0.1:1"], "give --server with a folder only"),
        (["--log-lines", "-1"], "not a number of lines"),
    ],
)
def test_wrong_usage(words: list[str], message: str, capsys: pytest.CaptureFixture) -> None:
    try:
        code = main(["support", *words])
    except SystemExit as ended:
        code = ended.code
    assert 2 == code
    assert message in capsys.readouterr().err
