"""Power cuts on a real file system: no acknowledged write may be lost, and nothing may be wrong or incomplete.

python benchmarks/campaign_power.py [--cuts 100] [--file-system ext4] [--mount data=writeback] [--seed 1]
                                  [--durability fsync]

In each round, processes work on a file system in an image file (ext4 or xfs, with random options unless given):

    writers      three lanes of numbered operations (see tests/storage/power_lanes.py), embedded or over a server
    maintenance  flushes, merges, backups
    sync         now and then a second server, and rounds of `saros sync once` to it

After some acknowledgements an ioctl shuts the file system down, and the processes are killed. The image is mounted
again, which replays the journal, and checked by fsck. Then a process verifies the data folder, opens it, and compares
all points and series with the acknowledged operations; in each lane, the operation in progress must have happened
completely or not at all. `saros backup verify` must accept all backups; the last acknowledged backup is restored and
compared. If the round used sync, one more round of sync must make the receiver equal to the sender. Some cuts occur
while the folder is being opened.

Acknowledgements come through pipes, outside the file system. The operations are drawn from the seed; the moment of a
cut depends on the machine. On a violation, the exit code is 1, and the data folder is kept as the cut left it. Without
root, loop devices or the file system's tools, the campaign reports this and does nothing. With `--durability os`, the
campaign must find violations.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import fcntl
import io
import json
import multiprocessing
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from multiprocessing.context import ForkProcess
from pathlib import Path

from interruptible import run, uninterrupted

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from free_ports import free_ports
from storage.loop_disk import (
    FILE_SYSTEMS,
    Cut,
    FileSystemDamaged,
    LoopDisk,
    loop_disk,
    why_unavailable,
    write_back_some,
)
from storage.power_lanes import PARTITION_MS, Content, Model, carry_out, operation, read

import saros
from saros_server.process.server_file import serving
from saros_server.server import Server
from saros_shell.commands import backup, sync
from saros_storage.backup.repository import Repository
from saros_storage.backup.verifying import verify
from saros_storage.folder_check import check_folder
from saros_storage.io.disk import LocalDisk

LANES = 3
#: The number of cuts after which a new file system is created.
CUTS_PER_IMAGE = 20
CUTS = {Cut.DROP_LOG: 6, Cut.WRITE_LOG: 3, Cut.WRITE_ALL: 1}
#: The percentage of rounds with a server, and the percentage of rounds with sync.
SERVED, SYNCED = 40, 25
#: A process that is silent for this long is assumed to hang; the limit allows for a busy machine.
PATIENCE_S = 600.0
PIPE_BYTES = 1 << 20
#: Small values, so that flushes, merges, new log segments and new partitions are frequent.
OPTIONS = {
    "memtable_bytes": "256KiB",
    "memtables_total_bytes": "2MiB",
    "time_partition_interval_ms": PARTITION_MS,
    "log_archive_bytes": "4MiB",
    "worker_threads": 1,
}
HOST = "127.0.0.1"
_FORK = multiprocessing.get_context("fork")


class Moment(Enum):
    """The kinds of events after which a cut occurs."""

    OPENING = "the processes are started"
    ACKNOWLEDGED = "operations are acknowledged"
    BEGUN = "flushes, merges, backups and rounds of sync have begun"


#: The weight with which each moment is drawn.
MOMENTS = {Moment.OPENING: 12, Moment.ACKNOWLEDGED: 38, Moment.BEGUN: 50}


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a round, drawn in advance."""

    served: bool
    synced: bool
    #: Back the folder up before it is opened.
    backs_up: bool
    #: The cut occurs this many seconds after this many events of the kind `moment`.
    moment: Moment
    events: int
    seconds: float
    cut: Cut
    seed: int


def draw(chance: random.Random) -> Plan:
    moment = chance.choices(list(MOMENTS), list(MOMENTS.values()))[0]
    events, seconds = {
        Moment.OPENING: (0, 0.3),
        Moment.ACKNOWLEDGED: (int(2 ** chance.uniform(0, 9)), chance.choice((0.0, 0.001, 0.01, 0.1))),
        Moment.BEGUN: (chance.randrange(1, 12), chance.choice((0.003, 0.01, 0.03, 0.1))),
    }[moment]
    return Plan(
        chance.randrange(100) < SERVED,
        chance.randrange(100) < SYNCED,
        chance.randrange(100) < 25,
        moment,
        events,
        seconds * chance.random(),
        chance.choices(list(CUTS), list(CUTS.values()))[0],
        chance.getrandbits(32),
    )


# ---------------------------------------------------------------------------------------------- processes at work


class Reports:
    """The write end of a pipe, shared by threads of several processes: each line is written atomically."""

    def __init__(self, end: int) -> None:
        self._end = end

    def say(self, *words: object) -> None:
        os.write(self._end, " ".join(map(str, words)).encode() + b"\n")


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders on the file system."""

    root: Path

    @property
    def edge(self) -> str:
        return str(self.root / "edge")

    @property
    def centre(self) -> str:
        return str(self.root / "centre")

    @property
    def backups(self) -> str:
        return str(self.root / "backups")


def work(folders: Folders, plan: Plan, models: list[Model], reports: Reports) -> None:
    """The main function of the process that writes to its own embedded database or to a server."""
    target = folders.edge
    if plan.served:
        target = f"saros://{await_server(target)}"
    elif plan.backs_up and os.path.exists(os.path.join(target, "node.json")):
        positions = [model.next for model in models]
        back_up(["--data", target, "--to", folders.backups], reports, lambda: positions)
    connection = saros.connect(target, options=None if plan.served else options())
    threads = [
        threading.Thread(target=reporting, args=(reports, write, connection, model, reports)) for model in models
    ]
    arguments = (connection, target, folders, plan, models, reports)
    threads.append(threading.Thread(target=reporting, args=(reports, maintain, *arguments)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def options() -> dict[str, object]:
    return {**OPTIONS, "durability": os.environ["SAROS_DURABILITY"]}


def await_server(folder: str) -> str:
    while (found := serving(folder)) is None or not os.path.exists(f"/proc/{found.pid}"):
        time.sleep(0.005)
    return found.address


def reporting(reports: Reports, act: Callable[..., None], *arguments: object) -> None:
    """Call `act` as the outermost function of a thread or process, and report an error, which counts as a violation."""
    try:
        act(*arguments)
    except BaseException:  # noqa: BLE001 (every error is reported)
        text = traceback.format_exc().replace("\n", " | ")
        reports.say("failed", text[-1500:])


def write(connection: saros.Connection, model: Model, reports: Reports) -> None:
    """Execute the operations of a lane one after the other; `model.next` is the number of the next operation."""
    while True:
        carry_out(connection, model.lane, model.next)
        reports.say("did", model.lane, model.next)
        model.advance()


def maintain(
    connection: saros.Connection, target: str, folders: Folders, plan: Plan, models: list[Model], reports: Reports
) -> None:
    chance = random.Random(plan.seed)
    while True:
        time.sleep(0.1 * chance.random() ** 2)
        statement = chance.choice(("flush", "flush", "flush", "merge", "full merge", "backup"))
        if statement != "backup":
            reports.say("begun")
            connection.cursor().execute(statement)
            reports.say("maintained", statement)
        elif plan.served:
            incremental = ["--incremental"] if chance.random() < 0.5 else []
            back_up(
                ["--url", target, "--to", folders.backups, *incremental],
                reports,
                lambda: [model.next for model in models],
            )


def back_up(words: list[str], reports: Reports, positions: Callable[[], list[int]]) -> None:
    """Make a backup and report its number and the positions of the lanes before and after it."""
    low = positions()
    reports.say("begun")
    code, text = command(backup.main, *words)
    if code:
        raise RuntimeError(f"saros backup: {text}")
    reports.say("backup", json.dumps([int(text.split()[1]), low, positions()]))


def command(main: Callable[[list[str]], int], *words: str) -> tuple[int, str]:
    """Run a command of `saros` in this process; return its exit code and its output."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = main([*words, "--quiet"] if main is not sync.main else [*words])
    return code, output.getvalue()


def serve(folder: str, port: int) -> None:
    """The main function of a server's process."""
    server = Server(folder, HOST, port)
    server.start()
    threading.Event().wait()


def send(folders: Folders, port: int, plan: Plan, reports: Reports) -> None:
    """The main function of the process that runs rounds of sync."""
    chance = random.Random(plan.seed)
    while not os.path.exists(os.path.join(folders.edge, "node.json")) or serving(folders.centre) is None:
        time.sleep(0.01)
    add_receiver(folders, port)
    while True:
        time.sleep(0.1 * chance.random())
        reports.say("begun")
        code, text = command(sync.main, "once", "--data", folders.edge)
        if code:
            raise RuntimeError(f"saros sync once: {text}")
        reports.say("synced")


def add_receiver(folders: Folders, port: int) -> None:
    words = ("--data", folders.edge, "--name", "edge", "--retries", "1")
    code, text = command(sync.main, "add-receiver", f"saros://{HOST}:{port}", *words)
    if code:
        raise RuntimeError(f"saros sync add-receiver: {text}")


# ---------------------------------------------------------------------------------------------- the judge, a process


@dataclass(frozen=True, slots=True)
class Evidence:
    """The acknowledged operations: `models` has each lane's content after its last acknowledged operation."""

    models: list[Model]
    #: The number of the round's last acknowledged backup, and the lanes' positions before and after it; None if no
    #: backup was acknowledged.
    backup: tuple[int, list[int], list[int]] | None
    #: The models at the positions before the last backup.
    before: list[Model]
    #: Whether to run one more round of sync and compare the receiver, and the port for the receiver.
    synced: bool
    port: int


class Wrong(Exception):
    """A violation."""


def judge(folders: Folders, evidence: Evidence, reports: Reports) -> None:
    """Compare everything; report for each lane whether its operation in progress has taken effect."""
    check(folders.edge, "before it is opened")
    applied: list[int] = []
    connection = saros.connect(folders.edge, options=options())
    for model in evidence.models:
        after = model.copy()
        after.advance()
        found = read(connection, model.lane)
        applied.append(position_of(found, [model, after], "after the cut") - model.next)
        if applied[-1]:
            model.advance()
    if evidence.synced:
        connection.execute("flush")
    connection.close()
    check(folders.edge, "after it was opened")
    if os.path.exists(folders.backups):
        check_backups(folders, evidence)
    if evidence.synced:
        check_receiver(folders, evidence)
    reports.say("judged", json.dumps(applied))


def check(folder: str, when: str) -> None:
    if not os.path.exists(os.path.join(folder, "node.json")):
        return
    result = check_folder(folder, LocalDisk(), lambda _: None)
    if result.problems or result.set_aside:
        raise Wrong(f"saros verify {when}: {[*map(str, result.problems), *result.set_aside]}")


def position_of(found: Content, models: list[Model], when: str) -> int:
    """Return the position of the model whose content equals `found`. Raises Wrong."""
    differences = []
    for model in models:
        difference = found.difference(model.content())
        if difference is None:
            return model.next
        differences.append(f"{model.next} operations: {difference}")
    raise Wrong(f"lane {models[0].lane} {when}: {differences[0]}; {differences[-1]}")


def check_backups(folders: Folders, evidence: Evidence) -> None:
    """Check that all backups are sound, and that the last acknowledged backup exists and restores an allowed state."""
    repository = Repository(folders.backups, LocalDisk())
    numbers = [catalog.number for catalog in repository.catalogs_if_any()]
    if numbers:
        report = verify(repository)
        if report.problems:
            raise Wrong(f"saros backup verify: {[(str(error), which) for error, which in report.problems]}")
    if evidence.backup is None:
        return
    number, _, high = evidence.backup
    if number not in numbers:
        raise Wrong(f"backup {number} is gone; there are {numbers}")
    if number != numbers[-1]:
        return  # a later backup was completed but not acknowledged: `restore` would use that one
    with tempfile.TemporaryDirectory(prefix="saros-restored-") as folder:
        code, text = command(backup.restore, "--from", folders.backups, "--data", folder)
        if code:
            raise Wrong(f"saros restore: {text}")
        with saros.connect(folder, options=options()) as restored:
            for lane, model in enumerate(evidence.before):
                position_of(read(restored, lane), list(states(model, high[lane] + 1)), f"of backup {number}")


def states(model: Model, last: int) -> Iterator[Model]:
    """Yield a copy of the model at each position from the model's current position to `last`."""
    while True:
        yield model.copy()
        if model.next >= last:
            return
        model.advance()


def check_receiver(folders: Folders, evidence: Evidence) -> None:
    """Check that one more round of sync makes the receiver's content equal to that of the models."""
    server = Server(folders.centre, HOST, evidence.port)
    server.start()
    try:
        add_receiver(folders, evidence.port)
        code, text = command(sync.main, "once", "--data", folders.edge)
        if code or "refused" in text:
            raise Wrong(f"saros sync once after the cut: {text}")
        with saros.connect(f"saros://{server.address}") as connection:
            for model in evidence.models:
                position_of(read(connection, model.lane), [model], "at the receiver")
    finally:
        server.stop()
    check(folders.centre, "of the receiver")


# ---------------------------------------------------------------------------------------------- rounds


@dataclass(slots=True)
class Tally:
    """The figures of the summary."""

    cuts: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    applied: Counter[int] = field(default_factory=Counter)
    maintained: Counter[str] = field(default_factory=Counter)


class Round:
    """One round: the processes work, the cut occurs, and the folder is checked. Raises Wrong, FileSystemDamaged."""

    def __init__(self, disk: LoopDisk, plan: Plan, models: list[Model], port: int, tally: Tally) -> None:
        self._disk = disk
        self._folders = Folders(disk.root)
        self._plan = plan
        self._models = models
        self._port = port
        self._tally = tally
        self._before = [model.copy() for model in models]
        self._backup: tuple[int, list[int], list[int]] | None = None
        self._is_cut = False
        self._events = dict.fromkeys(Moment, 0)
        self._rest = b""

    def run(self, kept: Path) -> None:
        """Run the round; copy the data folder, as the cut left it, to `kept`."""
        with self._processes() as end:
            self._until_cut(end)
            self._disk.cut(self._plan.cut)
            self._is_cut = True
            self._tally.cuts[self._plan.cut.name] += 1
            time.sleep(self._plan.seconds)
        self._disk.restore()
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self._disk.root, kept)
        self._judge()

    @contextlib.contextmanager
    def _processes(self) -> Iterator[int]:
        """Start the processes and yield the read end of their pipe; then kill them, and read the remaining reports."""
        reading, writing = pipe()
        reports, folders, plan = Reports(writing), self._folders, self._plan
        acts: list[tuple[object, ...]] = [(work, folders, plan, [model.copy() for model in self._models], reports)]
        if plan.served:
            acts.append((serve, folders.edge, 0))
        if plan.synced:
            acts += [(serve, folders.centre, self._port), (send, folders, self._port, plan, reports)]
        children = [start(reporting, reports, *act) for act in acts]
        os.close(writing)
        try:
            yield reading
        finally:
            for child in children:
                child.kill()
                child.join()
            while self._take(reading, PATIENCE_S):
                pass
            os.close(reading)

    def _until_cut(self, end: int) -> None:
        """Wait until the moment of the cut."""
        chance, plan = random.Random(self._plan.seed), self._plan
        heard = time.monotonic()
        while not self._is_due():
            if time.monotonic() - heard > PATIENCE_S:
                raise Wrong(f"nothing goes on: {self._events}")
            if self._take(end, 0.01):
                heard = time.monotonic()
            write_back_some(self._disk.root, chance.random(), chance.random())
        time.sleep(plan.seconds)
        while self._take(end, 0.0):
            pass

    def _is_due(self) -> bool:
        return self._events[self._plan.moment] >= self._plan.events

    def _take(self, end: int, seconds: float) -> bool:
        """Process the reports that arrive within `seconds`; return whether there were any."""
        if not select.select([end], [], [], seconds)[0]:
            return False
        data = os.read(end, PIPE_BYTES)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            word, _, rest = line.decode().partition(" ")
            self._note(word, rest)
        return bool(data)

    def _note(self, word: str, rest: str) -> None:
        match word:
            case "begun":
                self._events[Moment.BEGUN] += 1
            case "did":
                lane, number = map(int, rest.split())
                model = self._models[lane]
                assert model.next == number
                model.advance()
                self._tally.operations[operation(number).kind.name] += 1
                self._tally.rows += operation(number).rows
                self._events[Moment.ACKNOWLEDGED] += 1
            case "backup":
                number, low, high = json.loads(rest)
                self._backup = (number, low, high)
                self._tally.maintained["backup"] += 1
            case "maintained" | "synced":
                self._tally.maintained[rest or word] += 1
            case "failed" if not self._is_cut:
                raise Wrong(f"before the cut: {rest}")

    def _judge(self) -> None:
        reading, writing = pipe()
        evidence = Evidence(self._models, self._backup, self._at_backup(), self._plan.synced, self._port)
        child = start(judge_or_say, self._folders, evidence, Reports(writing))
        os.close(writing)
        word, _, rest = os.read(reading, PIPE_BYTES).decode().partition(" ")
        child.join()
        os.close(reading)
        if word != "judged":
            raise Wrong(rest or f"the process that opened the folder ended with {child.exitcode}")
        for model, applied in zip(self._models, json.loads(rest), strict=True):
            self._tally.applied[applied] += 1
            if applied:
                model.advance()

    def _at_backup(self) -> list[Model]:
        """Return the models at the lanes' positions before the last backup."""
        if self._backup is not None:
            for model, low in zip(self._before, self._backup[1], strict=True):
                while model.next < low:
                    model.advance()
        return self._before


def judge_or_say(folders: Folders, evidence: Evidence, reports: Reports) -> None:
    faulthandler.dump_traceback_later(PATIENCE_S, exit=True)
    try:
        judge(folders, evidence, reports)
    except Wrong as error:
        reports.say("wrong", error)
    except BaseException:  # noqa: BLE001 (every error is a violation)
        reports.say("wrong", traceback.format_exc())
    os._exit(0)  # do not wait for threads of a store that is still open


def pipe() -> tuple[int, int]:
    """Create a pipe that can buffer all reports of a round."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return reading, writing


def start(act: Callable[..., None], *arguments: object) -> ForkProcess:
    child = _FORK.Process(target=act, args=arguments, daemon=True)
    with uninterrupted():
        child.start()
    return child


# ---------------------------------------------------------------------------------------------- the campaign


def images(arguments: argparse.Namespace, chance: random.Random) -> Iterator[LoopDisk]:
    """Yield a new file system, with random options, for each `CUTS_PER_IMAGE` cuts."""
    kind = FILE_SYSTEMS[arguments.file_system]
    for first in range(0, arguments.cuts, CUTS_PER_IMAGE):
        make, mount = chance.choice(kind.make), arguments.mount or chance.choice(kind.mount)
        print(f"cut {first}: {kind.name} {' '.join(make)} {mount}", flush=True)
        with loop_disk(kind.name, make, mount) as disk:
            yield disk


def campaign(arguments: argparse.Namespace, kept: Path) -> int:
    """Run all rounds; return the exit code."""
    chance = random.Random(arguments.seed)
    (port,) = free_ports(1)
    tally, started, cut = Tally(), time.monotonic(), 0
    for disk in images(arguments, chance):
        models = [Model(lane) for lane in range(LANES)]
        for _ in range(min(CUTS_PER_IMAGE, arguments.cuts - cut)):
            plan = draw(chance)
            try:
                Round(disk, plan, models, port, tally).run(kept)
            except (Wrong, FileSystemDamaged) as error:
                print(f"seed {arguments.seed}, cut {cut}, {plan}: {type(error).__name__}: {error}")
                print(f"what the cut left: {kept}")
                return 1
            cut += 1
    shutil.rmtree(kept)
    print(summary(arguments, tally, time.monotonic() - started))
    return 0


def summary(arguments: argparse.Namespace, tally: Tally, seconds: float) -> str:
    def counts(counter: Counter[str]) -> str:
        return ", ".join(f"{name} {count:,}" for name, count in sorted(counter.items()))

    return (
        f"{sum(tally.cuts.values())} power cuts of {arguments.file_system} ({counts(tally.cuts)}), durability"
        f" {arguments.durability}, {seconds:.0f} s\n"
        f"acknowledged: {counts(tally.operations)}; {2 * tally.rows:,} points; {counts(tally.maintained)}\n"
        f"operations in progress: {tally.applied[1]} happened, {tally.applied[0]} did not\n"
        "nothing lost, nothing wrong"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Power cuts on a real file system.")
    parser.add_argument("--cuts", type=int, default=100)
    parser.add_argument("--file-system", choices=FILE_SYSTEMS, default="ext4")
    parser.add_argument("--mount", help="mount options of all file systems, instead of drawn ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--durability", default="fsync")
    arguments = parser.parse_args()
    missing = why_unavailable(arguments.file_system)
    if missing is not None:
        print(f"skipped: {missing}")
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that nothing stays mounted
    os.environ["SAROS_DURABILITY"] = arguments.durability
    for name, value in OPTIONS.items():
        os.environ[f"SAROS_{name.upper()}"] = str(value)
    os.environ["SAROS_HTTP_PORT"] = "0"
    return campaign(arguments, Path(tempfile.mkdtemp(prefix="saros-power-kept-")) / "folder")


if __name__ == "__main__":
    run(main)
