"""Two embedded instances to one server, as processes, over links that are cut and damaged, with kills on all sides.

    python benchmarks/campaign_sync_kills.py [--points 10000000] [--kills 12] [--seed N]

Each instance seals its points in four parts, deletes some, and merges; `saros sync start` runs beside it. The server
and the senders are killed with SIGKILL now and then, the links refuse, stall, lose and damage. At the end the server
has of every device exactly what its instance has (counts, sums, first and last times), and nothing is left over.
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from cluster.tcp_proxy import FAIR, HOST, Mode, TcpProxy, Weather, running_proxy

import saros
from saros_server.server import serving
from saros_storage.errors import FolderInUse
from saros_storage.folder_lock import FolderLock, is_free

_DEVICES, _PARTS = 10, 4
_SUMMARY = "select count(x), sum(x), min_time(x), max_time(x) from {}"
_WEATHERS = (
    Weather(Mode.REFUSE),
    Weather(Mode.HOLD),
    Weather(Mode.LOSE),
    Weather(corruption=0.02),
    Weather(delay_s=0.05),
)
_END_SECONDS = 120.0


def saros_command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "saros_server", *words], capture_output=True, text=True, check=False)


def _owner(path: Path) -> int | None:
    """The process that has a folder."""
    try:
        FolderLock.acquire(str(path)).release()
    except FolderInUse as error:
        return error.pid
    return None


class World:
    """A server, two instances with senders, and the links between them."""

    def __init__(self, folder: Path, proxy: TcpProxy, points: int, chance: Random) -> None:
        self.folder, self.proxy, self.points, self.chance = folder, proxy, points, chance
        self.edges = ["edge0", "edge1"]
        self.port = 0
        self.kills = {"server": 0, "sender": 0}
        self.start_server()
        for edge in self.edges:
            self.fill(edge, 0)
            link = proxy.add_link(edge, HOST, self.port)
            done = saros_command(
                "sync",
                "add-receiver",
                f"saros://{HOST}:{link}",
                "--data",
                str(folder / edge),
                "--every",
                "1",
                "--name",
                edge,
                "--bytes-per-second",
                "20000000",
            )
            assert done.returncode == 0, done.stderr
            self.start_sender(edge)

    def start_server(self) -> None:
        done = saros_command("start", "--data", str(self.folder / "centre"), "--port", str(self.port))
        found, limit = None, time.monotonic() + _END_SECONDS
        while found is None and time.monotonic() < limit:  # on a busy machine it may take longer than the command waits
            found = serving(str(self.folder / "centre"))
            time.sleep(0.1)
        assert found is not None, done.stdout + done.stderr
        self.port = int(found.address.rpartition(":")[2])

    def start_sender(self, edge: str) -> None:
        done = saros_command("sync", "start", "--data", str(self.folder / edge))
        assert done.returncode == 0, done.stdout + done.stderr

    def fill(self, edge: str, part: int) -> None:
        """A part of an instance's points, sealed; the third is followed by a deletion, the last by a merge."""
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
            found = serving(str(self.folder / "centre"))
            assert found is not None
            os.kill(found.pid, signal.SIGKILL)
            self._await_free(self.folder / "centre")
            self.start_server()
            self.kills["server"] += 1
            return
        edge = self.chance.choice(self.edges)
        path = self.folder / edge / "sync-sender"
        pid = _owner(path)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            self._await_free(path)
            self.kills["sender"] += 1
        self.start_sender(edge)

    def _await_free(self, path: Path) -> None:
        while not is_free(str(path)):
            time.sleep(0.05)

    def bad_weather(self) -> None:
        self.proxy.set_weather(self.chance.choice(self.edges), forth=self.chance.choice((*_WEATHERS, FAIR)))

    def differences(self) -> list[str]:
        """What the server does not have as the instances have it."""
        found = []
        with saros.connect(f"saros://{HOST}:{self.port}") as centre:
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
        found = []
        for edge in self.edges:
            for receiver in (self.folder / edge / "sync-sender").glob("*_*"):
                found += [str(p) for p in receiver.iterdir() if p.name in ("snapshot", "sync.log")]
        for sender in (self.folder / "centre" / "sync-receiver").iterdir():
            if sender.is_dir():
                found += [str(p) for p in sender.iterdir() if p.name == "load.log"]
                found += [str(p) for p in (sender / "data").iterdir() if p.suffix in (".part", ".tmp", ".corrupt")]
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=10_000_000, help="of each instance")
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="saros-sync-"))
    chance = Random(options.seed)
    print(f"seed {options.seed}, {folder}")
    with running_proxy(options.seed) as proxy:
        world = World(folder, proxy, options.points, chance)
        try:
            part = 1
            for number in range(options.kills):
                if part < _PARTS and number % 2 == 0:
                    for edge in world.edges:
                        world.fill(edge, part)
                    part += 1
                for _ in range(3):
                    world.bad_weather()
                    time.sleep(0.3 + chance.random())
                world.kill_something()
            for edge in world.edges:
                world.proxy.set_weather(edge, forth=FAIR)
            limit = time.monotonic() + _END_SECONDS
            while (wrong := [*world.differences(), *world.leftovers()]) and time.monotonic() < limit:
                time.sleep(1.0)
        finally:
            for edge in world.edges:
                saros_command("sync", "stop", "--data", str(folder / edge))
            saros_command("stop", "--data", str(folder / "centre"))
    print(f"kills {world.kills}; " + ("; ".join(wrong[:10]) or "the server has exactly what the instances have"))
    if not wrong:
        shutil.rmtree(folder)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
