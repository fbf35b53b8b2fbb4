"""Phases of an experiment: each phase's mean and lowest write throughput, and the processor time of each process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np
from system.local_cluster import processor_s_of

_SAMPLE_SECONDS = 0.25
#: The length of the windows in which the lowest rate of a phase is measured. A window begins every quarter of a second.
WINDOW_SECONDS, _STEP_SECONDS = 5.0, 0.25

#: Pairs of a time, in seconds of the monotonic clock, and the number of points acknowledged at that time.
Answers = np.ndarray[tuple[int, int], np.dtype[np.float64]]
#: A time, and the processor seconds that each process had used until this time.
Sample = tuple[float, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of an experiment. Its times are in seconds of the monotonic clock."""

    name: str
    begins: float
    ends: float


class ProcessorWatch:
    """A thread that records the processor time of processes while the context lasts."""

    def __init__(self, processes: Callable[[], Mapping[str, int]]) -> None:
        """Watch the processes whose ids the function `processes` returns, by name."""
        self._processes = processes
        self.samples: list[Sample] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(_SAMPLE_SECONDS):
            used = {name: processor_s_of(process) for name, process in self._processes().items()}
            self.samples.append((time.monotonic(), {name: s for name, s in used.items() if s is not None}))


def phase_numbers(phase: Phase, answers: Answers, samples: Sequence[Sample]) -> dict[str, object]:
    """Return the figures of a phase: its beginning and end, its write rates, and the processor time of each process."""
    origin = answers[0, 0]
    return {
        "name": phase.name,
        "begins": phase.begins - origin,
        "ends": phase.ends - origin,
        "rate": rate_between(answers, phase.begins, phase.ends),
        "worst": worst_rate(answers, phase.begins, phase.ends),
        "processor_percent": processor_percent(samples, phase.begins, phase.ends),
    }


def rate_between(answers: Answers, begins: float, ends: float) -> float:
    """Return the number of points per second that were acknowledged in [begins, ends)."""
    chosen = (answers[:, 0] >= begins) & (answers[:, 0] < ends)
    return float(answers[chosen, 1].sum() / (ends - begins))


def worst_rate(answers: Answers, begins: float, ends: float) -> float:
    """Return the lowest rate in any window within the phase, or the phase's rate if it is shorter than a window."""
    last = ends - WINDOW_SECONDS
    if last <= begins:
        return rate_between(answers, begins, ends)
    starts = np.append(np.arange(begins, last, _STEP_SECONDS), last)
    return min(rate_between(answers, float(start), float(start) + WINDOW_SECONDS) for start in starts)


def processor_percent(samples: Sequence[Sample], begins: float, ends: float) -> dict[str, float]:
    """Return the percentage of a core that each process used between its first and its last sample in a phase."""
    found: dict[str, list[tuple[float, float]]] = {}
    for moment, used in samples:
        if begins - _SAMPLE_SECONDS <= moment <= ends + _SAMPLE_SECONDS:
            for name, seconds in used.items():
                found.setdefault(name, []).append((moment, seconds))
    return {
        name: 100 * (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0])
        for name, points in found.items()
        if len(points) > 1
    }
