"""Ledgers: round trips, reading while the ledger grows, and incomplete last lines."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from cluster.history import Kind, Operation, Outcome
from cluster.ledger import Batch, CorruptLedger, Ledger, LedgerReader

SENT = Batch("w1", 1, "root.a.d.v", (10, 20), (1 << 40, (1 << 40) + 1), 5, None, Outcome.UNKNOWN)
DONE = replace(SENT, answered_ns=9, outcome=Outcome.OK)
READ = Operation(3, "r3", 7, 10, 20, Kind.READ, ("root.r.d.v", -5), None, "mid", Outcome.OK, stale=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def test_records_are_read_as_they_were_written(path: Path) -> None:
    ledger, reader = Ledger(path), LedgerReader(path)
    ledger.sent(SENT)
    reader.read()
    assert {("w1", 1): SENT} == reader.batches
    ledger.answered(DONE)
    ledger.did(READ)
    ledger.refused(2017, "no leader")
    ledger.close()
    reader.read()
    assert {("w1", 1): DONE} == reader.batches
    assert [(2017, "no leader")] == reader.refusals
    assert [READ] == reader.operations
    reader.read()
    assert [READ] == reader.operations


def test_no_ledger_is_an_empty_one(path: Path) -> None:
    reader = LedgerReader(path)
    reader.read()
    assert {} == reader.batches


def test_a_torn_end_does_not_count_and_is_written_over(path: Path) -> None:
    first = Ledger(path)
    first.sent(SENT)
    whole = path.stat().st_size
    first.answered(DONE)
    first.close()
    size = path.stat().st_size
    for cut in range(whole, size):
        os.truncate(path, cut)
        reader = LedgerReader(path)
        reader.read()
        assert {("w1", 1): SENT} == reader.batches
        again = Ledger(path)
        again.answered(DONE)
        again.close()
        reader.read()
        assert {("w1", 1): DONE} == reader.batches


def test_damage_before_the_end_is_an_error(path: Path) -> None:
    ledger = Ledger(path)
    ledger.sent(SENT)
    ledger.answered(DONE)
    ledger.close()
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptLedger, match="byte 0"):
        LedgerReader(path).read()


def test_what_was_acknowledged_is_on_the_disk_before_the_client_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(path.read_bytes().count(b"\n")))
    ledger = Ledger(path)
    ledger.sent(SENT)
    ledger.answered(DONE)
    ledger.did(READ)
    ledger.did(replace(READ, kind=Kind.WRITE, value=4))
    ledger.close()
    assert [2, 4] == synced
