"""Send mutated messages of both client protocols to a server process, which must serve another client meanwhile.

    seed --> valid messages, mutated: changed bits and lengths; pieces left out, repeated, exchanged or nested
         --> some messages per connection, usually after a login; the client or the server closes the connection

The campaign reports a violation if the server ends, logs an internal error, or needs ever more memory, or if the other
client is not served or does not read the points that it wrote. The seed alone determines a connection's messages.
"""

from __future__ import annotations

import random
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from server.frame_client import FrameClient, columns
from server.thrift_client import ANN, ROOT, ThriftClient, message, request_bytes
from waiting import PATIENCE_S, wait_until

from saros_cluster.users.commands import CreateUser
from saros_cluster.users.directory import FileDirectory
from saros_server.auth.passwords import Cost, hash_password
from saros_server.process.server_file import serving
from saros_server.thrift import structs
from saros_server.thrift.methods import METHODS
from saros_storage.io.disk import LocalDisk
from saros_wire.frames import HEADER_BYTES, PREFIX_BYTES, Call, Kind, decode_header, encode_credit, encode_header
from saros_wire.generated import client_pb2

#: The number of messages on each connection.
_BATCH = 40
#: One of every `_STRANGERS` connections does not log in. In one of every `_BROKEN_FRAMES` messages, the frame and the
#: header are mutated as well. The server then usually closes the connection.
_STRANGERS, _BROKEN_FRAMES = 16, 40
_EXTREMES = (0, 1, 127, 255, 65_535, 1 << 16, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
#: Deeply nested structs and lists, in Thrift's binary protocol and in protobuf.
_NESTS = (b"\x0c\x00\x01", b"\x0f\x00\x01\x0f\x00\x00\x00\x01", b"\x0d\x00\x01\x0d\x0d\x00\x00\x00\x01", b"\x0a\x7f")
_NEST_MAX = 3_000
#: The number of bytes by which memory may grow in the second half of a campaign, while caches and MemTables fill.
_GROWTH_BYTES = 192 << 20

#: The pause between two calls of the other client.
_PAUSE_SECONDS = 0.005
#: The number of connections of each protocol between two checks of the server.
_LOOK_EVERY = 10

Mutation = Callable[[random.Random, bytes, bytes], bytes]


# ---------------------------------------------------------------------------------------------- mutations


def _bits(chance: random.Random, data: bytes, _: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        if found:
            found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


def _length(chance: random.Random, data: bytes, _: bytes) -> bytes:
    at = chance.randrange(max(len(data) - 3, 1))
    number = struct.pack(chance.choice("<>") + "I", chance.choice(_EXTREMES))
    return data[:at] + number + data[at + 4 :]


def _truncated(chance: random.Random, data: bytes, _: bytes) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _extended(chance: random.Random, data: bytes, _: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.randbytes(chance.randint(1, 40)) + data[at:]


def _left_out(chance: random.Random, data: bytes, _: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at + chance.randint(1, 12) :]


def _repeated(chance: random.Random, data: bytes, _: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    end = min(at + chance.randint(1, 30), len(data))
    return data[:at] + data[at:end] * chance.randint(2, 50) + data[end:]


def _exchanged(chance: random.Random, data: bytes, other: bytes) -> bytes:
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]


def _nested(chance: random.Random, data: bytes, _: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(_NESTS) * chance.randint(1, _NEST_MAX) + data[at:]


MUTATIONS: Sequence[Mutation] = (_bits, _length, _truncated, _extended, _left_out, _repeated, _exchanged, _nested)


def mutated(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Mutate a message one to three times, and return its bytes. Pieces of the message `other` may be inserted."""
    for mutation in chance.choices(MUTATIONS, k=chance.choice((1, 1, 1, 2, 3))):
        data = mutation(chance, data, other)
    return data


# ---------------------------------------------------------------------------------------------- IoTDB's protocol


def _requests(session: int, statement: int) -> Iterator[tuple[str, object]]:
    """Yield (name of a call, struct) of valid requests."""
    series, device, ints = ["root.a.d.i"], "root.a.d", struct.pack(">2i", 1, 2)
    number, times = struct.pack(">Bi", 1, 5), struct.pack(">2q", 1, 2)
    values = ints + struct.pack(">i1si2s", 1, b"x", 2, b"yz") + b"\1\1\0\0"
    lists = [["i"], ["i"]], [number, number], [1, 2]
    queries = "select * from root.a.d", "show timeseries root.a.**", "insert into root.a.d(time, i) values (1, 2)"
    for text in queries:
        yield "executeStatementV2", structs.ExecuteStatement(session, text, statement, 10, 1_000)
    yield "executeQueryStatementV2", structs.ExecuteStatement(session, queries[0], statement, 1, 1_000)
    yield "executeUpdateStatement", structs.ExecuteStatement(session, queries[2], statement)
    yield "executeBatchStatement", structs.ExecuteBatch(session, [queries[2], "selec"])
    yield "executeRawDataQueryV2", structs.RawDataQuery(session, series, 10, 0, 10, statement)
    yield "executeLastDataQueryV2", structs.LastDataQuery(session, series, 10, 0, statement)
    yield "executeFastLastDataQueryForOneDeviceV2", structs.FastLastOfDevice(session, "root.a", device, ["i"], 10)
    yield "executeAggregationQueryV2", structs.AggregationQuery(session, statement, series, [0], 0, 10, 2)
    yield "fetchResultsV2", structs.FetchResults(session, "", 10, 1, True, 0, statement)
    yield "executeQueryStatement", structs.ExecuteStatement(session, queries[0], statement, 1, 1_000)
    yield "fetchResults", structs.FetchResults(session, "", 10, 1, True)
    yield "closeOperation", structs.CloseOperation(session, 1, statement)
    yield "requestStatementId", structs.SessionArguments(session)
    yield "setTimeZone", structs.SetTimeZone(session, "+08:00")
    yield "getProperties", structs.NoArguments()
    yield "setStorageGroup", structs.SetStorageGroup(session, "root.b")
    yield "createTimeseries", structs.CreateTimeseries(session, "root.a.d.j", 1, 0, 1, {"k": "v"}, {"t": "u"}, {}, "x")
    yield "createAlignedTimeseries", structs.CreateAlignedTimeseries(session, "root.a.e", ["i"], [1], [0], [1])
    yield "createMultiTimeseries", structs.CreateMultiTimeseries(session, series, [1], [0], [1])
    yield "deleteTimeseries", structs.Paths(session, ["root.a.x"])
    yield "deleteData", structs.DeleteData(session, series, 5, 6)
    yield "insertTablet", structs.InsertTablet(session, device, ["i", "t"], values, times, [1, 5], 2, False)
    yield (
        "insertTablets",
        structs.InsertTablets(session, [device] * 2, [["i"]] * 2, [ints] * 2, [times] * 2, [[1]] * 2, [2] * 2),
    )
    yield "insertRecord", structs.InsertRecord(session, device, ["i"], number, 3)
    yield "insertRecords", structs.InsertRecords(session, [device, device], *lists)
    yield "insertRecordsOfOneDevice", structs.InsertRecordsOfOneDevice(session, device, *lists)
    yield "insertStringRecord", structs.InsertStringRecord(session, device, ["i", "t"], ["1", "x"], 4)
    yield "insertStringRecords", structs.InsertStringRecords(session, [device], [["i"]], [["1"]], [5])


def _thrift_connection(server: AttackedServer, chance: random.Random) -> tuple[socket.socket, list[bytes]]:
    client = ThriftClient(server.address)
    if chance.randrange(_STRANGERS):
        try:
            client.open("ann", ANN)
        except BaseException:
            client.close()
            raise
        valid = [
            message(name, request_bytes(request, bare=METHODS[name].bare))
            for name, request in _requests(client.session_id, client.statement_id)
        ]
    else:
        valid = [message("openSession", request_bytes(structs.OpenSession(2, "UTC", "mallory", "secret", {"a": "b"})))]
    return client.socket, [_thrift_frame(chance, *chance.choices(valid, k=2)) for _ in range(_BATCH)]


def _thrift_frame(chance: random.Random, valid: bytes, other: bytes) -> bytes:
    """Return the message `valid`, mutated and in its frame."""
    header = 12 + struct.unpack_from(">i", valid, 4)[0]
    data = valid[:header] + mutated(chance, valid[header:], other)
    frame = struct.pack(">i", len(data)) + data
    return frame if chance.randrange(_BROKEN_FRAMES) else mutated(chance, frame, other)


def _thrift_answers(received: bytes) -> int:
    at = answers = 0
    while len(received) - at >= 4:
        (size,) = struct.unpack_from(">i", received, at)
        if size < 0:  # the refusal of a message without a frame has no frame either
            return answers + 1
        at += 4 + size
        answers += 1
    return answers


# ---------------------------------------------------------------------------------------------- native frames


#: The parts of a frame: kind, call, head, body.
_Parts = tuple[Kind, int, bytes, bytes]
_WITH_BODY = (Call.INSERT, Call.UPLOAD, Call.SYNC_CHUNK)
_WITHOUT_BODY = tuple(sorted(set(Call) - {*_WITH_BODY, Call.CLOSE}))


def _native_parts(token: bytes) -> Iterator[_Parts]:
    """Yield (kind, call, head, body) of valid frames."""
    prefix = struct.pack("<I", 1_000) + token
    statement = client_pb2.ExecuteRequest(statement="select * from root.a.d").SerializeToString()
    write = client_pb2.ExecuteRequest(statement="insert into root.a.d(time, i) values (1, 2)").SerializeToString()
    yield Kind.REQUEST, Call.EXECUTE, prefix + statement, b""
    yield Kind.REQUEST, Call.EXECUTE, prefix + write, b""
    yield Kind.REQUEST, Call.PING, prefix, b""
    yield Kind.REQUEST, Call.INSERT, prefix, columns("root.a.d", [1, 2], i=[3, 4])
    yield Kind.REQUEST, Call.HOLD, prefix + client_pb2.HoldRequest().SerializeToString(), b""
    yield Kind.REQUEST, Call.UPLOAD, prefix + client_pb2.UploadRequest().SerializeToString(), b"bytes"
    yield Kind.REQUEST, Call.CREATE_CHECKPOINT, prefix, b""
    yield Kind.REQUEST, Call.SYNC_BEGIN, prefix + client_pb2.SyncBeginRequest().SerializeToString(), b""
    yield Kind.REQUEST, Call.SYNC_CHUNK, prefix + client_pb2.SyncChunkRequest().SerializeToString(), b"bytes"
    yield Kind.CREDIT, 0, encode_credit(1 << 20), b""
    yield Kind.CANCEL, 0, b"", b""
    yield Kind.PING, 0, b"", b""


def _native_connection(server: AttackedServer, chance: random.Random) -> tuple[socket.socket, list[bytes]]:
    client = FrameClient(server.address)
    if chance.randrange(_STRANGERS):
        parts = list(_native_parts(server.token))
    else:
        request = client_pb2.OpenRequest(user="mallory", password="secret").SerializeToString()
        parts = [(Kind.REQUEST, Call.OPEN, struct.pack("<I32s", 1_000, b"") + request, b"")]
    frames = [_native_frame(chance, number, *chance.choices(parts, k=2)) for number in range(1, _BATCH + 1)]
    return client.socket, frames


def _native_frame(chance: random.Random, number: int, valid: _Parts, other: _Parts) -> bytes:
    """Return a frame whose head or body was mutated. A request sometimes gets the number of a different call."""
    kind, call, head, body = valid
    if kind is Kind.REQUEST:
        if not chance.randrange(8):
            call = chance.choice(_WITH_BODY if body else _WITHOUT_BODY)
        if body and chance.randrange(2):
            body = mutated(chance, body, other[3])
        else:
            head = head[:PREFIX_BYTES] + mutated(chance, head[PREFIX_BYTES:], other[2])
    frame = encode_header(kind, number, len(head), len(body), call) + head + body
    return frame if chance.randrange(_BROKEN_FRAMES) else mutated(chance, frame, b"".join(other[2:]))


def _native_answers(received: bytes) -> int:
    at = answers = 0
    while len(received) - at >= HEADER_BYTES:
        header = decode_header(received[at : at + HEADER_BYTES])
        at += HEADER_BYTES + header.head_bytes + header.body_bytes
        answers += header.kind in (Kind.REPLY, Kind.ERROR, Kind.PONG)
    return answers


# ---------------------------------------------------------------------------------------------- connections


@dataclass(frozen=True, slots=True)
class WireProtocol:
    """A protocol: functions that connect and draw messages, and that count the answers in received bytes."""

    name: str
    connect: Callable[[AttackedServer, random.Random], tuple[socket.socket, list[bytes]]]
    answers: Callable[[bytes], int]


PROTOCOLS = (
    WireProtocol("iotdb", _thrift_connection, _thrift_answers),
    WireProtocol("native", _native_connection, _native_answers),
)


def attack(protocol: WireProtocol, server: AttackedServer, seed: int) -> Counter[str]:
    """Send the messages of one connection, and return figures. Raises TimeoutError if the connection stays open."""
    connection, frames = protocol.connect(server, random.Random(f"{protocol.name} {seed}"))
    received = bytearray()
    with connection:
        sender = threading.Thread(target=_send, args=(connection, b"".join(frames)))
        sender.start()
        with suppress(ConnectionError):
            while more := connection.recv(1 << 16):
                received += more
        sender.join()
    answered = protocol.answers(bytes(received))
    ended = answered < len(frames)
    # If an answer is missing, the server has closed the connection at that message, and has not read any later one.
    return Counter({f"{protocol.name} messages": answered + ended, f"{protocol.name} connections": 1})


def _send(connection: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)


# ---------------------------------------------------------------------------------------------- the server


class AttackedServer:
    """A server process, its log, and for each protocol a client that keeps writing points and counting them."""

    def __init__(self, folder: Path, *options: str) -> None:
        """`options` are passed to the command that starts the server; HTTP is off unless they contain a port for it."""
        self._folder = folder
        data = folder / "data"
        data.mkdir(parents=True)
        (data / "saros.toml").write_text('password_cost = 10\ndurability = "os"\nmemtables_total_bytes = "32MiB"\n')
        users = FileDirectory(str(data), LocalDisk())
        users.change(CreateUser("root", hash_password(ROOT, Cost(10)), administrator=True))
        users.change(CreateUser("ann", hash_password(ANN, Cost(10))))
        command = (
            sys.executable,
            "-m",
            "saros_server",
            "--data",
            str(data),
            "--port",
            "0",
            "--foreground",
            "--auth",
            *(options or ("--http-port", "0")),
        )
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._stopping = threading.Event()
        self._failures: list[str] = []
        self._other = threading.Thread(target=self._use)
        #: The token of a session that all connections of the native protocol share. This protocol's sessions outlive
        #: connections.
        self.token = b""
        #: How many requests of the other client the server has answered.
        self.served = 0
        try:
            wait_until(lambda: serving(str(data)) is not None)
            found = serving(str(data))
            assert found is not None
            self.address = found.address
            self._prepare()
        except BaseException:
            self._end()
            raise

    def _prepare(self) -> None:
        with ThriftClient(self.address) as root:
            root.open()
            root.execute("create timeseries root.a.d.i INT32")
            root.execute("create timeseries root.a.d.t TEXT")
            root.execute("grant READ_DATA, WRITE_DATA on root.a.** to user ann")
        with FrameClient(self.address) as ann:
            ann.open("ann", ANN)
            self.token = ann.token
        self._other.start()

    def _use(self) -> None:
        try:
            with ExitStack() as stack:
                client = stack.enter_context(ThriftClient(self.address))
                native = stack.enter_context(FrameClient(self.address))
                client.open()
                native.open("root", ROOT)
                while not self._stopping.wait(_PAUSE_SECONDS):
                    self.served += 1
                    record = structs.InsertRecord(0, "root.other.d", ["i"], struct.pack(">Bi", 1, 7), self.served)
                    client.done("insertRecord", record)
                    native.call(Call.PING)
                    if self.served % 20 == 0:
                        counted = client.execute("select count(i) from root.other.d").all()
                        assert [(self.served,)] == counted, f"{counted} instead of {self.served} points"
        except Exception as error:  # noqa: BLE001 (a violation)
            self._failures.append(f"the other client: {type(error).__name__}: {error}")

    def memory_bytes(self) -> int:
        """Return the number of bytes of memory that the process uses."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * 4_096

    def violations(self) -> list[str]:
        """Return the violations found until now."""
        found = list(self._failures)
        if self._process.poll() is not None:
            found.append(f"the server ended with {self._process.returncode}")
        errors = [line for line in (self._folder / "log").read_text().splitlines() if '"ERROR"' in line]
        return found + errors[:3]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._end()

    def _end(self) -> None:
        self._stopping.set()
        if self._other.ident is not None:
            self._other.join(PATIENCE_S)
        self._process.terminate()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise


def campaign(folder: Path, protocols: Sequence[WireProtocol], seeds: Iterable[int]) -> tuple[Counter[str], list[str]]:
    """Attack a server with one connection of each protocol for each seed; return figures and violations."""
    figures: Counter[str] = Counter()
    memory: list[int] = []
    with AttackedServer(folder) as server:
        for seed in seeds:
            for protocol in protocols:
                try:
                    figures += attack(protocol, server, seed)
                except Exception as error:  # noqa: BLE001 (a violation)
                    return figures, [*server.violations(), f"{protocol.name} {seed}: {type(error).__name__}: {error}"]
            if seed % _LOOK_EVERY == 0:
                if violations := server.violations():
                    return figures, [*violations, f"seed {seed} or up to {_LOOK_EVERY} before it"]
                memory.append(server.memory_bytes())
        violations = server.violations()
        figures["calls of the other client"] = server.served
        figures["memory in MiB"] = server.memory_bytes() >> 20
    return figures, violations + memory_growth(memory)


def memory_growth(memory: Sequence[int]) -> list[str]:
    """Return a violation if memory has grown too much between the first half of a campaign and the second."""
    half = len(memory) // 2
    if not half:
        return []
    before, after = max(memory[:half]), max(memory[half:])
    return [] if after <= before + _GROWTH_BYTES else [f"memory grew from {before >> 20} to {after >> 20} MiB"]
