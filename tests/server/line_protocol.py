"""A protocol of text lines over TCP, written against the client API alone: the example of docs/protocols.md.

LOGIN user password                     OK
SQL statement                           the rows as CSV, then END; OK count if the statement has no rows
INSERT device time name=number ...      OK points
CANCEL                                  no answer of its own: the running statement ends with ERR 715
QUIT                                    the connection is closed

An error is answered by `ERR code message`. Each connection has a thread that reads lines and one that runs commands.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread

import pyarrow as pa
import pyarrow.csv

from saros_server.api import operations
from saros_server.api.calls import Peer
from saros_server.api.cancellation import CancelToken
from saros_server.api.client_api import ClientApi
from saros_server.api.errors import BadMessage, refusal_of
from saros_server.api.executions import Statement
from saros_server.api.insert_request import InsertRequest


class LineListener:
    """Implements `saros_server.server.Listener`."""

    def __init__(self, api: ClientApi, host: str, port: int) -> None:
        self.connections: set[socket.socket] = set()
        self._server = ThreadingTCPServer((host, port), lambda *words: Connection(self, api, *words))
        self.address = f"{host}:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever)

    def start(self) -> None:
        self._thread.start()

    def stop(self, grace_s: float) -> None:
        self._server.shutdown()
        self._thread.join(grace_s)
        for connection in list(self.connections):
            connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()  # waits for the connections' threads


class Connection(StreamRequestHandler):
    def __init__(self, listener: LineListener, api: ClientApi, *words: object) -> None:
        self.listener, self.api = listener, api
        self.token, self.cancel = b"", CancelToken()
        super().__init__(*words)

    def handle(self) -> None:
        self.peer = Peer.at(self.client_address[0])
        self.listener.connections.add(self.request)
        running: Future[None] | None = None
        with ThreadPoolExecutor(1) as worker:
            for line in self.lines():
                verb, _, rest = line.decode().strip().partition(" ")
                if verb == "CANCEL":
                    self.cancel.cancel()
                    continue
                if verb == "QUIT":
                    break
                if running is not None:
                    running.result()
                self.cancel = CancelToken()
                running = worker.submit(self.answer, getattr(self, f"do_{verb}", self.unknown), rest)
            self.cancel.cancel()  # the client is gone
        if self.token:
            self.call(operations.CLOSE, None)
        self.listener.connections.discard(self.request)

    def lines(self) -> Iterator[bytes]:
        with suppress(OSError):  # the client is gone
            yield from self.rfile

    def call(self, operation, request):
        return self.api.call(operation, self.peer, self.token, request, cancel=self.cancel)

    def answer(self, command: Callable[[str], Iterable[bytes]], rest: str) -> None:
        try:
            for text in command(rest):
                self.wfile.write(text)
        except OSError:
            self.cancel.cancel()  # the client is gone
        except Exception as error:  # noqa: BLE001 (the top of a call)
            code, message = refusal_of(error)
            self.wfile.write(f"ERR {code} {' '.join(message.split())}\n".encode())

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
                yield csv(pa.ipc.read_record_batch(pa.py_buffer(message), schema))
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
