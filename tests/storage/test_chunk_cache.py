"""The chunk cache: the consecutive rows that it serves, its size limit, and large scans, which must not empty it."""

from __future__ import annotations

import numpy as np

from saros_storage.base.block import Block, Column
from saros_storage.base.types import DataType
from saros_storage.cache.cell_cache import ChunkCells
from saros_storage.cache.chunk_cache import ChunkCache, ChunkKey


def block(start: int, stop: int) -> Block:
    return Block.untimed([Column(DataType.INT64, np.arange(start, stop))])


def key(number: int) -> ChunkKey:
    return (7, "root.a.d", "s", number)


def values(found: Block | None) -> list[object] | None:
    return None if found is None else found.columns[0].to_list()


def test_a_run_serves_what_lies_in_it_and_nothing_else() -> None:
    cache = ChunkCache(1 << 20)
    cache.put(key(1), 100, block(100, 200))
    assert list(range(100, 200)) == values(cache.get(key(1), 100, 200))
    assert list(range(120, 130)) == values(cache.get(key(1), 120, 130))
    assert values(cache.get(key(1), 90, 130)) is None
    assert values(cache.get(key(2), 100, 200)) is None
    assert (2, 2) == (cache.hits, cache.misses)


def test_a_longer_run_takes_the_place_of_shorter_ones() -> None:
    cache = ChunkCache(1 << 20)
    cache.put(key(1), 0, block(0, 10))
    cache.put(key(1), 20, block(20, 30))
    before = cache.bytes
    cache.put(key(1), 0, block(0, 40))
    assert list(range(40)) == values(cache.get(key(1), 0, 40))
    assert cache.bytes == before - 20 * 8 - 2 * 500 + 40 * 8 + 500


def test_it_never_holds_more_than_it_may() -> None:
    cache = ChunkCache(10_000)
    for number in range(100):
        cache.put(key(number), 0, block(0, 100))
        assert cache.bytes <= 10_000
        if number % 3 == 0:
            cache.get(key(number), 0, 100)
    assert values(cache.get(key(99), 0, 100)) is not None
    assert 0 == ChunkCache(0).bytes


def test_what_is_cleared_is_gone_and_what_comes_is_kept() -> None:
    cache = ChunkCache(10_000)
    cells = (7, "root.a.d", ("s",), 1, 0, 10)
    for number in (1, 2, 2):
        cache.put(key(number), 0, block(0, 100))
        cache.get(key(number), 0, 100)
    cache.cells.put(cells, ChunkCells())
    cache.clear()
    assert (0, 0) == (cache.bytes, len(cache.cells))
    assert values(cache.get(key(1), 0, 100)) is None
    assert values(cache.get(key(2), 0, 100)) is None
    cache.put(key(1), 0, block(0, 100))
    assert list(range(100)) == values(cache.get(key(1), 0, 100))
    assert cache.bytes == 100 * 8 + 500


def test_a_cache_of_nothing_keeps_nothing() -> None:
    cache = ChunkCache(0)
    cache.put(key(1), 0, block(0, 10))
    assert values(cache.get(key(1), 0, 10)) is None
    assert 0 == cache.bytes


def test_a_large_scan_leaves_alone_what_is_used_again_and_again() -> None:
    cache = ChunkCache(20_000)
    for number in range(5):
        cache.put(key(number), 0, block(0, 100))
        cache.get(key(number), 0, 100)
    for number in range(1_000, 2_000):
        cache.put(key(number), 0, block(0, 100))
    assert all(cache.get(key(number), 0, 100) is not None for number in range(5))


def test_what_is_used_no_more_makes_room_in_the_end() -> None:
    cache = ChunkCache(20_000)
    for number in range(40):
        cache.put(key(number), 0, block(0, 100))
        cache.get(key(number), 0, 100)
    assert values(cache.get(key(0), 0, 100)) is None
    assert values(cache.get(key(39), 0, 100)) is not None
