"""The audit trail: logins, denials, changes of schema and users, and deletions, each with its user.

    audit/00000001.jsonl   {"n": 1, "time": ..., "event": "login", "user": "ann", ..., "previous": ..., "hash": ...}
          00000002.jsonl   a new file after `FILE_BYTES_MAX`; only the operator removes old files

A line's hash covers its bytes up to the hash, including the hash of the previous line: a line that is changed, removed
or moved breaks the chain, and `verify` finds it. (A user with write access to the files can forge the whole chain, or
cut off its end: keep a copy of its head elsewhere.)
Passwords are never recorded, and are removed from statements. Failed logins and denials, which clients can cause at
will, are synced at most once a second. All other events are synced immediately.

If a line cannot be written, the failure is reported in the server's log and the database keeps running. Thread-safe.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from saros_storage.base.clock import Clock
from saros_storage.base.errors import CorruptFile
from saros_storage.io.disk import Disk, File

logger = logging.getLogger(__name__)

AUDIT_FOLDER = "audit"
FILE_BYTES_MAX = 16 << 20
#: Longer statements are truncated.
_STATEMENT_CHARACTERS = 2_000
_SYNC_NS = 1_000_000_000
#: The maximum number of bytes that `AuditLog.tail` reads. It limits the time of a call, since parsing a line takes a
#: few microseconds.
TAIL_BYTES_MAX = 16 << 20
_FIRST = "0" * 64
_NAME = re.compile(r"\d{8}\.jsonl")
_END = re.compile(rb', "hash": "([0-9a-f]{64})"\}')
_END_BYTES = len(b', "hash": ""}') + 64


class Head(msgspec.Struct, frozen=True):
    """The head of a chain: the number and the hash of its last line."""

    number: int = 0
    hash: str = _FIRST


class AuditLine(msgspec.Struct, frozen=True):
    """A line of the trail, for display."""

    number: int
    #: ISO 8601, in UTC.
    time: str
    event: str
    user: str
    host: str
    statement: str
    #: The status code; 0: success.
    code: int


class AuditTail(msgspec.Struct, frozen=True):
    """The newest lines of a trail."""

    lines: list[AuditLine]
    #: True if there are no older lines.
    is_complete: bool


class AuditLog:
    """Writes the audit trail of a data folder, and reads the newest lines of the trail."""

    def __init__(self, folder: str, disk: Disk, clock: Clock, *, file_bytes_max: int = FILE_BYTES_MAX) -> None:
        """Continue the trail of a data folder. Raises CorruptFile, OSError."""
        self._folder = os.path.join(folder, AUDIT_FOLDER)
        self._disk = disk
        self._clock = clock
        self._file_bytes_max = file_bytes_max
        self._lock = threading.Lock()
        self._file: File | None = None
        self._synced_ns = clock.monotonic_ns()
        disk.make_folder(self._folder)
        self._head = self._recover()

    def record(self, event: str, user: str, host: str, statement: str, code: int) -> None:
        """Append a line; code 0 stands for success. If the line cannot be written, the error is logged, not raised."""
        with self._lock:
            try:
                self._write(event, user, host, statement[:_STATEMENT_CHARACTERS], code)
            except OSError:
                logger.exception(
                    "a line of the audit trail could not be written", extra={"audit_event": event, "user": user}
                )
                self._file = None

    def tail(self, lines_max: int, *, user: str = "", event: str = "") -> AuditTail:
        """Return the latest lines that have this user and this event, newest first; an empty text matches all.

        Raises OSError.
        """
        found: list[AuditLine] = []
        bytes_left = TAIL_BYTES_MAX
        for name in reversed(audit_files(self._disk, self._folder)):
            path = os.path.join(self._folder, name)
            size = self._disk.size(path)
            start = max(size - bytes_left, 0)
            data = self._disk.read(path, start, size - start)
            for line in reversed(data[: data.rfind(b"\n") + 1].split(b"\n")):
                entry = _entry(line)
                if entry is None or user not in ("", entry.user) or event not in ("", entry.event):
                    continue
                if len(found) == lines_max:
                    return AuditTail(found, is_complete=False)
                found.append(entry)
            bytes_left -= len(data)
            if bytes_left <= 0:
                return AuditTail(found, is_complete=False)
        return AuditTail(found, is_complete=True)

    def _write(self, event: str, user: str, host: str, statement: str, code: int) -> None:
        if self._file is None:
            self._head = self._recover()
        assert self._file is not None
        if self._file.size >= self._file_bytes_max:
            self._begin(self._head)
        moment = datetime.fromtimestamp(self._clock.now_ns() / 1e9, UTC).isoformat(timespec="milliseconds")
        words = {"n": self._head.number + 1, "time": moment, "event": event, "user": user, "host": host}
        words |= {"statement": statement, "code": code, "previous": self._head.hash}
        body = json.dumps(words, ensure_ascii=False).encode("utf-8", "backslashreplace")[:-1]
        digest = hashlib.sha256(body).hexdigest()
        self._file.write([body, f', "hash": "{digest}"}}\n'.encode()])
        self._head = Head(self._head.number + 1, digest)
        now = self._clock.monotonic_ns()
        if code == 0 or now - self._synced_ns >= _SYNC_NS:
            self._file.sync()
            self._synced_ns = now

    def _recover(self) -> Head:
        """Remove an incomplete line that a crash has left, and find the head of the chain."""
        names = audit_files(self._disk, self._folder)
        if not names:
            self._begin(Head())
            return Head()
        path = os.path.join(self._folder, names[-1])
        data = bytes(self._disk.map(path)) if self._disk.size(path) else b""
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            self._disk.truncate(path, whole)
        if whole == 0 and len(names) > 1:
            before = os.path.join(self._folder, names[-2])
            data, path_of_line = bytes(self._disk.map(before)), before
        else:
            data, path_of_line = data[:whole], path
        head = Head()
        if data:
            line = data[data.rfind(b"\n", 0, len(data) - 1) + 1 :].rstrip(b"\n")
            head = _checked(line, path_of_line)
        self._file = self._disk.append(path)
        self._disk.sync_folder(
            self._folder
        )  # the process that created the file may have been killed before it synced the folder
        return head

    def _begin(self, head: Head) -> None:
        """Start a new file, named by the number of its first line."""
        if self._file is not None:
            self._file.sync()
            self._file.close()
        self._file = self._disk.append(os.path.join(self._folder, f"{head.number + 1:08}.jsonl"))
        self._disk.sync_folder(self._folder)

    def close(self) -> None:
        """Sync and close the trail."""
        with self._lock:
            if self._file is not None:
                self._file.sync()
                self._file.close()
                self._file = None


class SessionTrail(msgspec.Struct, frozen=True):
    """An implementation of the engine's `Trail` for one session."""

    log: AuditLog
    user: str
    host: str

    def record(self, event: str, statement: str, code: int) -> None:
        """See `Trail.record`."""
        self.log.record(event, self.user, self.host, statement, code)


# ---------------------------------------------------------------------------------------------- verifying


class Verified(msgspec.Struct, frozen=True):
    """An unbroken chain: the number of its first line, and its head."""

    first: int
    head: Head


def verify(folder: str, disk: Disk) -> Verified:
    """Check the trail of a data folder. Raises CorruptFile, which names the first line that breaks the chain."""
    first, head = 0, Head()
    for path, line in _lines(os.path.join(folder, AUDIT_FOLDER), disk):
        found = _checked(line, path)
        words = json.loads(line)
        if first == 0:
            first = found.number
            head = Head(found.number - 1, str(words.get("previous")))
            if found.number == 1 and head.hash != _FIRST:
                raise _corrupt(path, "the first line refers to a line before it")
        if (found.number, words.get("previous")) != (head.number + 1, head.hash):
            raise _corrupt(path, f"line {found.number} does not follow line {head.number}")
        head = found
    return Verified(first, head)


def _entry(line: bytes) -> AuditLine | None:
    """Parse a line; return None if it is malformed or incomplete."""
    try:
        words = json.loads(line)
        time, event, user, host, text = (str(words[name]) for name in ("time", "event", "user", "host", "statement"))
        return AuditLine(int(words["n"]), time, event, user, host, text, int(words["code"]))
    except (ValueError, KeyError, TypeError):
        return None


def audit_files(disk: Disk, folder: str) -> list[str]:
    """Return the names of the trail's files, oldest first."""
    return [name for name in disk.list(folder) if _NAME.fullmatch(name)]


def _lines(folder: str, disk: Disk) -> Iterator[tuple[str, bytes]]:
    for name in audit_files(disk, folder):
        path = os.path.join(folder, name)
        data = bytes(disk.map(path)) if disk.size(path) else b""
        if data and not data.endswith(b"\n"):
            raise _corrupt(path, "the last line is incomplete")
        for line in data.split(b"\n")[:-1]:
            yield path, line


def _checked(line: bytes, path: str) -> Head:
    """Check the hash of a line, and return the head after it. Raises CorruptFile."""
    match = _END.fullmatch(line[-_END_BYTES:])
    if match is None or hashlib.sha256(line[:-_END_BYTES]).hexdigest().encode() != match.group(1):
        raise _corrupt(path, f"this line was changed: {line[:60].decode(errors='replace')}")
    try:
        return Head(int(json.loads(line)["n"]), match.group(1).decode())
    except (ValueError, KeyError, TypeError) as error:
        raise _corrupt(path, f"this line was not written by Saros: {error}") from error


def _corrupt(path: str, reason: str) -> CorruptFile:
    return CorruptFile(path, 0, reason)
