"""Automatic mutants: those of a small module are created and detected, and all listed excused mutants exist."""

from __future__ import annotations

import builtins
import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import mutation  # noqa: E402 (this module is in benchmarks/)
from campaign_automutants import CORES  # noqa: E402
from mutation import Mutant  # noqa: E402

TOY = '''
"""A toy."""
import logging
from functools import lru_cache

logger = logging.getLogger()
LIMIT = 3

class Heap:
    def __init__(self):
        self.items = []

    def push(self, item, /, most=7):
        if len(self.items) >= LIMIT and not item:
            raise ValueError(f"full: {1 + 1}")
        logger.info("pushed %s", 1)
        self.items.append(item)
        self.last = item
        return True

@lru_cache
def first(numbers):
    for number in numbers:
        if number < 0:
            continue
        return min(number, 2)
'''
TESTS = """
import toy

def test_push():
    heap = toy.Heap()
    assert heap.push(1) and [1] == heap.items
    heap.push(0)
    heap.push(2)
    try:
        heap.push(0)
    except ValueError:
        pass
    assert 2 == heap.last
    assert heap.push(5)

def test_first():
    assert 1 == toy.first((-1, 1))
    assert 2 == toy.first((3,))

def test_nothing():
    pass
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    (tmp_path / "toy.py").write_text(TOY, encoding="utf-8")
    return tmp_path


def changed(mutants: list[Mutant]) -> list[tuple[str, str, str]]:
    return [(mutant.function, mutant.before, mutant.after) for mutant in mutants]


def test_the_mutants_of_a_module(toy):
    condition = "if len(self.items) >= LIMIT and (not item):"
    assert [
        ("Heap.push", condition, "if len(self.items) >= LIMIT or not item:"),
        ("Heap.push", condition, "if len(self.items) > LIMIT and (not item):"),
        ("Heap.push", condition, "if len(self.items) >= LIMIT and item:"),
        ("Heap.push", "raise ValueError(f'full: {1 + 1}')", "pass"),
        ("Heap.push", "self.items.append(item)", "pass"),
        ("Heap.push", "self.last = item", "pass"),
        ("Heap.push", "return True", "return False"),
        ("first", "if number < 0:", "if number <= 0:"),
        ("first", "continue", "break"),
        ("first", "return min(number, 2)", "return None"),
        ("first", "return min(number, 2)", "return max(number, 2)"),
        ("first", "return min(number, 2)", "return min(number, 3)"),
    ] == changed(mutation.mutants(toy, "toy.py"))


def test_changes_that_read_alike_have_numbers(tmp_path):
    (tmp_path / "toy.py").write_text("def f(a):\n    g(a)\n    g(a)\n", encoding="utf-8")
    assert [("f", "g(a)", "pass"), ("f", "g(a)", "pass (2)")] == changed(mutation.mutants(tmp_path, "toy.py"))


def test_what_a_statement_does_not_show_in_its_first_line(tmp_path):
    text = "def f(a):\n    match a:\n        case 1 if a > b:\n            return a\n"
    (tmp_path / "toy.py").write_text(text, encoding="utf-8")
    assert ("f", "a > b", "a >= b") in changed(mutation.mutants(tmp_path, "toy.py"))


def loaded(folder: Path) -> object:
    spec = importlib.util.spec_from_file_location("toy", folder / "toy.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_mutant_takes_the_place_of_a_function_that_is_wrapped(toy):
    module = loaded(toy)
    functions = mutation.live_functions([toy / "toy.py"])
    mutant = next(m for m in mutation.mutants(toy, "toy.py") if m.after == "return max(number, 2)")
    functions[str(toy / "toy.py"), "first"].__code__ = mutation.mutated_code(toy, mutant)
    assert 2 == module.first((1,))


def test_probes_name_the_statements_that_are_executed(toy, monkeypatch):
    module = loaded(toy)
    touched: list[tuple[int, int]] = []
    monkeypatch.setattr(builtins, mutation.PROBE, touched.append, raising=False)
    functions = mutation.live_functions([toy / "toy.py"])
    for name, code in mutation.probed_code(toy, "toy.py", 5).items():
        functions[str(toy / "toy.py"), name].__code__ = code
    assert 1 == module.first((1,))
    lines = TOY.splitlines()
    assert [(5, "for number in numbers:"), (5, "if number < 0:"), (5, "return min(number, 2)")] == [
        (number, lines[line - 1].strip()) for number, line in touched
    ]


CAMPAIGN = """
import sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import campaign_automutants as campaign
from pathlib import Path
campaign.ROOT, campaign.STATE = Path(sys.argv[2]), Path(sys.argv[2]) / "state"
campaign.STATE.mkdir(exist_ok=True)
toy = campaign.Core("toy", "", (), ())
campaign.Core.files = property(lambda core: ["toy.py"])
arguments = campaign.argparse.Namespace(again=False, budget=1.0, tests=[sys.argv[2] + "/test_toy.py"])
for _ in range(2):
    campaign.try_core(toy, float("inf"), arguments)
campaign.report([toy])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="watches processes through /proc")
def test_a_campaign_finds_them_and_goes_on_where_it_ended(toy):
    (toy / "test_toy.py").write_text(TESTS, encoding="utf-8")
    (toy / "pytest.ini").write_text("[pytest]\nmarkers = slow\n  speed\n", encoding="utf-8")
    (toy / "campaign.py").write_text(CAMPAIGN, encoding="utf-8")
    command = [sys.executable, "campaign.py", str(ROOT / "benchmarks"), str(toy)]
    done = subprocess.run(command, cwd=toy, env=os.environ, capture_output=True, text=True, check=True)
    assert 12 == len((toy / "state" / "toy.jsonl").read_text(encoding="utf-8").splitlines())
    assert "12 tried:  91.7 % found (11 by tests and seeds, 0 by time); 1 survive, 0 excused" in done.stdout, (
        done.stdout
    )
    assert "    if number < 0:\n    if number <= 0:\n" in done.stdout


def test_a_core_consists_of_files_and_tests_that_exist():
    for core in CORES:
        assert [] == [file for file in core.files if not (ROOT / file).exists()]
        assert [] == [test for test in core.tests if not (ROOT / "tests" / test).exists()]


def test_excused_mutants_exist_and_have_reasons():
    listed = tomllib.loads((ROOT / "tests" / "equivalent_mutants.toml").read_text(encoding="utf-8")).get("mutant", [])
    files = {each["file"] for each in listed}
    made = {mutant.key for file in files for mutant in mutation.mutants(ROOT, file)}
    keys = [(each["file"], each["function"], each["before"], each["after"]) for each in listed]
    assert [] == [key for key in keys if key not in made]
    assert len(keys) == len(set(keys))
    assert all(len(each["reason"]) > 20 for each in listed)
    assert files <= {file for core in CORES for file in core.files}
