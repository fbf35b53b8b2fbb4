"""Mutation testing of the code on which data depends: a test or a simulation must find each small change.

python benchmarks/campaign_automutants.py [--minutes 10] [--room storage] [--core manifest] [--again] [--tests FILE ...]
python benchmarks/campaign_automutants.py --report

    mutation         changes of comparisons, arithmetic, conditions, constants, jumps; removed calls and assignments
    mutant_session   a process for each mutant: the tests that execute it, fastest first, or some simulated seeds

`CORES` lists cores: modules, the tests that could find their mutants, and possibly a simulation.
The file `build/automutants/<core>.jsonl` records the outcome of each mutant, so a later run continues where this run
ended; the mutants of a function that has changed are tried again.
`--again` tries the survivors again; with `--tests`, only the tests in these files are run. A core's mutants are tried
in random order, so the share of found mutants among the tried mutants estimates the share among all mutants.
Simulations take longer than tests, and begin after all mutants of a core have been tried against the tests.

tests/equivalent_mutants.toml lists mutants that no test can or should find, each with the reason; these mutants are not
tried. The exit code is 1 if fewer than 90 % of a core's tried mutants were found.
"""

from __future__ import annotations

import argparse
import ast
import json
import multiprocessing
import random
import shutil
import sys
import time
import tomllib
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from interruptible import run
from mutant_session import SIMULATED, MutantSession, Outcome, Record, Simulation
from mutant_session import run as run_session
from mutation import Mutant, functions, mutants

ROOT = Path(__file__).resolve().parents[1]
STATE = ROOT / "build" / "automutants"
EQUIVALENTS = ROOT / "tests" / "equivalent_mutants.toml"
#: The share of each core's tried mutants that must be found.
SHARE_MIN = 0.9
#: The maximum processor seconds of the tests that are run for one mutant.
BUDGET_S = 4.0
Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Core:
    """Modules of a room, as paths within the room's package, and the tests that could find the modules' mutants."""

    name: str
    room: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    simulation: str = ""

    @property
    def files(self) -> list[str]:
        """The modules' files, relative to the repository."""
        return [f"{self.room}/saros_{self.room}/{module}.py" for module in self.modules]


CORES = (
    Core(
        "manifest",
        "storage",
        ("folder/manifest",),
        ("storage/test_manifest.py", "storage/test_flush_files.py", "storage/test_deletions.py"),
    ),
    Core(
        "segmented log",
        "storage",
        ("log/segmented_log", "log/record"),
        ("storage/test_log.py", "storage/test_log_holes.py"),
    ),
    Core(
        "tombstones",
        "storage",
        ("read/deletions", "compaction/tombstone_gc"),
        ("storage/test_deletions.py", "storage/test_tombstone_gc.py", "storage/test_garbage_estimate.py"),
        "answers",
    ),
    Core(
        "merge",
        "storage",
        ("read/rank_merge", "read/series_reader"),
        ("storage/test_merge.py", "storage/test_series_reader.py", "storage/test_lockstep_reader.py"),
        "answers",
    ),
    Core("picker", "storage", ("compaction/picker",), ("storage/test_compaction_picker.py",)),
    Core(
        "flush",
        "storage",
        ("partition/flush_files", "flush/flusher"),
        (
            "storage/test_flush_files.py",
            "storage/test_flusher.py",
            "storage/test_flush_queue.py",
            "storage/test_store.py",
            "storage/test_store_faults.py",
            "storage/test_ttl.py",
            "storage/test_deadband.py",
            "storage/test_loading.py",
        ),
        "crashes",
    ),
    Core(
        "ownership",
        "cluster",
        ("data/ownership",),
        ("cluster/test_ownership.py", "cluster/test_region_apply.py", "cluster/test_replicas.py"),
    ),
    Core(
        "region apply",
        "cluster",
        ("data/region_apply", "data/applied_requests"),
        (
            "cluster/test_region_apply.py",
            "cluster/test_region_lifecycle.py",
            "cluster/test_applied_requests.py",
            "cluster/test_log_shipped_files.py",
            "cluster/test_state_files.py",
        ),
        "cluster",
    ),
    Core(
        "topology",
        "cluster",
        ("topology/transitions", "topology/change", "topology/topology"),
        ("cluster/test_growth.py", "cluster/test_meta.py", "cluster/test_meta_voters.py", "protocol/test_expansion.py"),
    ),
    Core("de-duplication", "server", ("node/request_dedup",), ("server/test_request_dedup.py",)),
    Core(
        "raft",
        "cluster",
        ("raft/node", "raft/leadership", "raft/entry_log", "raft/progress", "raft/membership", "raft/reads"),
        (
            "cluster/test_raft_scripts.py",
            "cluster/test_raft_node.py",
            "cluster/test_entry_log.py",
            "cluster/test_learners.py",
            "cluster/test_founding_positions.py",
        ),
        "raft",
    ),
    Core(
        "multiraft log",
        "cluster",
        ("multiraft/raft_log", "multiraft/log_records"),
        ("cluster/test_raft_log.py",),
        "raft",
    ),
    Core(
        "read index",
        "cluster",
        ("database/read_index",),
        ("cluster/test_read_index.py", "cluster/test_read_views.py"),
        "cluster",
    ),
    Core(
        "sync rounds",
        "sync",
        ("round",),
        (
            "sync/test_round.py",
            "sync/test_rounds.py",
            "sync/test_incoming.py",
            "sync/test_hostile.py",
            "sync/test_window.py",
        ),
    ),
)


def simulation(name: str) -> Simulation | None:
    """Return a function that runs the simulation for one seed and raises an exception if it finds a fault."""
    sys.path.insert(0, str(ROOT / "tests"))
    if name in ("answers", "crashes"):
        import campaign_storage

        return {"answers": campaign_storage.answers, "crashes": campaign_storage.crashes}[name]
    if name in ("raft", "cluster"):
        import campaign_sim

        return lambda seed: campaign_sim.live(name, seed)
    return None


# ---------------------------------------------------------------------------------------------- state


def equivalents() -> dict[Key, str]:
    """Return the keys of the mutants that need not be found, each with the reason."""
    listed = tomllib.loads(EQUIVALENTS.read_text(encoding="utf-8")).get("mutant", [])
    return {(each["file"], each["function"], each["before"], each["after"]): each["reason"] for each in listed}


@dataclass
class Ledger:
    """The mutants of a core, and the outcomes of the tried mutants."""

    core: Core

    def __post_init__(self) -> None:
        """Read the recorded outcomes for functions that have not changed since."""
        self.mutants = [mutant for file in self.core.files for mutant in mutants(ROOT, file)]
        self.codes = {
            (file, name): zlib.crc32(ast.unparse(function).encode())
            for file in self.core.files
            for name, function in functions(ast.parse((ROOT / file).read_text(encoding="utf-8")))
        }
        self.path = STATE / f"{self.core.name.replace(' ', '-')}.jsonl"
        self.outcomes: dict[Key, Outcome] = {}
        self.excused = equivalents().keys() & {mutant.key for mutant in self.mutants}
        for line in self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else ():
            noted = json.loads(line)
            if noted["code"] == self.codes.get((noted["file"], noted["function"])):
                key = (noted["file"], noted["function"], noted["before"], noted["after"])
                self.outcomes[key] = Outcome(noted["outcome"], noted["by"])

    def note(self, mutant: Mutant, outcome: Outcome) -> None:
        """Record a mutant's outcome in the core's file."""
        self.outcomes[mutant.key] = outcome
        words = asdict(mutant) | asdict(outcome) | {"code": self.codes[mutant.file, mutant.function]}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(words) + "\n")

    def pending(self, *, again: bool) -> list[Mutant]:
        """Return the mutants to try, in a random order that is the same in each run."""
        left = [mutant for mutant in self.mutants if mutant.key not in self.excused]
        left = self.survivors() if again else [mutant for mutant in left if mutant.key not in self.outcomes]
        random.Random(0).shuffle(left)
        return left

    def survivors(self, *, simulated: bool = True) -> list[Mutant]:
        """Return the mutants that survived. Without `simulated`, omit the mutants that were tried in a simulation."""
        found = [m for m in self.mutants if self._outcome(m) == "survived" and m.key not in self.excused]
        return [m for m in found if simulated or self.outcomes[m.key].by != SIMULATED]

    def _outcome(self, mutant: Mutant) -> str:
        found = self.outcomes.get(mutant.key)
        return found.outcome if found else ""

    def share(self) -> float:
        """Return the share of the tried mutants that were found; 1 if none were tried."""
        counts = self._counts()
        found = counts["killed"] + counts["time"]
        return found / (found + counts["survived"]) if found + counts["survived"] else 1.0

    def _counts(self) -> Counter[str]:
        return Counter(self._outcome(mutant) for mutant in self.mutants if mutant.key not in self.excused)

    def summary(self) -> str:
        """Return the core's figures as one line of text."""
        counts = self._counts()
        tried = sum(counts.values()) - counts[""]
        return (
            f"{self.core.name:16}{len(self.mutants):5} mutants, {tried:4} tried: {100 * self.share():5.1f} % found"
            f" ({counts['killed']} by tests and seeds, {counts['time']} by time); {counts['survived']} survive,"
            f" {len(self.excused)} excused"
        )


# ---------------------------------------------------------------------------------------------- the campaign


def try_core(core: Core, until: float, arguments: argparse.Namespace) -> None:
    """Try a core's mutants in this process until the time is up."""
    ledger = Ledger(core)
    tests = arguments.tests or [str(ROOT / "tests" / test) for test in core.tests]

    def work(session: MutantSession) -> None:
        record: Record = session.record()
        say(f"{core.name}: {len(record.seconds)} tests, {sum(record.seconds.values()):.1f} s")
        for name in record.failed:
            say(f"    {name} fails without a mutant: left out")
        for mutant in ledger.pending(again=arguments.again):
            if time.monotonic() > until:
                return
            ledger.note(mutant, session.test(mutant, record))
        session.simulation = simulation(core.simulation)
        if session.simulation is not None and time.monotonic() < until:
            seeds = session.seeds()
            for mutant in ledger.survivors(simulated=False):
                if time.monotonic() > until:
                    return
                ledger.note(mutant, session.simulate(mutant, seeds))

    session = MutantSession(ROOT, core.files, ledger.path.with_suffix(".scratch"), arguments.budget, work)
    try:
        run_session(session, tests)
    finally:
        shutil.rmtree(session.scratch, ignore_errors=True)


def shown(mutant: Mutant, outcome: Outcome) -> str:
    """Return a few lines of text that describe a surviving mutant."""
    where = f"{mutant.file}:{mutant.line} {mutant.function}{f' ({outcome.by})' if outcome.by else ''}"
    return f"survives: {where}\n    {mutant.before}\n    {mutant.after}"


def campaign(cores: Collection[Core], arguments: argparse.Namespace) -> int:
    """Try the mutants of each core in its own process; print the report, and return the exit code."""
    STATE.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + arguments.minutes * 60
    context = multiprocessing.get_context("spawn")
    for core in cores:
        if time.monotonic() > until:
            break
        ledger = Ledger(core)
        if ledger.pending(again=arguments.again) or (core.simulation and ledger.survivors(simulated=False)):
            process = context.Process(target=try_core, args=(core, until, arguments))
            process.start()
            process.join()
    return report(cores)


def report(cores: Collection[Core]) -> int:
    """Print the surviving mutants and each core's figures; return the exit code."""
    ledgers = [Ledger(core) for core in cores]
    for ledger in ledgers:
        for mutant in ledger.survivors():
            say(shown(mutant, ledger.outcomes[mutant.key]))
        say(ledger.summary())
    return 1 if any(ledger.share() < SHARE_MIN for ledger in ledgers) else 0


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def main(words: Sequence[str] | None = None) -> int:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--room", default="", help="only the cores of this room")
    parser.add_argument("--core", default="", help="only this core")
    parser.add_argument("--again", action="store_true", help="try the survivors again")
    parser.add_argument("--tests", nargs="*", metavar="FILE", help="with the tests of these files only")
    parser.add_argument("--budget", type=float, default=BUDGET_S, help="processor seconds of tests for each mutant")
    parser.add_argument("--report", action="store_true", help="show what is known, and try nothing")
    arguments = parser.parse_args(words)
    chosen = [core for core in CORES if arguments.room in ("", core.room) and arguments.core in ("", core.name)]
    if not chosen:
        parser.error(f"no such core; there are: {', '.join(core.name for core in CORES)}")
    return report(chosen) if arguments.report else campaign(chosen, arguments)


if __name__ == "__main__":
    run(main)
