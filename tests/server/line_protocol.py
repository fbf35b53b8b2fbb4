"""A protocol of text lines, the example of docs/protocols.md. It uses nothing of the server but the client API.

LOGIN user password                     OK
SQL statement                           the rows as CSV, then END; OK count if the statement has no rows
INSERT device time name=number ...      OK points
CANCEL                                  no separate answer: the running statement ends with ERR 715
QUIT                                    the connection is closed

The answer to a failed command is `ERR code message`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.csv

from saros_server.api import operations
from saros_server.api.cancellation import CancelToken
from saros_server.api.client_api import ClientApi
from saros_server.api.errors import BadMessage, refusal_of
from saros_server.api.executions import Statement
from saros_server.api.insert_request import InsertRequest
from saros_server.port.connection import Connection, ConnectionClosed

VERBS = (b"LOGIN ", b"SQL ", b"INSERT ", b"CANCEL", b"QUIT")
LINE_BYTES_MAX = 1 << 16


class LineProtocol:
    """Implements `saros_server.port.protocols.Protocol`."""

    name = "lines"

    def __init__(self, api: ClientApi) -> None:
        self.api = api

    def accepts(self, first: bytes) -> bool:
        return first.startswith(VERBS)

    def open(self, connection: Connection) -> LineHandler:
        return LineHandler(self.api, connection)

    def refusal(self, code: int, message: str) -> bytes:
        return f"ERR {code} {message}\n".encode()


class LineHandler:
    """Implements `saros_server.port.protocols.Handler`."""

    def __init__(self, api: ClientApi, connection: Connection) -> None:
        self.api, self.connection = api.connect(connection.peer), connection
        self.token, self.cancel = b"", CancelToken()

    def handle(self) -> bool:
        verb, _, rest = self.line().partition(" ")
        if verb == "QUIT":
            return False
        if verb != "CANCEL":
            self.cancel = CancelToken()
            with self.connection.watch(self.look, self.cancel.cancel):
                self.answer(getattr(self, f"do_{verb}", self.unknown), rest)
        return True

    def close(self) -> None:
        if self.token:
            self.call(operations.CLOSE, None)
        self.api.close()

    def line(self) -> str:
        line = bytearray()
        while not line.endswith(b"\n") and len(line) < LINE_BYTES_MAX:
            line += self.connection.read(1)
        return line.decode(errors="replace").strip()

    def look(self) -> None:
        """While a statement runs, look for a CANCEL from the client. It stays in the buffer for `handle`."""
        self.connection.pull(LINE_BYTES_MAX)
        if bytes(self.connection.buffered).startswith(b"CANCEL\n"):
            self.cancel.cancel()

    def call(self, operation, request):
        return self.api.call(operation, self.token, request, cancel=self.cancel)

    def answer(self, command: Callable[[str], Iterable[bytes]], rest: str) -> None:
        try:
            for text in command(rest):
                self.connection.send([text])
        except ConnectionClosed:
            self.cancel.cancel()
            raise
        except Exception as error:  # noqa: BLE001 (every error of a call is reported to the client)
            code, message = refusal_of(error)
            self.connection.send([f"ERR {code} {' '.join(message.split())}\n".encode()])

    def unknown(self, rest: str) -> Iterable[bytes]:
        raise BadMessage("unknown command: send LOGIN, SQL, INSERT, CANCEL or QUIT")

    def do_LOGIN(self, rest: str) -> Iterable[bytes]:
        self.token = self.call(operations.OPEN, operations.Login(*rest.split(" ", 1))).token
        yield b"OK\n"

    def do_SQL(self, text: str) -> Iterable[bytes]:
        answer = self.call(operations.EXECUTE, Statement(text))
        if not answer.head.schema:
            yield f"OK {answer.head.update_count}\n".encode()
            return
        schema = pa.ipc.read_schema(pa.py_buffer(answer.head.schema))
        yield csv(schema.empty_table(), header=True)
        for messages in (answer.messages, self.call(operations.FETCH, answer.cursor) if answer.cursor else ()):
            for message in messages:
                yield csv(message.batch(schema))
        yield b"END\n"

    def do_INSERT(self, rest: str) -> Iterable[bytes]:
        try:
            device, time, *fields = rest.split(" ")
            columns = {name: [float(value)] for name, value in (field.split("=") for field in fields)}
            request = InsertRequest(device, None, 0, [int(time)], columns)
        except ValueError as error:
            raise BadMessage(f"{rest}: {error}") from error
        yield f"OK {self.call(operations.INSERT, request).points}\n".encode()


def csv(rows: pa.Table | pa.RecordBatch, *, header: bool = False) -> bytes:
    out = pa.BufferOutputStream()
    pyarrow.csv.write_csv(rows, out, pyarrow.csv.WriteOptions(include_header=header))
    return bytes(out.getvalue())
