"""`saros sync` to a server over a faulty link, and its messages."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from socket import socket

import numpy as np
import pytest
from system.tcp_proxy import FAIR, HOST, Mode, Weather, running_proxy
from waiting import wait_until

import saros
from saros.base.target import parse_target
from saros.transport.sync_client import RemoteReceiver
from saros_server.server import Server
from saros_shell.main import main
from saros_storage.io.disk import LocalDisk
from saros_storage.io.folder_lock import FolderLock
from saros_sync.errors import Unreachable
from saros_sync.sender.folder import ReceiverOptions, SenderFolder, load_status
from saros_sync.sender.process import Sender, Worker
from saros_sync.transport import Answer, BeginReply

pytestmark = pytest.mark.slow

POINTS = 200_000


@pytest.fixture
def centre(tmp_path: Path) -> Iterator[Server]:
    made = Server(str(tmp_path / "centre"), "127.0.0.1", 0)
    made.start()
    yield made
    made.stop()


def fill(folder: Path, name: str) -> float:
    """Write random values to files of an edge; return the sum of the values."""
    values = np.random.default_rng(7).normal(size=POINTS)
    with saros.connect(str(folder)) as db:
        db.insert(f"root.plant.{name}.pump", np.arange(POINTS), {"temperature": values})
        db.cursor().execute("flush")
    return float(values.sum())


def ask(target: str, statement: str) -> list[tuple[object, ...]]:
    with saros.connect(target) as db:
        cursor = db.cursor()
        cursor.execute(statement)
        return [tuple(row) for row in cursor.fetchall()]


def test_a_round_over_a_link_that_stalls_damages_and_breaks_is_exact(
    centre: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saros.transport.sync_client._CALL_SECONDS", 5.0)
    total = fill(tmp_path / "edge", "edge")
    host, _, port = centre.address.rpartition(":")
    with running_proxy() as proxy:
        link = proxy.add_link("line", host, int(port))
        options = ReceiverOptions(f"saros://{HOST}:{link}", chunk_bytes=50_000, bytes_per_second=2_000_000)
        folder = SenderFolder(str(tmp_path / "edge"), LocalDisk())
        name = folder.add(f"{HOST}:{link}", options)
        bad = [
            Weather(Mode.REFUSE),
            FAIR,
            Weather(Mode.LOSE),
            FAIR,
            Weather(corruption=0.1),
            FAIR,
            Weather(Mode.REFUSE),
        ]

        def connect(made: ReceiverOptions) -> RemoteReceiver:
            receiver = RemoteReceiver(parse_target(made.target))
            chunk = receiver.chunk

            def next_weather(*words: object) -> Answer:
                proxy.set_weather("line", forth=bad.pop() if bad else FAIR)
                try:
                    have = chunk(*words)()  # type: ignore[arg-type]
                finally:
                    proxy.set_weather("line", forth=FAIR)
                return lambda: have

            receiver.chunk = next_weather  # type: ignore[method-assign]
            return receiver

        worker = Worker(folder, name, LocalDisk(), connect, lambda _: None)
        try:
            sent = worker.run_round()
        except Unreachable:  # continue the interrupted round, however many of its requests failed
            sent = worker.run_round()
        finally:
            worker.close()
        assert not bad
        assert () == sent.conflicts
    ((count, found),) = ask(
        f"saros://{centre.address}", "select count(temperature), sum(temperature) from root.plant.edge.pump"
    )
    assert POINTS == count
    assert found == pytest.approx(total)
    assert "waiting" == load_status(folder, name, LocalDisk()).state


def test_the_command_as_its_user_sees_it(centre: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edge, other = str(tmp_path / "edge"), str(tmp_path / "other")
    name = centre.address.replace(":", "_")

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["sync", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    assert run("once", "--data", edge) == (1, "", f"saros sync: {edge} is not a data folder: it has no node.json\n")
    for folder in (edge, other):
        fill(Path(folder), "edge")
        code, out, _ = run("add-receiver", f"saros://{centre.address}", "--data", folder, "--name", Path(folder).name)
        assert (0, f"receiver {name}") == (code, out.partition(";")[0])
    told = f"saros sync: {centre.address} is not the address of a server; write saros://host:port\n"
    assert run("add-receiver", centre.address, "--data", edge) == (1, "", told)
    lock = FolderLock.acquire(str(tmp_path / "edge" / "sync-sender" / name))
    told = f"{name}: process {os.getpid()} is already sending to it; see saros sync status\n"
    assert run("once", "--data", edge) == (1, "", told)
    lock.release()
    code, out, _ = run("once", "--data", edge)
    assert (0, f"{name}: round 1: 3 files") == (code, out.partition(",")[0])
    assert (0, f"{name}: round 1: nothing new\n", "") == run("once", "--data", edge)
    code, out, _ = run("once", "--data", other)
    assert code == 0
    assert "root.plant.edge.pump is refused: it belongs to sender edge (" in out
    code, out, _ = run("status", "--data", other)
    assert code == 3
    assert "up to date with data flushed" in out
    assert "refused   1 device\n" in out
    assert not [line for line in out.splitlines() if line != line.rstrip()]
    code, out, _ = run("status", "--data", other, "--json")
    assert 1 == json.loads(out)["receivers"][name]["conflicts"]
    assert (1, "") == run("once", "nobody", "--data", edge)[:2]
    assert (1, "", f"saros sync: no sender is running for {edge}; start one with saros sync start\n") == run(
        "stop", "--data", edge
    )
    assert 0 == run("drop-receiver", name, "--data", edge)[0]
    code, _, err = run("once", "--data", edge)
    assert code == 1
    assert "add-receiver" in err


def test_each_failed_try_is_told_before_the_pause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saros_sync.sender.sending.retry_delay_s", lambda failures: failures / 1_000)
    with socket() as taken:  # bound, but not listening
        taken.bind((HOST, 0))
        target = f"{HOST}:{taken.getsockname()[1]}"
        fill(tmp_path / "edge", "edge")
        edge = str(tmp_path / "edge")
        assert 0 == main(["sync", "add-receiver", f"saros://{target}", "--data", edge, "--retries", "2"])
        assert 1 == main(["sync", "once", "--data", edge])
    name = target.replace(":", "_")
    first, second, last = capsys.readouterr().err.splitlines()
    assert first.startswith(f"{name}: no Saros node answers at {target}: ")
    assert [f"{last}; next attempt in 0.001 s", f"{name}: the same error; next attempt in 0.002 s"] == [first, second]
    assert load_status(SenderFolder(edge, LocalDisk()), name, LocalDisk()).failures


def test_a_sender_in_the_background_sends_what_is_sealed_and_sees_receivers_come_and_go(
    centre: Server, tmp_path: Path
) -> None:
    fill(tmp_path / "edge", "edge")
    count = "select count(temperature) from root.plant.edge.pump"
    folder = SenderFolder(str(tmp_path / "edge"), LocalDisk())
    stopped = threading.Event()
    sender = Sender(folder, LocalDisk(), lambda made: RemoteReceiver(parse_target(made.target)), lambda _: None)
    thread = threading.Thread(target=sender.run, args=(stopped,))
    thread.start()
    try:
        name = folder.add(centre.address, ReceiverOptions(f"saros://{centre.address}", every_s=0.1))
        wait_until(lambda: load_status(folder, name, LocalDisk()).history != [])
        with saros.connect(str(tmp_path / "edge")) as db:
            db.insert("root.plant.edge.pump", np.array([-5]), {"temperature": np.array([1.0])})
            db.cursor().execute("flush")
            wait_until(lambda: ask(f"saros://{centre.address}", count) == [(POINTS + 1,)])
        wait_until(lambda: load_status(folder, name, LocalDisk()).state == "waiting")
        assert "" == load_status(folder, name, LocalDisk()).error
    finally:
        stopped.set()
        thread.join()
    assert not any(worker.is_alive() for _, worker in sender._workers.values())


class _CutOnce(RemoteReceiver):
    """A link that fails once, right before the commit."""

    cut = False

    def commit(self, sender: str, number: int) -> BeginReply:
        if not _CutOnce.cut:
            _CutOnce.cut = True
            raise Unreachable("cut")
        return super().commit(sender, number)


@pytest.mark.parametrize("sealed_since", [False, True])
def test_a_round_that_a_second_try_ends_is_told_of(centre: Server, tmp_path: Path, sealed_since: bool) -> None:
    fill(tmp_path / "edge", "edge")
    folder = SenderFolder(str(tmp_path / "edge"), LocalDisk())
    name = folder.add(centre.address, ReceiverOptions(f"saros://{centre.address}", retries=0))
    _CutOnce.cut = False
    worker = Worker(folder, name, LocalDisk(), lambda made: _CutOnce(parse_target(made.target)), lambda _: None)
    with pytest.raises(Unreachable):
        worker.run_round()
    assert [] == load_status(folder, name, LocalDisk()).history
    if sealed_since:
        fill(tmp_path / "edge", "other")
    sent = worker.run_round()
    worker.close()
    past = load_status(folder, name, LocalDisk()).history
    assert [*range(sent.number, 0, -1)] == [number for number, *_ in past]
    assert sent.size == sum(size for _, _, _, size, _ in past)
