"""Key-value pairs in the meta group: they survive a restart.

A write succeeds only if its sender knows all earlier changes.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster.test_meta import FIRST, entries, machine

from saros_cluster.meta import metadata_kv
from saros_cluster.meta.metadata_kv import CHANGED, PutNotes
from saros_cluster.meta.state import CreateDatabase, Grow, MetaState, decode_meta, encode_meta
from saros_cluster.topology.commands import Admit
from saros_storage.base.errors import UserMistake


def test_who_has_not_seen_the_last_notes_writes_none() -> None:
    state = MetaState(FIRST)
    state.apply(PutNotes(0, {"a": "1", "b": "2"}), 5)
    state.apply(CreateDatabase("root.a"), 6)
    with pytest.raises(UserMistake) as raised:
        state.apply(PutNotes(0, {"c": "3"}), 7)
    assert raised.value.code == CHANGED
    assert (5, {"a": "1", "b": "2"}) == (state.notes.version, dict(state.notes.texts))
    state.apply(PutNotes(5, {"a": "", "c": "3", "never": ""}), 8)
    assert (8, {"b": "2", "c": "3"}) == (state.notes.version, dict(state.notes.texts))


def test_who_has_not_seen_a_step_of_growing_writes_no_notes() -> None:
    state = MetaState(FIRST)
    state.apply(PutNotes(0, {"a": "1"}), 5)
    state.apply(Grow(Admit("d:1", "d:2", "token")), 6)
    with pytest.raises(UserMistake) as raised:
        state.apply(PutNotes(5, {"a": "2"}), 7)
    assert raised.value.code == CHANGED
    state.apply(Grow(Admit("d:1", "d:2", "token")), 8)  # this node is already admitted, so nothing changes
    state.apply(PutNotes(6, {"a": "2"}), 9)
    assert (9, {"a": "2"}) == (state.notes.version, dict(state.notes.texts))


def test_notes_that_are_too_much_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_kv, "CHARS_MAX", 10)
    state = MetaState(FIRST)
    state.apply(PutNotes(0, {"k": "12345"}), 1)
    with pytest.raises(UserMistake, match="10"):
        state.apply(PutNotes(1, {"l": "1234"}), 2)
    state.apply(PutNotes(1, {"k": "123456789"}), 3)
    assert {"k": "123456789"} == state.notes.texts


def test_notes_outlive_a_restart_and_a_state_of_before_there_were_any_has_none(tmp_path: Path) -> None:
    command = PutNotes(0, {"sync/ä": 'a "text"\n'})
    assert command == decode_meta(encode_meta(command))
    meta = machine(tmp_path)
    assert [None] == meta.apply(entries(command, first=3))
    meta.save()
    assert (3, dict(command.texts)) == (machine(tmp_path).state.notes.version, machine(tmp_path).state.notes.texts)
    words = meta.state.dump()
    del words["notes"]
    assert {} == MetaState.load(words).notes.texts
