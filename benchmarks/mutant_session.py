"""Try mutants in a pytest session that has imported and collected all tests: each mutant runs in a forked process.

    record     one process runs the tests with probes: the statements that each test executes, and its processor time
    test       a process for each mutant runs the tests that execute its statement, fastest first, up to a budget of
               processor time
    simulate   as `test`, but a process runs seeds of a simulation

A test that fails, or a process that dies, kills the mutant. If a process uses much more processor time than the tests
need, or no processor time for a long time (a deadlock), it is killed, and its mutant counts as killed by time. Linux
only.
"""

from __future__ import annotations

import builtins
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType

import mutation
import pytest
from mutation import Mutant

#: Limits of a process: processor seconds beyond the budget, bytes beyond the session's memory, seconds without
#: progress.
SPARE_S, SPARE_BYTES, IDLE_S = 5, 4 << 30, 15.0
#: The `by` of a mutant that has also survived the simulation.
SIMULATED = "after simulations"
Simulation = Callable[[int], object]


@dataclass(slots=True)
class Outcome:
    """The outcome of a mutant: `killed`, `time` or `survived`; `by` is the test or simulation that found it."""

    outcome: str
    by: str = ""


@dataclass(slots=True)
class Record:
    """The result of a run without mutants."""

    #: Processor seconds of each test.
    seconds: dict[str, float] = field(default_factory=dict)
    #: The tests that execute a statement, by the statement's (file, line).
    tests: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


@dataclass
class MutantSession:
    """A pytest plugin that runs `work` instead of the tests."""

    root: Path
    files: Sequence[str]
    scratch: Path
    budget_s: float
    work: Callable[[MutantSession], object]
    simulation: Simulation | None = None
    items: dict[str, pytest.Item] = field(default_factory=dict)
    functions: dict[tuple[str, str], FunctionType] = field(default_factory=dict)

    def pytest_sessionstart(self) -> None:
        """Let Hypothesis draw the same examples each time, and not shrink a failing example."""
        import hypothesis  # imported here, after pytest has rewritten its assertions

        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        hypothesis.settings.register_profile("mutants", phases=phases, database=None, derandomize=True)
        hypothesis.settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Prepare the session, and call `work`."""
        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        self.items = {item.nodeid: item for item in session.items}
        self.functions = mutation.live_functions([self.root / file for file in self.files])
        self.work(self)
        return True

    # ------------------------------------------------------------------------------------------ without mutants

    def record(self) -> Record:
        """Run all tests with probes."""
        found = json.loads(self._fork(self._record, None))
        record = Record(found["seconds"], failed=found["failed"])
        for name in sorted(record.seconds, key=lambda name: record.seconds[name]):
            for number, line in found["lines"][name]:
                record.tests.setdefault((self.files[number], line), []).append(name)
        return record

    def _record(self) -> str:
        touched: set[tuple[int, int]] = set()
        setattr(builtins, mutation.PROBE, touched.add)
        for number, file in enumerate(self.files):
            for name, code in mutation.probed_code(self.root, file, number).items():
                self._plant(file, name, code)
        seconds, lines, failed = {}, {}, []
        for name, item in self.items.items():
            touched.clear()
            started = time.process_time()
            failures = list(_failures([item]))
            seconds[name], lines[name] = time.process_time() - started, sorted(touched)
            if failures:
                failed.append(name)
                del seconds[name], lines[name]
        return json.dumps({"seconds": seconds, "lines": lines, "failed": failed})

    def seeds(self) -> int:
        """Return how many seeds of the simulation, run without a mutant, fit into the budget."""
        return int(self._fork(lambda: str(_simulate(self.simulation, sys.maxsize, self.budget_s)[0]), None))

    # ------------------------------------------------------------------------------------------ with one

    def test(self, mutant: Mutant, record: Record) -> Outcome:
        """Run the tests that execute a mutant's statement."""
        if (str(self.root / mutant.file), mutant.function) not in self.functions:
            return Outcome("survived", "the tests do not import the function")
        chosen, needed = [], 0.0
        for name in record.tests.get((mutant.file, mutant.line), ()):
            needed += record.seconds[name]
            if needed > self.budget_s and chosen:
                break
            chosen.append(self.items[name])
        if not chosen:
            return Outcome("survived", "no test executes it")
        return self._with(mutant, lambda: next(_failures(chosen), ""), min(needed, self.budget_s))

    def simulate(self, mutant: Mutant, seeds: int) -> Outcome:
        """Run the seeds from 0 on."""

        def run_seeds() -> str:
            seed, error = _simulate(self.simulation, seeds, self.budget_s * 4)
            return f"seed {seed}: {error}" if error else ""

        found = self._with(mutant, run_seeds, self.budget_s)
        return found if found.outcome != "survived" else Outcome("survived", SIMULATED)

    def _with(self, mutant: Mutant, find: Callable[[], str], needed_s: float) -> Outcome:
        code = mutation.mutated_code(self.root, mutant)

        def do() -> str:
            self._plant(mutant.file, mutant.function, code)
            return find()

        try:
            by = self._fork(do, needed_s * 4 + self.budget_s + SPARE_S)
        except TimeoutError as error:
            return Outcome("time", str(error))
        return Outcome("killed", by) if by else Outcome("survived")

    def _plant(self, file: str, name: str, code: object) -> None:
        function = self.functions.get((str(self.root / file), name))
        if function is not None:
            function.__code__ = code  # type: ignore[assignment]

    # ------------------------------------------------------------------------------------------ processes

    def _fork(self, do: Callable[[], str], cpu_s: float | None) -> str:
        """Run `do` in a forked process; return its result, or how the process ended. Raises TimeoutError."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        receiving, sending = os.pipe()
        pid = os.fork()
        if pid == 0:
            _become_child(sending, do, cpu_s)
        os.close(sending)
        try:
            return _receive(receiving, pid, patient=cpu_s is None)
        finally:
            os.close(receiving)
            with suppress(ProcessLookupError):  # the process has ended, and had no children
                os.killpg(pid, signal.SIGKILL)


def _become_child(sending: int, do: Callable[[], str], cpu_s: float | None) -> None:
    """Run `do`, send its result, and end the process."""
    os.setpgid(0, 0)
    if cpu_s is not None:
        limit = int(cpu_s + time.process_time()) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        resource.setrlimit(resource.RLIMIT_AS, (_address_space() + SPARE_BYTES,) * 2)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    try:
        text = do()
    except BaseException as error:  # noqa: BLE001 (any error kills the mutant)
        text = f"{type(error).__name__}: {error}"
    _write_all(sending, text.encode())
    os._exit(0)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _receive(receiving: int, pid: int, *, patient: bool) -> str:
    parts, progress, moved = [], -1, time.monotonic()
    while True:
        if select.select([receiving], [], [], 1.0)[0]:
            part = os.read(receiving, 1 << 20)
            if not part:
                break
            parts.append(part)
        used, is_running = _activity(pid)
        if used != progress or is_running:
            progress, moved = used, time.monotonic()
        elif not patient and time.monotonic() - moved > IDLE_S:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise TimeoutError("deadlock")
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status) and not parts:
        if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
            raise TimeoutError("processor time")
        return f"signal {os.WTERMSIG(status)}"
    if status and not parts:  # pytest's time limit for a test ends the process
        raise TimeoutError(f"exit code {os.waitstatus_to_exitcode(status)}")
    return b"".join(parts).decode()


def _activity(pid: int) -> tuple[int, bool]:
    """Return the ticks that a process has used, and whether any of its threads is runnable."""
    used, is_running = 0, False
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # the thread has ended
            continue
        used += int(fields[11]) + int(fields[12])
        is_running |= fields[0] in "RD"
    return used, is_running


# ---------------------------------------------------------------------------------------------- in a process


class _Failed:
    """A pytest plugin that records whether a test failed."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the test if it failed."""
        if report.failed:
            self.names.append(report.nodeid)


def _failures(items: Sequence[pytest.Item]) -> Iterator[str]:
    """Run tests; yield the names of the failed tests."""
    if not items:
        return
    plugins, noted = items[0].config.pluginmanager, _Failed()
    if plugins.has_plugin("terminalreporter"):
        plugins.unregister(name="terminalreporter")
    plugins.register(noted)
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        yield from dict.fromkeys(noted.names)
        noted.names.clear()
    plugins.unregister(noted)


def _simulate(simulation: Simulation | None, seeds: int, budget_s: float) -> tuple[int, str]:
    """Run the seeds from 0 on; return their number and "", or the seed that failed and its error."""
    assert simulation is not None
    until = time.process_time() + budget_s
    for seed in range(seeds):
        try:
            simulation(seed)
        except Exception as error:  # noqa: BLE001 (every error is a finding)
            return seed, f"{type(error).__name__}: {error}".partition("\n")[0] or "failed"
        if time.process_time() > until:
            return seed + 1, ""
    return seeds, ""


def run(session: MutantSession, tests: Iterable[str]) -> int:
    """Run the session on the tests; return pytest's exit code."""
    options = ["-qq", "-p", "no:cacheprovider", "-m", "not slow and not speed", f"--basetemp={session.scratch}"]
    return pytest.main([*options, *tests], plugins=[session])
