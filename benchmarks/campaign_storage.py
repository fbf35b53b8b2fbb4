"""The randomized tests of storage with new seeds: crashes, failures, random operations, bad files.

python benchmarks/campaign_storage.py [--minutes M] [--seed 1] [--processes 1]
python benchmarks/campaign_storage.py --whole
python benchmarks/campaign_storage.py --mutants [--only name]

    crashes      stories (random operations), cut off at each disk operation; some then continue, and are cut off again
    failures     a disk operation fails, once or for a while, with EIO or ENOSPC
    answers      random operations under random settings, compared with dictionaries; all plans give the same result
    backups      backups and restores are cut off, or the disk fails
    bad files    mutated files of all kinds, and folders with one of them
    readers      files that random operations leave, read by Apache's implementations: PyPI `tsfile`, Java

The tests take turns. Each round has its own seed. The report of a violation has the seed and a way to reproduce the
violation; the exit code is then 1. `--whole` enumerates, without a time limit, all crashes, kills and failures of the
fixed stories, of which the tests check a sample. `--mutants` instead plants mistakes one at a time: each mistake must
be found.
"""

from __future__ import annotations

import argparse
import errno
import importlib.util
import itertools
import logging
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.queues import Queue
from pathlib import Path
from random import Random

from interruptible import run, uninterrupted
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from server.stock_clients import artefacts
from storage.backup_crashes import BackUp, crash_backups, crash_restores, fail_backups, fail_restores
from storage.bad_files import Survivals, attack, attack_folder, attack_watching_memory, folder, kinds
from storage.metamorphic import Metamorphic, Tally
from storage.other_reader import JAVA, PYTHON, differences, story_files
from storage.planting import hunt
from storage.storage_mutants import MUTANTS
from storage.store_crashes import Figures, enumerate_crashes, enumerate_failures, enumerate_kills
from storage.store_model import Operation
from storage.store_opening import OPTIONS, Wrong
from storage.store_stories import afterwards, drawn_story, expiring_story, loading_story, merging_story, story

STORIES = (story, merging_story, loading_story, expiring_story)

#: The number of operations in a story, and the number in its continuation after a crash.
STORY, AFTERWARDS = 14, 4
ANSWERS = 60
STORIES_READ = 20
FILES, WATCHED_FILES, FOLDERS = 2_000, 20, 80

Round = Callable[[int], Counter[str]]


def crashes(seed: int) -> Counter[str]:
    """Crash a random story at every or every second disk operation; continue on some of the disks, and crash again."""
    chance = Random(seed)
    options = replace(
        OPTIONS,
        durability=chance.choice(("fsync", "fsync", "os")),
        segment_bytes=chance.choice((300, 900, 4_000)),
        memtable_bytes_max=chance.choice((2_000, 1 << 20)),
        compaction=chance.random() < 0.3,
        compaction_files_min=2,
        compaction_file_bytes=chance.choice((2_000, 1 << 30)),
    )
    told, after = drawn_story(chance, STORY), drawn_story(chance, AFTERWARDS, STORY + 1)
    after = [operation for operation in after if not operation.name.startswith("delete database")]
    found = enumerate_crashes(told, after, options, again=6, one_of=chance.choice((1, 2)), chance=chance)
    return Counter(
        {"operations": found.operations, "states": found.different, "states behind a second crash": found.second}
    )


def failures(seed: int) -> Counter[str]:
    """Run a random story repeatedly, each time with another failing disk operation."""
    chance = Random(seed)
    number = chance.choice((errno.EIO, errno.ENOSPC))
    failing = chance.choice((1, 1, 3, 50))
    step = chance.choice((5, 7, 11))
    start = chance.randrange(step)
    options = replace(OPTIONS, compaction=chance.random() < 0.3, compaction_files_min=2, compaction_file_bytes=2_000)
    told = drawn_story(chance, STORY)
    found = enumerate_failures(told, number, options, failing=failing, step=step, start=start)
    return Counter({"operations": found.operations * found.failures, "failures": found.failures})


def answers(seed: int) -> Counter[str]:
    """Compare the results of random operations under all query plans."""
    tally = Tally()
    Metamorphic(seed, tally).run(ANSWERS)
    return Counter(
        {"operations": tally.operations, "restarts": tally.restarts, "plans": tally.plans, "random stores": tally.seeds}
    )


def bad_files(seed: int) -> Counter[str]:
    """Open mutated files, and folders that contain one."""
    survivals = Survivals()
    samples = kinds()
    attack(samples, seed, FILES, survivals)
    attack_watching_memory(samples, seed, WATCHED_FILES, survivals)
    files = folder()
    for number in range(seed * FOLDERS, (seed + 1) * FOLDERS):
        attack_folder(files, number, survivals)
    return Counter({"bad files": sum(survivals.files.values()), "bad files refused": sum(survivals.refused.values())})


def backups(seed: int) -> Counter[str]:
    """Run and restore backups during a story, with crashes and on a failing disk."""
    chance = Random(seed)
    told: list[Operation | BackUp] = list(drawn_story(chance, STORY))
    for place in sorted(chance.sample(range(1, STORY), 2), reverse=True):
        told.insert(place, BackUp(incremental=chance.random() < 0.7))
    told.append(BackUp(incremental=chance.random() < 0.7))
    figures = []
    for cut, one_of in ((crash_backups, 6), (crash_restores, 5)):
        figures.append(cut(told, one_of=one_of, start=chance.randrange(one_of)))
    for fail, step in ((fail_backups, 23), (fail_restores, 17)):
        number, failing = chance.choice(((errno.EIO, 1), (errno.ENOSPC, 3)))
        figures.append(fail(told, number, failing=failing, step=step, start=chance.randrange(step)))
    return Counter(
        {
            "states of backups": sum(found.different for found in figures),
            "failures of backups": sum(found.failures for found in figures),
        }
    )


def readers(seed: int) -> Counter[str]:
    """Compare how Saros and each other installed implementation read the files that random operations leave."""
    first = seed * STORIES_READ
    files = [content for number in range(first, first + STORIES_READ) for content in story_files(number)]
    counts: Counter[str] = Counter()
    others = {"Java": JAVA} | ({"PyPI": PYTHON} if importlib.util.find_spec("tsfile") is not None else {})
    for name, reader in others.items():
        with tempfile.TemporaryDirectory(prefix="saros-readers-") as folder, suppress(artefacts.Unavailable):
            wrong = differences(files, Path(folder), reader)
            if wrong:
                raise Wrong("\n".join([f"as the reader of {name} has it", *wrong]))
            counts[f"files read by the reader of {name}"] += len(files)
    return counts


ROUNDS: tuple[Round, ...] = (crashes, failures, answers, bad_files, backups, readers)


def enumerate_whole() -> int:
    """Print the figures of each enumeration; a violation raises an exception."""
    logging.disable(logging.CRITICAL)
    for tell in STORIES:
        for durability in ("fsync", "os"):
            options = replace(OPTIONS, durability=durability)
            report(
                f"crashes of {tell.__name__}, {durability}", enumerate_crashes(tell(), afterwards(), options, again=6)
            )
        report(f"kills of {tell.__name__}", enumerate_kills(tell(), afterwards()))
        for number in (errno.EIO, errno.ENOSPC):
            options = replace(OPTIONS, compaction=tell is not story)
            figures = enumerate_failures(tell(), number, options)
            report(f"{errno.errorcode[number]} in {tell.__name__}", figures)
    return 0


def report(name: str, found: Figures) -> None:
    """Print a line."""
    counts = {"crashes": found.crashes, "states": found.different, "second": found.second, "failures": found.failures}
    print(f"{name}: " + ", ".join(f"{count:,} {what}" for what, count in counts.items()), flush=True)


def work(first: int, step: int, deadline: float, results: Queue[tuple[Counter[str], str]]) -> None:
    """Run rounds with this process's seeds until the time is up."""
    logging.disable(logging.CRITICAL)
    for seed in itertools.count(first, step):
        if time.monotonic() > deadline:
            break
        round_ = ROUNDS[seed // step % len(ROUNDS)]
        try:
            results.put((Counter(rounds=1) + round_(seed), ""))
        except Exception:  # noqa: BLE001 (the campaign tells it)
            results.put((Counter(violations=1), f"{round_.__name__}({seed})\n{traceback.format_exc()}"))
    results.put((Counter(), "over"))
    results.close()
    results.join_thread()
    os._exit(0)  # after a violation, threads of stores may still run


def campaign(minutes: float, seed: int, processes: int) -> int:
    """Run the campaign and print its figures; return 1 if there was a violation."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    deadline = time.monotonic() + minutes * 60
    first = seed * 1_000_000
    with uninterrupted():
        for number in range(processes):
            context.Process(target=work, args=(first + number, processes, deadline, results)).start()
    figures: Counter[str] = Counter()
    running = processes
    while running:
        found, text = results.get()
        figures += found
        if text == "over":
            running -= 1
        elif text:
            print(f"VIOLATION in {text}", flush=True)
    for name, count in sorted(figures.items()):
        print(f"{count:>12,}  {name}")
    print("violations" if figures["violations"] else "nothing lost, nothing wrong")
    return 1 if figures["violations"] else 0


def main() -> int:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--mutants", action="store_true")
    parser.add_argument("--only", default="", help="mutants whose name holds this")
    arguments = parser.parse_args()
    if arguments.mutants:
        return hunt(MUTANTS, arguments.only)
    if arguments.whole:
        return enumerate_whole()
    return campaign(arguments.minutes, arguments.seed, arguments.processes)


if __name__ == "__main__":
    run(main)
