"""The native protocol at a server: all calls, streams with credits, messages that arrive during calls, and garbage."""

from __future__ import annotations

import random
import struct
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from server.frame_client import Frame, FrameClient, Refused, columns
from server.secured import LARGE
from waiting import PATIENCE_S, wait_equal, wait_until

from saros_server.api import executions
from saros_server.api.client_api import ClientApi
from saros_server.frames import frame_handler
from saros_server.frames.calls import CALLS
from saros_server.frames.frame_protocol import FrameProtocol
from saros_server.port import call_monitor
from saros_server.port.listener import PortListener
from saros_storage.base.clock import SystemClock
from saros_storage.checkpoint.checkpoint_set import decode_checkpoint_set
from saros_wire.frames import (
    BODY_BYTES_MAX,
    HEAD_BYTES_MAX,
    HEADER_BYTES,
    PREFACE,
    WINDOW_BYTES,
    Call,
    Kind,
    decode_header,
    encode_header,
    encode_prefix,
)
from saros_wire.generated import client_pb2

ROWS = 200_000
SENDER = "0" * 32


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClientApi]:
    made = ClientApi(str(tmp_path_factory.mktemp("frames") / "data"), SystemClock())
    times, x = np.arange(ROWS), np.random.default_rng(1).random(ROWS)
    made._own.insert("root.a.d", times, {"x": x, "y": times, "z": times[::-1]}, aligned=None)
    made._own.execute("flush", (), None)  # rows in files are read block by block
    yield made
    made.close()


@pytest.fixture(scope="module")
def listener(api: ClientApi) -> Iterator[PortListener]:
    made = PortListener("127.0.0.1", 0, None, [FrameProtocol(api)])
    made.start()
    yield made
    made.stop(0.0)


@pytest.fixture
def client(listener: PortListener) -> Iterator[FrameClient]:
    with FrameClient(listener.address) as made:
        made.open()
        yield made


def statement(text: str, **more: object) -> client_pb2.ExecuteRequest:
    return client_pb2.ExecuteRequest(statement=text, **more)


def error_of(client: FrameClient) -> client_pb2.ErrorReply:
    frame = client.receive()
    assert frame is not None
    return frame.error


# ---------------------------------------------------------------------------------------------- calls


def test_all_calls_are_served() -> None:
    assert set(Call) == set(CALLS)


def test_a_session_writes_and_reads(client: FrameClient) -> None:
    assert 4 == client.insert(columns("root.b.d", [1, 2], x=[1.5, 2.5], s=["a", "b"])).points
    table = client.execute("select x, s from root.b.d")
    assert isinstance(table, pa.Table)
    assert ([1.5, 2.5], ["a", "b"]) == (table.column(1).to_pylist(), table.column(2).to_pylist())
    assert 1 == client.execute("create database root.c")
    assert 0 == client.execute("select x from root.b.d where time = 7").num_rows  # type: ignore[union-attr]


def test_parameters_are_bound(client: FrameClient) -> None:
    request = statement("select x from root.b.p where time = ?", parameters=[client_pb2.Value(integer=2)])
    client.insert(columns("root.b.p", [1, 2], x=[1.5, 2.5]))
    answer = client_pb2.Answer.FromString(client.call(Call.EXECUTE, request).head)
    assert 1 == len(answer.batch_bytes)
    bad = statement("select x from root.b.p where time = ?", parameters=[client_pb2.Value(local_time="soon")])
    with pytest.raises(Refused, match="2003: a parameter that cannot be read"):
        client.call(Call.EXECUTE, bad)


def test_a_numbered_insert_has_one_effect(listener: PortListener) -> None:
    with FrameClient(listener.address) as client:
        opened = client.call(Call.OPEN, client_pb2.OpenRequest(client_id=77))
        client.token = client_pb2.OpenReply.FromString(opened.head).session
        body = columns("root.b.n", [1], sequence=1, x=[1.5])
        assert [1, 1] == [client.insert(body).points for _ in range(2)]
        client.insert(columns("root.b.n", [1], sequence=2, x=[2.5]))
        client.insert(body)
        assert [2.5] == client.execute("select x from root.b.n").column(1).to_pylist()  # type: ignore[union-attr]


def test_a_session_is_used_on_any_connection_and_outlives_them(listener: PortListener, client: FrameClient) -> None:
    with FrameClient(listener.address) as other:
        other.token = client.token
        other.execute("show version")
    client.execute("show version")
    client.call(Call.CLOSE)
    with pytest.raises(Refused, match="2014: no such session"):
        client.execute("show version")


@pytest.mark.parametrize("call", sorted(set(Call) - {Call.OPEN, Call.PING}))
def test_calls_need_a_session(listener: PortListener, call: Call) -> None:
    with FrameClient(listener.address) as client:
        body = columns("root.z.d", [1], x=[1.0]) if call is Call.INSERT else b""
        with pytest.raises(Refused, match="2014: no such session"):
            client.call(call, body=body)
        client.call(Call.PING)


def test_ping_tells_how_the_node_is(client: FrameClient, api: ClientApi) -> None:
    reply = client_pb2.PingReply.FromString(client.call(Call.PING).head)
    assert (api.sessions, 0) == (reply.sessions, reply.queries)


def test_a_read_point_shows_its_moment(client: FrameClient) -> None:
    client.insert(columns("root.b.h", [1], x=[1.5]))
    point = client_pb2.ReadPoint(name="then")
    held = client.call(Call.HOLD, client_pb2.HoldRequest(lease_ms=60_000, read_point=point))
    point.instance = client_pb2.HoldReply.FromString(held.head).instance
    client.insert(columns("root.b.h", [2], x=[2.5]))
    number = client.request(Call.EXECUTE, statement("select count(x) from root.b.h", read_point=point))
    frame = client.reply(number)
    schema = pa.ipc.read_schema(pa.py_buffer(client_pb2.Answer.FromString(frame.head).head.schema))
    assert [1] == pa.ipc.read_record_batch(pa.py_buffer(frame.body), schema).column(0).to_pylist()
    client.call(Call.HOLD, client_pb2.HoldRequest(read_point=point))


def test_files_are_uploaded_in_chunks(client: FrameClient) -> None:
    data = bytes(range(256)) * 10
    for offset in range(0, len(data), 1_000):
        part = data[offset : offset + 1_000]
        request = client_pb2.UploadRequest(job="job", name="a", offset=offset, crc32=zlib.crc32(part))
        reply = client_pb2.UploadReply.FromString(client.call(Call.UPLOAD, request, part).head)
        assert offset + len(part) == reply.have
    whole = client_pb2.UploadRequest(job="job", name="a", crc32=zlib.crc32(data), size=len(data))
    path = Path(client_pb2.UploadReply.FromString(client.call(Call.UPLOAD, whole).head).path)
    assert data == path.read_bytes()
    client.call(Call.DISCARD_UPLOADS, client_pb2.DiscardUploadsRequest(job="job"))
    assert not path.exists()


def test_a_checkpoint_is_made_read_and_released(client: FrameClient) -> None:
    number = client.request(Call.CREATE_CHECKPOINT, client_pb2.CreateCheckpointRequest(since=-1))
    assert client.reply(number).has_more
    found = decode_checkpoint_set(b"".join(client.items(number)))
    files = [(id_, file) for id_, capture in zip(found.ids, found.captures, strict=True) for file in capture.files()]
    assert files
    for id_, file in files:
        request = client_pb2.ReadCheckpointRequest(capture=id_, number=file.number)
        assert file.size == len(b"".join(items_of(client, Call.READ_CHECKPOINT, request)))
    client.call(Call.RELEASE_CHECKPOINTS, client_pb2.ReleaseCheckpointsRequest(captures=found.ids))
    with pytest.raises(Refused, match="the capture does not exist"):
        list(items_of(client, Call.READ_CHECKPOINT, request))


def items_of(client: FrameClient, call: Call, request: object) -> Iterator[bytes]:
    number = client.request(call, request)
    assert client.reply(number).has_more
    return client.items(number)


def test_a_round_of_the_sync_tool(client: FrameClient) -> None:
    for call, request, body in (
        (Call.SYNC_BEGIN, client_pb2.SyncBeginRequest(sender="x"), b""),
        (Call.SYNC_CHUNK, client_pb2.SyncChunkRequest(sender="x"), b"data"),
        (Call.SYNC_COMMIT, client_pb2.SyncCommitRequest(sender="x"), b""),
    ):
        with pytest.raises(Refused, match="is not a sender id"):
            client.call(call, request, body)
    begin = client_pb2.SyncBeginRequest(sender=SENDER, name="edge", number=1, sha256="0" * 64, size=10)
    reply = client_pb2.SyncReply.FromString(client.call(Call.SYNC_BEGIN, begin).head)
    assert ("wanted", ["0" * 64]) == (reply.standing, [want.sha256 for want in reply.wants])


def test_errors_have_codes_and_the_connection_goes_on(client: FrameClient) -> None:
    for text, code in (("selec", 700), ("select y % z from root.a.d", 751)):
        with pytest.raises(Refused) as refused:
            client.execute(text)
        assert code == refused.value.code
    with pytest.raises(Refused, match="2003: columns that cannot be read"):
        client.insert(b"columns")
    client.execute("show version")


# ---------------------------------------------------------------------------------------------- streams


def test_a_large_result_comes_whole(client: FrameClient) -> None:
    table = client.execute(LARGE)
    assert isinstance(table, pa.Table)
    assert (ROWS, 25) == table.shape
    x = table.column(1).to_numpy()
    assert np.array_equal(x + 23, table.column(24).to_numpy())


def test_a_client_without_credits_gets_a_window(client: FrameClient, api: ClientApi) -> None:
    number = client.request(Call.EXECUTE, statement(LARGE))
    assert client.reply(number).has_more
    sizes = []
    while sum(sizes) < WINDOW_BYTES:
        frame = client.receive()
        assert frame is not None
        sizes.append(len(frame.body))
    assert sum(sizes[:-1]) < WINDOW_BYTES
    client.ping(99)  # the client may send a PING while its request is unanswered, but no other request
    assert (Kind.PONG, 99) == kind_of(client.receive())
    client.credit(number, sum(sizes))
    rest = list(client.items(number))
    assert rest
    wait_equal(0, lambda: api.node.engine.open_queries)


def test_credits_are_taken_at_once_though_the_call_is_short(api: ClientApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_monitor, "LONG_CALL_SECONDS", 10 * PATIENCE_S)
    listener = PortListener("127.0.0.1", 0, None, [FrameProtocol(api)])
    listener.start()
    with FrameClient(listener.address) as client:
        client.open()
        assert (ROWS, 25) == client.execute(LARGE).shape
    listener.stop(0.0)


def kind_of(frame: Frame | None) -> tuple[Kind, int]:
    assert frame is not None
    return frame.kind, frame.request


@pytest.mark.parametrize("has_window", [True, False])
def test_a_canceled_query_ends_with_an_error(client: FrameClient, api: ClientApi, *, has_window: bool) -> None:
    number = client.request(Call.EXECUTE, statement(LARGE))
    assert client.reply(number).has_more
    if not has_window:  # read until the query waits for credits
        size = 0
        while size < WINDOW_BYTES:
            frame = client.receive()
            assert frame is not None
            size += len(frame.body)
    client.cancel(number)
    while (frame := client.receive()) is not None and frame.kind is Kind.ITEM:
        pass
    assert frame is not None
    assert (number, 715) == (frame.request, frame.error.code)
    wait_equal(0, lambda: api.node.engine.open_queries)
    client.execute("show version")


@pytest.fixture
def go_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Yield an event; statements wait until the event is set."""
    event, execute = threading.Event(), executions.Executions.execute

    def slow(*args: object) -> object:
        event.wait(PATIENCE_S)
        return execute(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(executions.Executions, "execute", slow)
    yield event
    event.set()


def test_pings_are_answered_while_a_query_computes(client: FrameClient, go_on: threading.Event) -> None:
    number = client.request(Call.EXECUTE, statement("show version"))
    for ping in range(1_000, 1_010):
        client.ping(ping)
        assert (Kind.PONG, ping) == kind_of(client.receive())
    go_on.set()
    assert (Kind.REPLY, number) == kind_of(client.receive())
    client.ping(5)
    assert (Kind.PONG, 5) == kind_of(client.receive())


def test_requests_that_are_sent_together_are_answered_in_order(client: FrameClient) -> None:
    count = 300  # more bytes than the server examines while a call runs
    requests = [
        client.encoded(number, Call.INSERT, None, columns("root.b.q", [number], x=[number / 2]))
        for number in range(1, count + 1)
    ]
    client.send(b"".join(requests))
    assert [(Kind.REPLY, number) for number in range(1, count + 1)] == [kind_of(client.receive()) for _ in requests]
    assert [count] == client.execute("select count(x) from root.b.q").column(0).to_pylist()  # type: ignore[union-attr]


def test_a_request_is_canceled_before_its_turn(client: FrameClient, api: ClientApi) -> None:
    first = client.request(Call.EXECUTE, statement(LARGE))
    assert client.reply(first).has_more
    second = client.request(Call.EXECUTE, statement("create database root.never"))
    third = client.request(Call.EXECUTE, statement("show version"))
    client.cancel(second)
    client.ping(98)
    while (frame := client.receive()) is not None and frame.kind is not Kind.PONG:
        assert (Kind.ITEM, first) == kind_of(frame)
    client.credit(first, 1 << 30)
    while (frame := client.receive()) is not None and frame.kind is not Kind.END:
        assert first == frame.request
    frame = client.receive()
    assert frame is not None
    assert (second, 715) == (frame.request, frame.error.code)
    assert (Kind.REPLY, third) == kind_of(client.receive())
    assert "root.never" not in api.node.store.schema.databases()


def test_more_requests_than_may_wait_are_left_for_later(
    client: FrameClient, go_on: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_handler, "QUEUED_REQUESTS", 4)
    first = client.request(Call.EXECUTE, statement("show version"))
    numbers = [client.request(Call.PING) for _ in range(3)]
    client.ping(98)
    assert (Kind.PONG, 98) == kind_of(client.receive())
    numbers += [client.request(Call.PING) for _ in range(10)]
    client.ping(97)
    go_on.set()
    expected = [(Kind.REPLY, number) for number in (first, *numbers)] + [(Kind.PONG, 97)]
    assert expected == [kind_of(client.receive()) for _ in expected]


def test_a_client_that_goes_away_ends_its_query(listener: PortListener, api: ClientApi) -> None:
    with FrameClient(listener.address, receive_bytes=1 << 14) as client:
        client.open()
        number = client.request(Call.EXECUTE, statement(LARGE))
        assert client.reply(number).has_more
        assert api.node.engine.open_queries
    wait_equal(0, lambda: api.node.engine.open_queries)


# ---------------------------------------------------------------------------------------------- garbage


@pytest.mark.parametrize(
    ("version", "remedy"), [(6, "use a newer driver"), (8, "use an older driver, or a newer node")]
)
def test_another_version_is_refused_with_the_reason(listener: PortListener, version: int, remedy: str) -> None:
    with FrameClient(listener.address, preface=b"SAROS" + bytes((version, 13, 10))) as client:
        client.request(Call.PING)
        error = error_of(client)
        assert (2015, f"this node speaks protocol 7, the client {version}: {remedy}") == (error.code, error.message)
        assert client.receive() is None


HEAD = encode_prefix()
BAD = {
    "a preface": (b"SAROS\x07xx", "a preface b'SAROS\\x07xx'"),
    "a kind": (PREFACE + struct.pack("<IIIBBH", 0, 0, 1, 99, 0, 0), "a frame of kind 99"),
    "a kind of nodes": (PREFACE + encode_header(Kind.REPLY, 1), "a frame REPLY, which only nodes send"),
    "reserved bytes": (PREFACE + struct.pack("<IIIBBH", 0, 0, 1, Kind.PING, 0, 7), "reserved bytes"),
    "a call": (PREFACE + encode_header(Kind.REQUEST, 1, len(HEAD), 0, 99) + HEAD, "call 99"),
    "a huge head": (PREFACE + encode_header(Kind.REQUEST, 1, HEAD_BYTES_MAX + 1, 0, Call.OPEN), "a head of"),
    "a huge body": (PREFACE + encode_header(Kind.REQUEST, 1, 36, BODY_BYTES_MAX + 1, Call.INSERT), "a body of"),
    "the hugest": (PREFACE + b"\xff" * 8 + encode_header(Kind.REQUEST, 1, 36, 0, Call.INSERT)[8:], "a head of"),
    "a body of none": (PREFACE + encode_header(Kind.REQUEST, 1, 36, 1, Call.PING) + HEAD + b"x", "which has none"),
    "a short head": (PREFACE + encode_header(Kind.REQUEST, 1, 4, 0, Call.PING) + b"head", "head of 4 bytes"),
    "a large ping": (PREFACE + encode_header(Kind.PING, 1, 65) + b"x" * 65, "a frame PING of 65"),
    "a ping with a body": (PREFACE + encode_header(Kind.PING, 1, 0, 1) + b"x", "a frame PING of 0 and 1"),
    "a bad credit": (PREFACE + encode_header(Kind.CREDIT, 1, 3) + b"xxx", "a credit of 3 bytes"),
}


@pytest.mark.parametrize("name", BAD)
def test_bytes_that_are_no_frame_end_the_connection_with_the_reason(listener: PortListener, name: str) -> None:
    data, reason = BAD[name]
    with FrameClient(listener.address, preface=data) as client:
        frame = client.receive()
        assert frame is not None
        assert (0, 2003) == (frame.request, frame.error.code)
        assert reason in frame.error.message
        assert client.receive() is None


def test_a_message_that_cannot_be_read_ends_only_its_request(client: FrameClient) -> None:
    head = encode_prefix(client.token) + b"\xff\xff"
    client.send(encode_header(Kind.REQUEST, 3, len(head), 0, Call.EXECUTE) + head)
    assert (2003, "a message that cannot be read: ") == ((e := error_of(client)).code, e.message[:31])
    head = encode_prefix(client.token) + b"x"
    client.send(encode_header(Kind.REQUEST, 4, len(head), 0, Call.PING) + head)
    assert 2003 == error_of(client).code
    client.execute("show version")


@pytest.mark.parametrize("end", [3, len(PREFACE), len(PREFACE) + 7, len(PREFACE) + HEADER_BYTES, -1])
def test_half_an_insert_writes_nothing(listener: PortListener, api: ClientApi, client: FrameClient, end: int) -> None:
    body = columns("root.half.d", [1], x=[1.5])
    data = PREFACE + client.encoded(1, Call.INSERT, None, body)
    with FrameClient(listener.address, preface=data[:end]):
        pass
    wait_equal(1, lambda: listener.counters()["native"].connections)
    assert "root.half" not in api.node.store.schema.databases()


def test_mutated_messages_break_nothing(listener: PortListener, api: ClientApi, client: FrameClient) -> None:
    """Each connection sends valid messages of all kinds, in which some bytes are changed."""
    rng = random.Random(20_260_101)
    before = threading.active_count()
    for _ in range(600):
        data = bytearray(b"".join(some_messages(client, rng)))
        for _ in range(rng.randint(1, 4)):
            mutate(data, rng)
        with FrameClient(listener.address, preface=PREFACE + bytes(data)) as other:
            other.socket.shutdown(1)
            read_all(other)
    client.execute("show version")
    assert client.execute("select x from root.a.d where time < 5").num_rows == 5  # type: ignore[union-attr]
    wait_equal(1, lambda: listener.counters()["native"].connections)
    wait_equal(0, lambda: api.node.engine.open_queries)
    assert threading.active_count() <= before + 256


def some_messages(client: FrameClient, rng: random.Random) -> Iterator[bytes]:
    for number in range(1, 9):
        match rng.randrange(7):
            case 0:
                yield client.encoded(number, Call.EXECUTE, statement("select x from root.a.d where time < 9"))
            case 1:
                yield client.encoded(number, Call.INSERT, None, columns("root.fuzz.d", [1, 2], x=[1.5, 2.5]))
            case 2:
                yield client.encoded(number, Call.PING)
            case 3:
                yield encode_header(Kind.PING, number)
            case 4:
                yield encode_header(Kind.CANCEL, number)
            case 5:
                yield encode_header(Kind.CREDIT, number, 4) + b"\0\1\0\0"
            case 6:
                yield client.encoded(number, Call.UPLOAD, client_pb2.UploadRequest(job="job", name="a"), b"data")


def mutate(data: bytearray, rng: random.Random) -> None:
    place = rng.randrange(len(data))
    match rng.randrange(4):
        case 0:
            data[place] = rng.randrange(256)
        case 1:
            data[place] ^= 1 << rng.randrange(8)
        case 2:
            del data[place : place + rng.randint(1, 20)]
        case 3:
            data[place:place] = rng.randbytes(rng.randint(1, 20))


def read_all(client: FrameClient) -> None:
    """Read complete frames until the node closes the connection."""
    data = bytearray()
    try:
        while found := client.socket.recv(1 << 16):
            data += found
    except ConnectionResetError:
        return
    while data:
        header = decode_header(data)
        size = HEADER_BYTES + header.head_bytes + header.body_bytes
        assert size <= len(data)
        del data[:size]


def test_a_client_that_never_reads_is_not_waited_for_by_others(
    listener: PortListener, client: FrameClient, api: ClientApi
) -> None:
    with FrameClient(listener.address, receive_bytes=1 << 12) as deaf:
        deaf.token = client.token
        deaf.request(Call.EXECUTE, statement(LARGE))
        wait_until(lambda: api.node.engine.open_queries)
        for number in range(500):
            deaf.ping(number)
        client.execute("select x from root.a.d where time = 3")
    wait_equal(0, lambda: api.node.engine.open_queries)
