"""A client's ledger: its requests and their results, in a file that survives the client.

    <checksum> <record as JSON>         one record per line
               sent      a batch        before the call, so that its outcome counts as unknown if the client dies
               answered  a batch        after the call, with its outcome: ok, fail or unknown
               did       an operation   after the call: an operation on one register
               refused   code, text     the error of a call

An acknowledgement is on the disk before the client continues. Each process has one file, which its threads share. The
file can be read at any moment: an incomplete last line is one that is still being written. An incomplete earlier line
is an error, since evidence is lost.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

from cluster.history import Kind, Operation, Outcome


class CorruptLedger(Exception):
    """An error: a line before the last line of a ledger is damaged."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The points of one series that one call sent."""

    session: str
    sequence: int
    series: str
    times: tuple[int, ...]
    values: tuple[int, ...]
    invoked_ns: int
    #: The moment of the result; None while it is pending.
    answered_ns: int | None
    outcome: Outcome


class Ledger:
    """A ledger. `sent` and `answered` record batches, and `did` records operations on registers."""

    def __init__(self, path: str | Path) -> None:
        """Open the file for appending; truncate an incomplete last line."""
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        data = Path(path).read_bytes()
        os.truncate(self._file, data.rfind(b"\n") + 1)
        self._lock = threading.Lock()

    def sent(self, batch: Batch) -> None:
        """Record a batch before the call."""
        self._append(["sent", *astuple(batch)])

    def answered(self, batch: Batch) -> None:
        """Record the outcome of a batch, even if the outcome is unknown."""
        self._append(["answered", *astuple(batch)])
        os.fsync(self._file)

    def did(self, operation: Operation) -> None:
        """Record an operation on a register, with its final outcome."""
        self._append(["did", *astuple(operation)])
        if operation.outcome is Outcome.OK and operation.kind is not Kind.READ:
            os.fsync(self._file)

    def refused(self, code: int, text: str) -> None:
        """Record the error of a failed call."""
        self._append(["refused", code, text])

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _append(self, words: list[object]) -> None:
        data = _line(words)
        with self._lock:
            assert os.write(self._file, data) == len(data)


def _line(words: list[object]) -> bytes:
    text = json.dumps(words, separators=(",", ":"), default=lambda word: word.value).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


class LedgerReader:
    """A reader of a growing ledger: each `read` takes the records appended since the last `read`."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._offset = 0
        #: Batches by (session, sequence), with their latest recorded outcomes.
        self.batches: dict[tuple[str, int], Batch] = {}
        self.operations: list[Operation] = []
        #: Pairs (code, text) of failed calls.
        self.refusals: list[tuple[int, str]] = []

    def read(self) -> None:
        """Read the records appended since the last call. Raises CorruptLedger."""
        if not self._path.exists():
            return
        with self._path.open("rb") as stream:
            stream.seek(self._offset)
            data = stream.read()
        for kind, words in self._records(data):
            if kind == "did":
                self.operations.append(_operation(words))
            elif kind == "refused":
                code, text = words
                self.refusals.append((code, text))
            else:
                batch = _batch(words)
                self.batches[batch.session, batch.sequence] = batch

    def _records(self, data: bytes) -> Iterator[tuple[str, list[object]]]:
        *lines, _torn = data.split(b"\n")
        for line in lines:
            checksum, _, text = line.partition(b" ")
            if checksum != b"%08x" % zlib.crc32(text):
                raise CorruptLedger(f"{self._path} at byte {self._offset}: {line[:60]!r}")
            self._offset += len(line) + 1
            kind, *words = json.loads(text)
            yield kind, words


def _batch(words: list) -> Batch:
    session, sequence, series, times, values, invoked_ns, answered_ns, outcome = words
    return Batch(session, sequence, series, tuple(times), tuple(values), invoked_ns, answered_ns, Outcome(outcome))


def _operation(words: list) -> Operation:
    process, session, sequence, invoked_ns, returned_ns, kind, register, *rest = words
    value, consistency, outcome, stale = rest
    series, timestamp = register
    return Operation(
        process,
        session,
        sequence,
        invoked_ns,
        returned_ns,
        Kind(kind),
        (series, timestamp),
        value,
        consistency,
        Outcome(outcome),
        stale,
    )
