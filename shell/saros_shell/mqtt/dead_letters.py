"""The file of refused messages: JSON lines, synced before the messages are acknowledged.

    {"time": "2024-01-01T08:00:00+00:00", "topic": "plant/a", "payload": "x", "reason": "the payload is not a number"}

A payload that is not UTF-8 is stored as `payload_base64` instead. When the file reaches `bytes_max` bytes, it is
renamed to FILE.1, and replaces an earlier FILE.1. The two files together therefore have at most about twice this size.
Not thread-safe.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import BinaryIO

import msgspec
import orjson

#: The mode of the file. Only its owner can read it, because payloads may be secret.
_MODE = 0o600


class DeadLetter(msgspec.Struct, frozen=True):
    """A message that was refused in whole or in part, with the reason."""

    topic: str
    payload: bytes
    reason: str


class DeadLetterFile:
    """A file of dead letters. Its methods raise OSError if the file cannot be written."""

    def __init__(self, path: str, bytes_max: int) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._stream = self._open()
        _sync_folder(path)

    def _open(self) -> BinaryIO:
        return open(self._path, "ab", opener=lambda path, flags: os.open(path, flags, _MODE))

    def append(self, letters: Sequence[DeadLetter]) -> None:
        """Write the letters. They are durable when this method returns."""
        for letter in letters:
            if self._stream.closed or self._stream.tell() >= self._bytes_max:
                self._rotate()
            self._stream.write(_line_of(letter))
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def _rotate(self) -> None:
        if not self._stream.closed:
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()
            os.replace(self._path, f"{self._path}.1")
        self._stream = self._open()
        _sync_folder(self._path)

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._stream.close()


def _line_of(letter: DeadLetter) -> bytes:
    moment = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = {"time": moment, "topic": letter.topic, **_payload_of(letter.payload), "reason": letter.reason}
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def _payload_of(payload: bytes) -> dict[str, str]:
    try:
        return {"payload": payload.decode()}
    except UnicodeDecodeError:
        return {"payload_base64": base64.b64encode(payload).decode()}


def _sync_folder(path: str) -> None:
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
