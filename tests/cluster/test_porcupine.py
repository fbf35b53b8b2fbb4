"""Histories of simulated clusters, checked by porcupine, which accepts correct histories and finds stale reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from cluster import cluster_mutants
from cluster.cluster_world import World
from cluster.exported_history import PorcupineUnavailable, build, complaints, export, verdict
from cluster.history import Kind, Operation, Outcome
from cluster.raft_checkers import Violation
from cluster.world_hunt import planted
from cluster.world_threads import Place

SEEDS, STALE_SEEDS = range(8), range(40)
SECONDS = 8
HERE = ("root.r.d.v", 5)


@pytest.fixture(scope="module", autouse=True)
def program() -> Path:
    """Build porcupine; return the path of the program."""
    try:
        return build()
    except PorcupineUnavailable as error:
        pytest.skip(str(error))


def operation(
    kind: Kind,
    value: int | None,
    begin: int,
    end: int | None,
    outcome: Outcome = Outcome.OK,
    consistency: str = "strong",
) -> Operation:
    return Operation(1, "s", begin, begin, end, kind, HERE, value, consistency, outcome)


WROTE_7, WROTE_8 = operation(Kind.WRITE, 7, 0, 10), operation(Kind.WRITE, 8, 20, 30)
UNKNOWN, FAILED = Outcome.UNKNOWN, Outcome.FAIL


@pytest.mark.parametrize(
    ("history", "is_right"),
    [
        ([WROTE_7, WROTE_8, operation(Kind.READ, 8, 40, 50)], True),
        ([WROTE_7, WROTE_8, operation(Kind.READ, 7, 40, 50)], False),
        ([WROTE_7, WROTE_8, operation(Kind.READ, 7, 40, 50, consistency="weak")], True),
        ([WROTE_7, WROTE_8, operation(Kind.READ, 7, 25, 50)], True),
        ([WROTE_7, operation(Kind.READ, None, 20, 30)], False),
        ([WROTE_7, operation(Kind.DELETE, None, 12, 14), operation(Kind.READ, None, 20, 30)], True),
        ([WROTE_7, operation(Kind.WRITE, 9, 12, None, UNKNOWN), operation(Kind.READ, 9, 90, 95)], True),
        ([WROTE_7, operation(Kind.WRITE, 9, 12, None, UNKNOWN), operation(Kind.READ, 7, 90, 95)], True),
        ([WROTE_7, operation(Kind.WRITE, 9, 12, 14, FAILED), operation(Kind.READ, 9, 90, 95)], False),
    ],
)
def test_a_register_is_judged(history: list[Operation], is_right: bool, tmp_path: Path) -> None:
    path = tmp_path / "one.history"
    export(history, path)
    assert ([] if is_right else [f"illegal\t{path}\troot.r.d.v 5"]) == complaints([path])


def lived(seed: int, folder: Path, places: Sequence[Place] = ()) -> Path:
    """Run a world; return the file of its history, even if the world reports a violation."""
    world = World(seed, seconds=SECONDS, places=places)
    try:
        world.run()
    except Violation:
        assert places
    path = folder / f"{seed}.history"
    export(world.registers.history, path)
    return path


@pytest.mark.slow
def test_simulated_clusters_are_acquitted(tmp_path: Path) -> None:
    for seed in SEEDS:
        lived(seed, tmp_path)
    text, is_right = verdict(tmp_path)
    assert (True, True) == (is_right, text.startswith(f"porcupine: {len(SEEDS)} histories, ")), text


@pytest.mark.slow
def test_a_planted_stale_read_is_found(tmp_path: Path) -> None:
    places = planted(cluster_mutants.reads_what_is_here)
    assert any(complaints([lived(seed, tmp_path, places)]) for seed in STALE_SEEDS)
