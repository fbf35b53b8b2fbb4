"""The client of the process that reads Parquet files: starts the process with a memory limit, and reads its answers.

The process is started for the first file, and reads one file at a time. If the import of a file stops before the file's
end, the process is killed. Only one thread at a time may use the client, but any thread may call `close` at any time.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

import msgspec
import pyarrow as pa

#: The default memory limit of a process.
WORKER_BYTES = 1 << 30
_HEAD = struct.Struct(">cQ")
_ROWS = struct.Struct(">q")


class ParquetRefused(Exception):
    """A file is damaged, or reading it takes more memory than allowed. The message has the reason and the next step."""


class ParquetHead(msgspec.Struct, frozen=True):
    """The columns of a file, and its number of rows."""

    schema: pa.Schema
    rows: int


class ParquetWorker:
    """The client of a process with limited memory that reads Parquet files."""

    def __init__(self, memory_bytes: int = WORKER_BYTES) -> None:
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def __enter__(self) -> ParquetWorker:
        """Return the worker."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the worker."""
        self.close()

    def head(self, path: Path, name: str) -> ParquetHead:
        """Open a file, and return its schema and its number of rows. `name` is the file's name in messages.

        Raises ParquetRefused, OSError, pa.ArrowInvalid.
        """
        _, payload = self._request({"open": str(path.absolute())}, name)
        schema = pa.ipc.read_schema(pa.py_buffer(payload).slice(_ROWS.size))
        return ParquetHead(schema, max(_ROWS.unpack_from(payload)[0], 0))

    def batches(self, columns: Sequence[str], rows: int, name: str) -> Iterator[pa.RecordBatch]:
        """Yield rows of the open file, up to `rows` at a time. Raises ParquetRefused, pa.ArrowInvalid."""
        is_over = False
        try:
            kind, payload = self._request({"columns": list(columns), "rows": rows}, name)
            while kind == b"B":
                yield pa.ipc.open_stream(pa.py_buffer(payload)).read_next_batch()
                kind, payload = self._received(name)
            is_over = True
        finally:
            if not is_over:
                self._end()

    def close(self) -> None:
        """Kill the process. Idempotent."""
        self._is_closed = True
        self._end()

    def _request(self, request: object, name: str) -> tuple[bytes, bytes]:
        process = self._running()
        stream = cast("IO[bytes]", process.stdin)
        try:
            stream.write(json.dumps(request).encode() + b"\n")
            stream.flush()
        except (OSError, ValueError) as error:  # the worker was closed
            raise ParquetRefused(f"the import of {name} was stopped") from error
        return self._received(name)

    def _received(self, name: str) -> tuple[bytes, bytes]:
        """Return the next answer. Raises ParquetRefused if the file cannot be read."""
        process = self._running()
        stream = cast("IO[bytes]", process.stdout)
        try:
            kind, size = _HEAD.unpack(stream.read(_HEAD.size))
            payload = stream.read(size)
        except (struct.error, ValueError) as error:  # the process has ended, or the worker was closed
            if self._is_closed:
                raise ParquetRefused(f"the import of {name} was stopped") from error
            raise self._died(name) from error
        if kind == b"M":
            self._end()
            raise ParquetRefused(
                f"{name} needs more than {self._memory_bytes >> 20} MiB of memory to be read: {_REMEDY}"
            )
        if kind == b"E":
            raise ParquetRefused(f"{name}: {payload.decode(errors='replace')}")
        return kind, payload

    def _died(self, name: str) -> ParquetRefused:
        process = self._process
        self._end()
        code = None if process is None else process.returncode
        return ParquetRefused(
            f"the process that read {name} has ended (code {code}): the file is damaged, or needs more than "
            f"{self._memory_bytes >> 20} MiB of memory to be read: {_REMEDY}"
        )

    def _running(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_closed:
                raise ParquetRefused("the import has ended")
            if self._process is None:
                self._process = _start(self._memory_bytes)
            return self._process

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):  # closing the stream fails if it still has to send a request
                    cast("IO[bytes]", stream).close()


_REMEDY = "allow more (saros import --memory, or the server's option import_memory_bytes), or write smaller row groups"


def _start(memory_bytes: int) -> subprocess.Popen[bytes]:
    """Start the process in its own session, where Ctrl-C in the terminal does not reach it. Raises OSError."""
    room = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
    path = os.pathsep.join(filter(None, (room, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(  # noqa: S603 (our own command)
        [sys.executable, "-m", __package__, str(memory_bytes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={**os.environ, "PYTHONPATH": path, "ARROW_DEFAULT_MEMORY_POOL": "system"},
        start_new_session=True,
    )
