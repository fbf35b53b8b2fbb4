"""Two embedded instances sync to one cluster over faulty links, while processes on all sides are killed.

    python benchmarks/campaign_sync_kills.py [--points 10000000] [--cuts 100] [--kills 20] [--seed N] [--nodes 3]

Each instance writes and seals its points in four parts, deletes some points, and merges; `saros sync start` runs in
parallel. Links that have a connection are cut. Nodes and senders are killed with SIGKILL, one at a time, while links
refuse connections, stall, or lose or damage data. At the end, each node must have the same points as the instances
(counts, sums, first and last times of every device), and no temporary files may be left over. `--nodes 0`: send to a
single server.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

import numpy as np
from interruptible import run

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from system.tcp_proxy import FAIR, HOST, Mode, TcpProxy, Weather, running_proxy

import saros
from saros_server.process.server_file import serving
from saros_storage.io.disk import LocalDisk
from saros_storage.io.folder_lock import is_free, owner_of
from saros_sync.receiver.mirror import MirrorFolder, load_document
from saros_sync.round import content_of
from saros_sync.sender.folder import SenderFolder, load_status

_DEVICES, _PARTS = 10, 4
_SUMMARY = "select count(x), sum(x), min_time(x), max_time(x) from {}"
_WEATHERS = (
    Weather(Mode.REFUSE),
    Weather(Mode.HOLD),
    Weather(Mode.LOSE),
    Weather(corruption=0.02),
    Weather(delay_s=0.05),
)
_END_SECONDS = 300.0
#: The senders' rate limit, low enough that most cuts occur during a transfer.
_BYTES_PER_SECOND = 4_000_000
#: Limit for the time until a link has a connection again: rounds start every second, but later after failures.
_CONNECTED_SECONDS = 60.0


def saros_command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "saros_shell", *words], capture_output=True, text=True, check=False)


class World:
    """A server or cluster, two instances with senders, and the links between them."""

    def __init__(self, folder: Path, proxy: TcpProxy, points: int, chance: Random, nodes: int) -> None:
        self.folder, self.proxy, self.points, self.chance = folder, proxy, points, chance
        self.edges = ["edge0", "edge1"]
        self.kills = {"server": 0, "sender": 0}
        #: The number of cuts during a transfer, and the number of other cuts.
        self.cuts = {"sending": 0, "waiting": 0}
        centre = folder / "centre"
        #: Folders of the server, or of the cluster's nodes.
        self.centres = [centre / f"node{number}" for number in range(1, nodes + 1)] or [centre]
        if nodes:
            words = ["--nodes", str(nodes), "--replicas", str(min(nodes, 3)), "--dir", str(centre)]
            saros_command("cluster", "up", *words)
        else:
            saros_command("start", "--data", str(centre), "--port", "0")
        self.ports = [self.await_server(path) for path in self.centres]
        for edge in self.edges:
            self.fill(edge, 0)
            links = [proxy.add_link(f"{edge}-{port}", HOST, port) for port in self.ports]
            done = saros_command(
                "sync",
                "add-receiver",
                "saros://" + ",".join(f"{HOST}:{link}" for link in links),
                "--data",
                str(folder / edge),
                "--every",
                "1",
                "--name",
                edge,
                "--bytes-per-second",
                str(_BYTES_PER_SECOND),
            )
            assert done.returncode == 0, done.stderr
            self.start_sender(edge)

    def await_server(self, path: Path) -> int:
        """Return the port of a server when it is up; on a busy machine, its start may outlast the command's wait."""
        found, limit = None, time.monotonic() + _END_SECONDS
        while found is None and time.monotonic() < limit:
            found = serving(str(path))
            time.sleep(0.1)
        assert found is not None, f"{path} did not come up"
        return int(found.address.rpartition(":")[2])

    def start_sender(self, edge: str) -> None:
        """Start a sender and wait until it is up; on a busy machine, its start may outlast the command's wait."""
        done = saros_command("sync", "start", "--data", str(self.folder / edge))
        limit = time.monotonic() + _END_SECONDS
        while owner_of(str(self.folder / edge / "sync-sender")) is None:
            assert time.monotonic() < limit, done.stdout + done.stderr
            time.sleep(0.1)

    def fill(self, edge: str, part: int) -> None:
        """Write and seal a part of an instance's points; delete some after the third part, and merge after the last."""
        rows = self.points // _DEVICES // _PARTS
        random = np.random.default_rng(part)
        with saros.connect(str(self.folder / edge)) as db:
            for device in range(_DEVICES):
                times = np.arange(part * rows, (part + 1) * rows)
                db.insert(f"root.{edge}.d{device}", times, {"x": random.normal(size=rows)})
            if part == 2:
                db.execute(f"delete from root.{edge}.d1.x where time >= {rows // 2} and time < {rows}")
            db.execute("flush")
            if part == _PARTS - 1:
                db.execute("merge")

    def kill_something(self) -> None:
        if self.chance.random() < 0.5:
            path, port = self.chance.choice(list(zip(self.centres, self.ports, strict=True)))
            found = serving(str(path))
            assert found is not None
            os.kill(found.pid, signal.SIGKILL)
            self._await_free(path)
            own_port = [] if path.name != "centre" else ["--port", str(port)]  # a node's port is in its cluster.json
            saros_command("start", "--data", str(path), *own_port)
            self.await_server(path)
            self.kills["server"] += 1
            return
        edge = self.chance.choice(self.edges)
        path = self.folder / edge / "sync-sender"
        pid = owner_of(str(path))
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            self._await_free(path)
            self.kills["sender"] += 1
        self.start_sender(edge)

    def _await_free(self, path: Path) -> None:
        while not is_free(str(path)):
            time.sleep(0.05)

    def cut_something(self) -> None:
        """Abort all connections of one link, and make the link refuse new connections for a moment."""
        limit = time.monotonic() + _CONNECTED_SECONDS
        links = [(edge, f"{edge}-{port}") for edge in self.edges for port in self.ports]
        while not (found := [(edge, link) for edge, link in links if self.proxy.connections(link)]):
            assert time.monotonic() < limit, "no sender connects"
            time.sleep(0.01)
        edge, link = self.chance.choice(found)
        folder = SenderFolder(str(self.folder / edge), LocalDisk())
        status = load_status(folder, folder.receivers()[0], LocalDisk())
        self.proxy.set_weather(link, forth=Weather(Mode.REFUSE))
        self.cuts["sending" if status.state == "sending" else "waiting"] += 1
        time.sleep(0.2 * self.chance.random())
        self.proxy.set_weather(link, forth=FAIR)

    def bad_weather(self) -> None:
        link = f"{self.chance.choice(self.edges)}-{self.chance.choice(self.ports)}"
        self.proxy.set_weather(link, forth=self.chance.choice((*_WEATHERS, FAIR)))

    def fair_weather(self) -> None:
        for edge in self.edges:
            for port in self.ports:
                self.proxy.set_weather(f"{edge}-{port}", forth=FAIR)

    def differences(self) -> list[str]:
        """Return all differences between the instances and the server or each of the nodes."""
        return [text for port in self.ports for text in self._differences(port)]

    def _differences(self, port: int) -> list[str]:
        found = []
        with saros.connect(f"saros://{HOST}:{port}") as centre:
            for edge in self.edges:
                with saros.connect(str(self.folder / edge)) as own:
                    for device in range(_DEVICES):
                        statement = _SUMMARY.format(f"root.{edge}.d{device}")
                        wanted = own.execute(statement).fetchall()
                        try:
                            got = centre.execute(statement).fetchall()
                        except saros.Error as error:
                            got = [str(error)]
                        if wanted != got:
                            found.append(f"root.{edge}.d{device}: {got}, not {wanted}")
        return found

    def leftovers(self) -> list[str]:
        """Return journals, snapshots, and files that exist only in a sender's last round or only at its receiver."""
        found = []
        for edge in self.edges:
            for receiver in (self.folder / edge / "sync-sender").glob("*_*"):
                found += [str(p) for p in receiver.iterdir() if p.name in ("snapshot", "sync.log")]
        for path in (path for centre in self.centres for path in (centre / "sync-receiver").glob("**/data")):
            found += [str(p) for p in path.parent.iterdir() if p.name == "load.log"]
            rounds = list(path.glob("*.round"))
            names = {p.name for p in path.iterdir()}
            if len(rounds) == 1:
                folder, document = MirrorFolder(str(path.parent)), content_of(rounds[0].read_bytes())
                names ^= folder.names(document, load_document(LocalDisk(), folder, document))
            found += [str(path / name) for name in names]
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=10_000_000, help="of each instance")
    parser.add_argument("--cuts", type=int, default=100)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--nodes", type=int, default=3, help="of the cluster; 0: a server that is in none")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="saros-sync-"))
    chance = Random(options.seed)
    print(f"seed {options.seed}, {folder}", flush=True)
    started = time.monotonic()
    with running_proxy(options.seed) as proxy:
        world = World(folder, proxy, options.points, chance, options.nodes)
        try:
            events = ["cut"] * options.cuts + ["kill"] * options.kills
            chance.shuffle(events)
            part = 1
            for number, event in enumerate(events):
                if part < _PARTS and number >= len(events) * part // _PARTS:
                    for edge in world.edges:
                        world.fill(edge, part)
                    part += 1
                if event == "kill":
                    for _ in range(3):
                        world.bad_weather()
                        time.sleep(0.3 + chance.random())
                    world.kill_something()
                else:
                    world.cut_something()
                    time.sleep(chance.random())
            world.fair_weather()
            limit = time.monotonic() + _END_SECONDS
            while (wrong := [*world.differences(), *world.leftovers()]) and time.monotonic() < limit:
                time.sleep(1.0)
        finally:
            for edge in world.edges:
                saros_command("sync", "stop", "--data", str(folder / edge))
            for path in world.centres:
                saros_command("stop", "--data", str(path))
    print(f"cuts {world.cuts}, kills {world.kills}, {time.monotonic() - started:.0f} s")
    print("; ".join(wrong[:10]) or "each node has exactly what the instances have, and nothing is left over")
    if not wrong:
        shutil.rmtree(folder)
    return int(bool(wrong))


if __name__ == "__main__":
    run(main)
