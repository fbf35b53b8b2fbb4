"""Simulated clusters on new seeds: no safety rule may be violated. With --mutants, planted mistakes must be found.

python benchmarks/campaign_sim.py [--minutes 10] [--processes 2] [--first SEED] [--histories FOLDER]
python benchmarks/campaign_sim.py --mutants [NAME ...] [--seeds 2000]

    raft       the Raft nodes of many groups, with disks and messages, no threads      tests/cluster/raft_world.py
    cluster    complete nodes as in production, with clients                           tests/cluster/cluster_world.py
               (for odd seeds, nodes join and leave; for every fourth seed, few of many nodes vote in the meta group)
    growing    nodes join and leave for all seeds: only for planted mistakes
    voters     few nodes vote for all seeds: only for planted mistakes
    disk       disks become slow, without other faults: only for planted mistakes      tests/cluster/slow_disk_world.py
    deletions  clients delete and drop the data that they write: only for planted mistakes
                                                                                       tests/cluster/deletion_world.py

The worlds `raft` and `cluster` get the same share of the time. Some seeds are run twice, in different processes, and
must have the same trace. The first violation ends the campaign: the seed and the last events are printed, the exit code
is 1, and `World(seed).run()` reproduces it (for an odd seed of cluster, `World(seed, growing=True)`; for every fourth
seed, `few_voters=True`).

With `--histories`, the clients' calls in the cluster worlds and their results are written to files in a folder, and
porcupine, an independent checker, judges them at the end (tests/cluster/exported_history.py).

With `--mutants`, mistakes are planted one at a time, and the seeds from 0 on are run until one of them reports a
violation. The exit code is 1 if a mistake is not found within `--seeds` seeds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, as_completed, wait
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from cluster import (
    cluster_mutants,
    cluster_world,
    deletion_mutants,
    deletion_world,
    disk_mutants,
    growth_mutants,
    raft_mutants,
    raft_world,
    read_mutants,
    slow_disk_world,
    voter_mutants,
)
from cluster.exported_history import SUFFIX, export, verdict
from cluster.raft_checkers import Violation
from cluster.world_hunt import SEEDS_MAX, Figures, Mutant, hunt
from cluster.world_threads import Place

#: The number of seeds per batch, so that a batch takes some seconds.
BATCHES = {"raft": 25, "cluster": 1}
#: One in this many batches is run a second time.
TWICE_EVERY = 10
MUTANTS: dict[str, Sequence[Mutant]] = {
    "raft": raft_mutants.MUTANTS,
    "cluster": (*cluster_mutants.MUTANTS, *read_mutants.MUTANTS),
    "growing": growth_mutants.MUTANTS,
    "disk": disk_mutants.MUTANTS,
    "voters": voter_mutants.MUTANTS,
    "deletions": deletion_mutants.MUTANTS,
}
DIRECTED = {"disk": slow_disk_world.SlowDiskWorld, "deletions": deletion_world.DeletionWorld}


@dataclass(frozen=True, slots=True)
class Batch:
    """Some seeds of a world; `traces` are the traces of an earlier run, which must not differ."""

    world: str
    seeds: tuple[int, ...]
    traces: tuple[str, ...] = ()
    #: The folder for the files with the clients' histories; None if they are not written.
    histories: Path | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a batch."""

    batch: Batch
    figures: Figures
    traces: tuple[str, ...]
    seconds: float
    complaint: str | None = None


# ---------------------------------------------------------------------------------------------- in worker processes


def begin(started: Synchronized[int]) -> None:
    """Pin each worker to a separate core, if there are enough cores. The worker ignores Ctrl-C; its parent ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with started.get_lock():
        number, started.value = started.value, started.value + 1
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[number % len(cores)]})


def live(world: str, seed: int, places: Sequence[Place] = (), histories: Path | None = None) -> tuple[Figures, str]:
    """Run a world and return its figures and its trace. Raises Violation."""
    if world == "raft":
        raft = raft_world.World(seed, places).run()
        return raft.figures, f"{raft.trace:08x}"
    if world in DIRECTED:
        directed = DIRECTED[world](seed, places=places).run()
        return directed.figures, directed.trace.hexdigest()
    growing, few_voters = world == "growing" or seed % 2 == 1, world == "voters" or seed % 4 == 3
    whole = cluster_world.World(seed, places=places, growing=growing, few_voters=few_voters)
    try:
        whole.run()
    finally:
        if histories is not None:
            export(whole.registers.history, histories / f"{world}-{seed}{SUFFIX}")
    return whole.figures, whole.trace.hexdigest()


def run(batch: Batch) -> Done:
    """Run the worlds of a batch."""
    started = time.monotonic()
    figures, traces = Figures(), []
    complaint = None
    for seed in batch.seeds:
        try:
            found, trace = live(batch.world, seed, histories=batch.histories)
        except Violation as error:
            complaint = str(error)
            break
        figures += found
        traces.append(trace)
    return Done(batch, figures, tuple(traces), time.monotonic() - started, complaint)


def seek(world: str, name: str, seeds: int) -> int | None:
    """Return the first seed whose run finds the planted mistake, or None."""
    mutant = next(mutant for mutant in MUTANTS[world] if mutant.__name__ == name)
    return hunt(lambda seed, places: live(world, seed, places), mutant, range(seeds))


# ---------------------------------------------------------------------------------------------- the campaign


@dataclass(slots=True)
class Share:
    """The figures of one world's runs, and the seconds that they took."""

    figures: Figures = field(default_factory=Figures)
    seconds: float = 0.0
    batches: int = 0
    twice: int = 0


class Campaign:
    """One run of this campaign. `complaint` is the violation, or None."""

    def __init__(self, pool: ProcessPoolExecutor, arguments: argparse.Namespace) -> None:
        self._pool = pool
        self._processes = arguments.processes
        self._until = time.monotonic() + arguments.minutes * 60
        self._next = dict.fromkeys(BATCHES, arguments.first)
        self._histories: Path | None = arguments.histories
        self._again: list[Batch] = []
        self.shares = {world: Share() for world in BATCHES}
        self.complaint: str | None = None

    def run(self) -> None:
        """Run until the time is up or a world reports a violation."""
        running: set[Future[Done]] = set()
        while self.complaint is None and (running or time.monotonic() < self._until):
            while len(running) < self._processes and time.monotonic() < self._until:
                running.add(self._pool.submit(run, self._choose()))
            over, running = wait(running, return_when=FIRST_COMPLETED)
            for future in over:
                self._note(future.result())

    def _choose(self) -> Batch:
        """Return a batch that is to be repeated, if any, or the next batch of the world that has used less time."""
        if self._again:
            return self._again.pop()
        world = min(self.shares, key=lambda name: self.shares[name].seconds)
        first = self._next[world]
        self._next[world] += BATCHES[world]
        return Batch(world, tuple(range(first, self._next[world])), histories=self._histories)

    def _note(self, done: Done) -> None:
        share, batch = self.shares[done.batch.world], done.batch
        share.seconds += done.seconds
        if done.complaint is not None:
            self.complaint = self.complaint or f"{batch.world}: {done.complaint}"
        elif batch.traces:
            share.twice += len(batch.seeds)
            if done.traces != batch.traces:
                self.complaint = f"{batch.world}: the seeds {batch.seeds} have other traces the second time"
        else:
            share.figures += done.figures
            share.batches += 1
            if share.batches % TWICE_EVERY == 0:
                self._again.append(Batch(batch.world, batch.seeds, done.traces))


def told(world: str, share: Share, first: int) -> str:
    """Return two lines of text about the runs of a world."""
    figures = share.figures
    faults = ", ".join(f"{name} {count:,}" for name, count in sorted(figures.faults.items()))
    return (
        f"{world}: {figures.seeds:,} seeds from {first} on ({share.twice:,} of them twice, with the same traces),"
        f" {figures.seconds / 3_600:.1f} virtual hours, {figures.operations:,} operations,"
        f" {figures.elections:,} elections\n    faults: {faults or 'none'}"
    )


def campaign(pool: ProcessPoolExecutor, arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    found = Campaign(pool, arguments)
    found.run()
    for world, share in found.shares.items():
        say(told(world, share, arguments.first))
    seconds = time.monotonic() - started
    say(found.complaint or f"nothing bad happened in {seconds:.0f} s")
    is_right = found.complaint is None
    if arguments.histories is not None:
        text, are_right = verdict(arguments.histories)
        say(text)
        is_right = is_right and are_right
    return 0 if is_right else 1


# ---------------------------------------------------------------------------------------------- planted mistakes


def hunts(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (world, name) of each named mistake, or of every mistake if no names are given."""
    for world, mutants in MUTANTS.items():
        for mutant in mutants:
            if not names or mutant.__name__ in names:
                yield world, mutant.__name__


def seek_all(pool: ProcessPoolExecutor, arguments: argparse.Namespace) -> int:
    running = {
        pool.submit(seek, world, name, arguments.seeds): (world, name) for world, name in hunts(arguments.mutants)
    }
    missed = 0
    for future in as_completed(running):
        world, name = running[future]
        seed = future.result()
        missed += seed is None
        say(f"{world:10}{name:64}{f'not found in {arguments.seeds} seeds' if seed is None else f'seed {seed}'}")
    say(f"{len(running) - missed} of {len(running)} mistakes were found")
    return 1 if missed else 0


# ---------------------------------------------------------------------------------------------- the command


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Simulated clusters on new seeds.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--first", type=int, help="the first seed (default: one that nobody has seen)")
    parser.add_argument("--mutants", nargs="*", metavar="NAME", help="look for planted mistakes instead (default: all)")
    parser.add_argument("--seeds", type=int, default=SEEDS_MAX, help="in which a planted mistake must be found")
    parser.add_argument(
        "--histories", type=Path, metavar="FOLDER", help="keep clients' histories; porcupine judges them"
    )
    arguments = parser.parse_args()
    if arguments.histories is not None:
        arguments.histories.mkdir(parents=True, exist_ok=True)
    if arguments.first is None:
        arguments.first = random.SystemRandom().randrange(1_000_000, 1 << 32)
    return arguments


def main() -> int:
    arguments = parse()
    context = multiprocessing.get_context("spawn")
    work: Callable[[ProcessPoolExecutor, argparse.Namespace], int]
    work = campaign if arguments.mutants is None else seek_all
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)  # workers end with this process
    pool = ProcessPoolExecutor(arguments.processes, context, begin, (context.Value("i", 0),))
    try:
        return work(pool, arguments)
    except KeyboardInterrupt:
        for process in list(pool._processes.values()):
            process.terminate()
        return 130
    finally:
        pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    sys.exit(main())
