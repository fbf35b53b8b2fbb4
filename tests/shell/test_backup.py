"""`saros backup` and `saros restore` of folders, servers with users, and nodes of a cluster."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from server.frame_client import Refused
from server.secured import ANN, ROOT, Secured, request_of
from system.town import Served
from waiting import wait_until

import saros
from saros.base.target import parse_target
from saros.transport.captures import RemoteCaptures
from saros_server.server import Server
from saros_shell.commands import backup
from saros_storage.base.clock import SystemClock
from saros_wire.frames import Call


def rows(folder: Path, query: str = "select count(x), last_value(x) from root.a.d") -> list[tuple[object, ...]]:
    with saros.connect(str(folder), timestamps="epoch") as connection:
        return connection.execute(query).fetchall()


def back_up(*arguments: object) -> int:
    return backup.main([str(word) for word in arguments])


def restore(*arguments: object) -> int:
    return backup.restore([str(word) for word in arguments])


def test_backups_lie_in_a_folder_outside_of_the_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, file = tmp_path / "data", tmp_path / "file"
    saros.connect(str(data)).close()
    file.write_text("")
    for place in (data, data / "backups"):
        assert 1 == back_up("--data", data, "--to", place)
        assert (
            f"{place} is inside {data} and would be lost with it; back up to another folder" in capsys.readouterr().err
        )
    assert 1 == back_up("--data", data, "--to", file)
    assert f"{file} is a file; backups need a folder: pass another one with --to" in capsys.readouterr().err
    assert not (data / "backups").exists()


@pytest.mark.slow
def test_a_folder_is_backed_up_and_restored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, backups = tmp_path / "data", tmp_path / "backups"
    with saros.connect(str(data), options={"durability": "os"}) as connection:
        connection.execute("insert into root.a.d(time, x) values (1, 1.5), (2, 2.5)")
        connection.execute("flush")
        connection.execute("insert into root.a.d(time, x, y) values (2, 3.5, 'b')")
        connection.execute("set ttl to root.b 3600000")
        before = connection.execute("select * from root.a.d").fetchall()
    assert 0 == back_up("--data", data, "--to", backups)
    with saros.connect(str(data)) as connection:
        connection.execute("drop database root.a")
    assert 0 == back_up("--data", data, "--to", backups, "--incremental")
    assert 0 == back_up("list", backups)
    assert 0 == back_up("verify", backups)
    out = capsys.readouterr().out
    assert "backup 1 in" in out
    assert "backup 2 in" in out
    assert "2 backups" in out
    assert "all is well" in out
    time, index = next(line.split()[5:7] for line in out.splitlines() if line.split()[:1] == ["1"])
    assert 0 == restore("--from", backups, "--data", tmp_path / "of_that_time", "--at", time)
    assert 0 == restore("--from", backups, "--data", tmp_path / "restored", "--at", index)
    with saros.connect(str(tmp_path / "restored")) as connection:
        assert before == connection.execute("select * from root.a.d").fetchall()
        assert 1 == len(connection.execute("show ttl on root.b").fetchall())
    assert 0 == restore("--from", backups, "--data", tmp_path / "newest")
    assert [] == rows(tmp_path / "newest", "show devices")


def test_mistakes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, backups = tmp_path / "data", tmp_path / "backups"
    with saros.connect(str(data), options={"durability": "os"}) as connection:
        connection.execute("insert into root.a.d(time, x) values (1, 1.5)")
    for words, said in (
        (["--data", tmp_path, "--to", backups], "is not a data folder"),
        (["list", tmp_path], "holds no backup"),
        (["verify", tmp_path], "holds no backup"),
        (["--url", "saros://127.0.0.1:1", "--to", backups], "no Saros node answers"),
        (["--data", data, "--to", tmp_path], "is not a folder of backups"),
    ):
        assert 1 == back_up(*words)
        assert said in capsys.readouterr().err
    for wrong in (["--to", backups], ["--data", data, "--url", "saros://h", "--to", backups]):
        with pytest.raises(SystemExit, match="2"):
            back_up(*wrong)
    assert 0 == back_up("--data", data, "--to", backups)
    for at, said in (("9999", "no backup reaches that point"), ("1999-01-01", "no backup reaches that point")):
        assert 1 == restore("--from", backups, "--data", tmp_path / "r", "--at", at)
        assert said in capsys.readouterr().err
    assert 1 == restore("--from", backups, "--data", data)
    assert "not empty" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        restore("--from", backups, "--data", tmp_path / "r", "--at", "yesterday")


def test_a_flipped_byte_is_found_and_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, backups = tmp_path / "data", tmp_path / "backups"
    with saros.connect(str(data), options={"durability": "os"}) as connection:
        connection.execute("insert into root.a.d(time, x) values (1, 1.5)")
    assert 0 == back_up("--data", data, "--to", backups)
    largest = max((backups / "objects").glob("*/*"), key=lambda path: path.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.write_bytes(content)
    assert 1 == back_up("verify", backups)
    assert largest.name in capsys.readouterr().out
    assert 1 == restore("--from", backups, "--data", tmp_path / "restored")
    assert largest.name in capsys.readouterr().err
    assert not (tmp_path / "restored").exists()


@pytest.mark.slow
def test_a_server_is_backed_up_while_it_is_written_to(tmp_path: Path) -> None:
    """The backup has each row that was acknowledged before it began, and its rows are a prefix of the written rows."""
    data, backups = tmp_path / "data", tmp_path / "backups"
    data.mkdir()
    (data / "saros.toml").write_text('durability = "os"\nlog_archive_bytes = "64MiB"\n')
    server = Server(str(data), "127.0.0.1", 0, clock=SystemClock())
    server.start()
    url = f"saros://{server.address}"
    written, stopped = [0], threading.Event()

    def write_on() -> None:
        with saros.connect(url) as connection:
            while not stopped.is_set():
                connection.execute(f"insert into root.a.d(time, x) values ({written[0]}, {written[0]})")
                written[0] += 1
                if written[0] % 40 == 0:
                    connection.execute("flush")

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        wait_until(lambda: written[0] > 0)
        acknowledged = []
        for turn in range(3):
            acknowledged.append(written[0])
            assert 0 == back_up("--url", url, "--to", backups, *(["--incremental"] if turn else []))
    finally:
        stopped.set()
        writer.join()
        server.stop()
    assert [] == list((data / "snapshots").iterdir())
    for number, least in enumerate(acknowledged, 1):
        found = backup.Repository(str(backups), backup.LocalDisk()).catalogs()[number - 1]
        assert found.continues == (number > 1)
        target = tmp_path / f"restored-{number}"
        assert 0 == restore("--from", backups, "--data", target, "--at", found.reached)
        ((count, last),) = rows(target)
        assert count >= least
        assert int(count) - 1 == last


def test_only_who_may_read_everything_backs_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secured = Secured(tmp_path / "data")
    try:
        for call in (Call.CREATE_CHECKPOINT, Call.READ_CHECKPOINT, Call.RELEASE_CHECKPOINTS):
            message, body = request_of(call)
            with pytest.raises(Refused, match="No permission") as caught:
                secured.call(call, message, secured.open("ann", ANN), body)
            assert 803 == caught.value.code
        backups = tmp_path / "backups"
        address = secured.server.address
        assert 1 == back_up("--url", f"saros://ann:{ANN}@{address}", "--to", backups)
        assert "No permission" in capsys.readouterr().err
        for privilege in ("MAINTAIN", "READ_DATA", "READ_SCHEMA"):
            assert 1 == back_up("--url", f"saros://ann:{ANN}@{address}", "--to", backups)
            with secured.connect("root", ROOT) as connection:
                connection.execute(f"grant {privilege} on root.** to user ann")
        assert 0 == back_up("--url", f"saros://ann:{ANN}@{address}", "--to", backups)
        assert 1 == back_up("--url", f"saros://ann:wrong@{address}", "--to", backups)
        events = [(entry["event"], entry["user"], entry["code"]) for entry in secured.trail() if "BACKUP" in str(entry)]
        assert ("denied", "ann", 803) in events
        assert ("backup", "ann", 0) == events[-1]
    finally:
        secured.server.stop()


def test_captures_of_another_are_not_guessed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    server = Server(str(data), "127.0.0.1", 0, clock=SystemClock())
    server.start()
    try:
        source = RemoteCaptures(parse_target(f"saros://{server.address}"))
        source.create_checkpoint(None)
        source._ids = [bytes(16)]
        with pytest.raises(saros.Error, match="the capture does not exist"):
            list(source.read(0, 0))
        source._ids = [b"../../x"]
        with pytest.raises(saros.Error, match="the capture does not exist"):
            list(source.read(0, 1 << 40))
        source.close()
    finally:
        server.stop()


@pytest.mark.slow
def test_a_node_of_a_cluster_becomes_a_store_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With three nodes and three replicas, a node has all data. Its backup is restored as an independent database."""
    cluster = Served(tmp_path / "cluster", 3, 3)
    try:
        week = 604_800_000
        values = ", ".join(f"({n * week}, {n})" for n in range(5))
        cluster.run(0, f"insert into root.a.d(time, x) values {values}")
        cluster.run(1, "insert into root.b.d(time, y) values (1, 'one'), (2, 'two')")
        cluster.run(2, "delete from root.a.d.x where time = 0")
        before = [cluster.run(0, f"select * from root.{name}.d") for name in "ab"]
        assert 1 == back_up("--data", cluster.folders[1], "--to", tmp_path / "backups")
        assert "--url" in capsys.readouterr().err
        url = f"saros://{cluster.servers[1].address}"
        assert 0 == back_up("--url", url, "--to", tmp_path / "backups")
        cluster.run(0, "delete from root.b.d.y where time = 1")
        cluster.run(0, f"insert into root.a.d(time, x) values ({6 * week}, 6)")
        assert 0 == back_up("--url", url, "--to", tmp_path / "backups", "--incremental")
        assert " unchanged" in capsys.readouterr().out
        after = [cluster.run(0, f"select * from root.{name}.d") for name in "ab"]
    finally:
        cluster.close()
    first, second = backup.Repository(str(tmp_path / "backups"), backup.LocalDisk()).catalogs()
    moment = datetime.fromtimestamp((first.taken_ns + second.taken_ns) / 2e9, UTC).isoformat()
    assert 0 == restore("--from", tmp_path / "backups", "--data", tmp_path / "first", "--at", moment)
    assert 0 == restore("--from", tmp_path / "backups", "--data", tmp_path / "second")
    for name, expected in (("first", before), ("second", after)):
        assert not (tmp_path / name / "cluster.json").exists()
        found = [rows(tmp_path / name, f"select * from root.{database}.d") for database in "ab"]
        assert expected == found
        with saros.connect(str(tmp_path / name)) as connection:
            connection.execute("insert into root.a.d(time, x) values (1, 9)")
        assert (1, 9) == rows(tmp_path / name, "select * from root.a.d")[0][:2]
