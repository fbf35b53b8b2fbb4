"""The window of chunks in flight, and chunks that arrive at a receiver out of order."""

from __future__ import annotations

import zlib

from storage.store_model import write_rows
from sync.sync_world import Centre, Edge

from saros_sync.receiver.request_checks import Requester
from saros_sync.round import content_of, encode_round
from saros_sync.sender.window import Window
from saros_sync.transport import CHUNK_BYTES_MAX, FLIGHT_BYTES_MAX, RoundStatus

SECOND = 1_000_000_000


def test_a_line_that_answers_at_once_gets_more_chunks_at_a_time_and_one_that_does_not_gets_one() -> None:
    window = Window(1_000)
    sizes = []
    for after_ns in (1, 1, 1, 1, SECOND, SECOND, SECOND, 1):
        window.answered(after_ns)
        sizes.append(window.size)
    assert [2, 3, 4, 4, 2, 1, 1, 2] == sizes
    window.failed()
    assert 1 == window.size


def test_chunks_get_longer_on_a_line_that_answers_at_once_and_are_short_again_when_it_does_not() -> None:
    window = Window(1 << 20)
    for _ in range(20):
        window.answered(1)
    assert (2 << 20, FLIGHT_BYTES_MAX) == (window.chunk_bytes, window.chunk_bytes * window.size)
    window.failed()
    assert (1 << 20, 1) == (window.chunk_bytes, window.size)


def test_neither_are_chunks_longer_than_a_receiver_takes_nor_are_more_on_their_way_than_it_keeps() -> None:
    for chunk_bytes in (CHUNK_BYTES_MAX * 2, CHUNK_BYTES_MAX, CHUNK_BYTES_MAX - 1, CHUNK_BYTES_MAX // 3, 1_000):
        for grows in (True, False):
            window = Window(chunk_bytes, grows=grows)
            for _ in range(20):
                window.answered(1)
                assert window.chunk_bytes <= min(CHUNK_BYTES_MAX, 4 * chunk_bytes)
                assert 1 <= window.size <= FLIGHT_BYTES_MAX // window.chunk_bytes
                assert grows or window.chunk_bytes == min(chunk_bytes, CHUNK_BYTES_MAX)


def test_chunks_that_come_in_any_order_are_put_together() -> None:
    edge = Edge(Centre().line())
    edge.tell(write_rows("root.a.d1", range(500), 1))
    edge.store.flush()
    snapshot = edge.sending._taken(edge.sending.last())
    schema = edge.disk.map(edge.sending._snapshot.schema_path)
    document = encode_round(snapshot.round)
    centre, sender = Centre(), snapshot.round.sender
    receiver, anybody = centre.receiver, Requester()

    def send(name: str, data: bytes, offset: int, size: int) -> int:
        piece = data[offset : offset + size]
        return receiver.chunk(anybody, sender, 1, name, offset, zlib.crc32(piece), piece)

    receiver.begin(anybody, sender, "", 1, content_of(document))
    assert 0 == send(content_of(document).sha256, document, 20, 1 << 20)
    assert 0 == send(content_of(document).sha256, document, 10, 10)
    assert len(document) == send(content_of(document).sha256, document, 0, 10)
    assert len(schema) == send(snapshot.round.schema.sha256, bytes(schema), 0, 1 << 20)
    for name in {file.content.sha256 for file in snapshot.round.files()}:
        data = bytes(edge.disk.map(edge.sending._snapshot.path(name)))
        third = len(data) // 3
        assert 0 == send(name, data, 2 * third, 1 << 20)
        assert third == send(name, data, 0, third)
        assert len(data) == send(name, data, third, third)
    assert RoundStatus.COMMITTED is receiver.commit(anybody, sender, 1).status
