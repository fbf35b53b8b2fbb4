"""Triggers that users write: the batches that triggers see and refuse, and protection from their failures."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from engine.embedded_engine import Engine
from engine.installed_package import install, install_example

from saros_engine.extensions import trigger_dispatcher as after_module
from saros_engine.extensions.trigger_dispatcher import TriggerDispatcher
from saros_engine.writes.batches import MultiBatch
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType
from saros_storage.base.write_request import UNNUMBERED

SEEN = """
import threading
from saros.extensions import *

seen, gate = [], threading.Event()

def note(batch):
    columns = {name: (c.type.name, c.values.tolist(), c.valid.tolist()) for name, c in batch.columns.items()}
    seen.append((batch.trigger, batch.before, batch.device, batch.times.tolist(), columns, dict(batch.attributes)))

def fail(batch):
    raise KeyError("broken")

def wait(batch):
    gate.wait()
    note(batch)

noting, failing, waiting = Trigger(fire=note), Trigger(fire=fail), Trigger(fire=wait)
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    install_example(monkeypatch, tmp_path / "example")
    points = {name: name for name in ("noting", "failing", "waiting")}
    install(monkeypatch, tmp_path / "seen", "seen_triggers", SEEN, {"triggers": points})
    made = Engine(tmp_path / "data")
    seen_module().seen.clear()
    seen_module().gate.clear()
    yield made
    seen_module().gate.set()
    made.close()


def seen_module():
    import importlib

    return importlib.import_module("seen_triggers")


def drained(engine: Engine) -> list[tuple[object, ...]]:
    assert engine.engine._triggers.calls.drain(30)
    return seen_module().seen


def test_a_before_trigger_refuses_whole_batches_and_only_of_its_paths(engine: Engine) -> None:
    engine.ask("create stateless trigger t before insert on root.a.*.x as 'limits' with ('low'='0', 'high'='10')")
    engine.ask("insert into root.a.d(time, x, y) values (1, 5, 500)")
    with pytest.raises(UserMistake, match=r"trigger t refuses 2 rows for root\.a\.d: x is 11\.0 at 3") as refusal:
        engine.ask("insert into root.a.d(time, x, y) values (2, 5, 1), (3, 11, 1)")
    assert 1302 == refusal.value.code
    engine.ask("insert into root.a.d(time, y) values (4, 500)")
    engine.ask("insert into root.b.d(time, x) values (5, 500)")
    good, bad = (Column(DataType.DOUBLE, np.array([1.0, sign * 2.0, 3.0])) for sign in (1, -1))
    engine.engine.insert_columns("root.a.d", np.arange(6, 9), {"x": good})
    with pytest.raises(UserMistake, match=r"x is -2\.0 at 17"):
        engine.engine.insert_columns("root.a.d", np.arange(16, 19), {"x": bad})
    assert [[1, 5.0], [6, 1.0], [7, 2.0], [8, 3.0]] == engine.ask("select x from root.a.d")[1]
    assert [[1, 500.0], [4, 500.0]] == engine.ask("select y from root.a.d")[1]
    engine.ask("drop trigger t")
    engine.ask("insert into root.a.d(time, x) values (20, 500)")


def test_a_trigger_sees_each_device_of_a_write_of_many(engine: Engine) -> None:
    engine.ask("create trigger t before insert on root.a.*.x as 'limits' with ('high'='10')")
    values = Column(DataType.DOUBLE, np.array([1.0, 2.0, 11.0, 3.0]))
    rows = MultiBatch(["root.a.d1", "root.a.d2", "root.a.d3"], [1, 2, 1], np.arange(4), {"x": values}, None)
    outcomes = engine.engine.insert_rows(rows, session=engine.session, request=UNNUMBERED)
    assert [1, 1302, 1] == [getattr(outcome, "code", outcome) for outcome in outcomes]
    assert [[0, 1.0, None], [3, None, 3.0]] == engine.ask("select x from root.a.d1, root.a.d3")[1]


def test_a_refused_batch_creates_no_series(engine: Engine) -> None:
    engine.ask("create trigger t before insert on root.** as 'limits' with ('high'='10')")
    with pytest.raises(UserMistake, match="refuses"):
        engine.ask("insert into root.a.d(time, x) values (1, 11)")
    assert [] == engine.ask("show timeseries")[1]


def test_an_after_trigger_sees_each_batch_once_as_columns(engine: Engine) -> None:
    engine.ask("create trigger t after insert on root.a.** as 'noting' with ('k'='v')")
    engine.ask("insert into root.a.d(time, x, s) values (1, 5, null), (2, null, 'on')")
    engine.ask("select x into root.a.copy(x) from root.a.d")
    first, second = drained(engine)
    assert ("t", False, "root.a.d", [1, 2]) == first[:4]
    assert ("DOUBLE", [True, False]) == (first[4]["x"][0], first[4]["x"][2])
    assert ("TEXT", [None, "on"], [False, True]) == first[4]["s"]
    assert {"k": "v"} == first[5]
    assert ("root.a.copy", [1]) == second[2:4]


def test_an_after_trigger_gets_what_was_written_though_the_caller_goes_on_with_its_arrays(engine: Engine) -> None:
    engine.ask("create trigger t after insert on root.** as 'waiting'")
    values = np.array([1.0, 2.0])
    engine.engine.insert_columns("root.a.d", np.array([1, 2]), {"x": Column(DataType.DOUBLE, values)})
    values[:] = -1
    seen_module().gate.set()
    assert [1.0, 2.0] == drained(engine)[0][4]["x"][1]


def test_a_failing_trigger_refuses_before_and_is_told_of_after(engine: Engine) -> None:
    engine.ask("create trigger a after insert on root.a.** as 'failing'")
    engine.ask("create trigger b before insert on root.b.** as 'failing'")
    engine.ask("insert into root.a.d(time, x) values (1, 5)")
    with pytest.raises(
        UserMistake, match=r"trigger b failed, so 1 rows for root\.b\.d were not written: KeyError"
    ) as failed:
        engine.ask("insert into root.b.d(time, x) values (1, 5)")
    assert 1302 == failed.value.code
    drained(engine)
    header, rows = engine.ask("show triggers")
    assert ["TriggerName", "Event", "Type", "State", "PathPattern", "ClassName", "NodeID"] == header
    assert [
        [
            "a",
            "AFTER_INSERT",
            "STATELESS",
            "ACTIVE, 1 calls failed, last: KeyError: 'broken'",
            "root.a.**",
            "failing",
            "ALL",
        ],
        ["b", "BEFORE_INSERT", "STATELESS", "ACTIVE", "root.b.**", "failing", "ALL"],
    ] == rows
    assert [[1]] == engine.ask("select count(x) from root.a.d")[1]


def test_a_trigger_that_hangs_does_not_hold_up_writers_for_ever(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(after_module, "WAITING_BYTES_MAX", 1_000)
    monkeypatch.setattr(after_module, "PATIENCE_SECONDS", 0.2)
    engine.ask("create trigger t after insert on root.** as 'waiting'")
    for time in range(100):
        engine.ask(f"insert into root.a.d(time, x) values ({time}, 1)")
    assert [[100]] == engine.ask("select count(x) from root.a.d")[1]
    state = engine.ask("show triggers")[1][0][3]
    assert "calls skipped because it was too slow" in state
    seen_module().gate.set()
    told = len(drained(engine))
    assert f"ACTIVE, {100 - told} calls skipped because it was too slow" == engine.ask("show triggers")[1][0][3]
    engine.ask("insert into root.a.d(time, x) values (100, 1)")
    assert told + 1 == len(drained(engine))


def test_closing_lets_what_waits_run() -> None:
    calls, done = TriggerDispatcher(), []
    gate = threading.Event()
    calls.submit("t", 8, gate.wait)
    for number in range(10):
        calls.submit("t", 8, lambda number=number: done.append(number))
    threading.Timer(0.05, gate.set).start()
    calls.close()
    calls.close()
    assert list(range(10)) == done
    calls.submit("t", 8, lambda: done.append(-1))
    assert (list(range(10)), 1) == (done, calls.fired("t").missed)


def test_triggers_survive_a_restart(engine: Engine, tmp_path: Path) -> None:
    engine.ask("create trigger t before insert on root.a.** as 'limits' with ('high'='10')")
    engine.close()
    again = Engine(tmp_path / "data")
    with pytest.raises(UserMistake, match="trigger t refuses"):
        again.ask("insert into root.a.d(time, x) values (1, 11)")
    again.close()
    engine.__init__(tmp_path / "data")  # for the fixture to close


def test_what_no_trigger_may_be(engine: Engine) -> None:
    engine.ask("create trigger t before insert on root.a.** as 'limits'")
    cases = {
        "create trigger t after insert on root.** as 'noting'": (1300, "trigger t already exists"),
        "create trigger u after insert on root.** as 'nobody'": (
            1303,
            "no installed package has the entry point 'nobody'",
        ),
        "create trigger u after insert on root.** as 'fahrenheit'": (1303, "no installed package"),
        "create trigger u before insert on root.** as 'limits' with ('low'='much')": (
            701,
            "trigger u: could not convert",
        ),
        "drop trigger u": (1301, "trigger u doesn't exist"),
    }
    for text, (code, words) in cases.items():
        with pytest.raises(UserMistake, match=words) as mistake:
            engine.ask(text)
        assert code == mistake.value.code, text
