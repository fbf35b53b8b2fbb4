"""A bounded cache: the least recently used entries are evicted when the sum of weights exceeds the limit.

No thread waits for another one. A thread may lose the interpreter's lock while it holds another lock. The threads that
wait for the other lock then form a convoy: from then on, each use of that lock is a switch between threads, and two
threads that read many devices take longer than one. Therefore, look-ups take no lock, and a value is not stored while
another thread stores one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from contextlib import suppress
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """An LRU cache with weights. Thread-safe. An entry heavier than the limit is not stored."""

    def __init__(self, weight_max: int) -> None:
        self._weight_max = weight_max
        #: Sum of the weights in `_entries`.
        self._weight = 0
        #: The value and the weight of each key; the least recently used key comes first.
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """Return the value of a key, which becomes the most recently used key, or None if there is no such key."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        with suppress(KeyError):  # another thread has evicted the key
            self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, weight: int) -> None:
        """Store a value; it replaces an older value of the same key. Do nothing if another thread changes the cache."""
        if self._lock.acquire(blocking=False):
            try:
                self._put(key, value, weight)
            finally:
                self._lock.release()

    def _put(self, key: K, value: V, weight: int) -> None:
        old = self._entries.pop(key, None)
        if old is not None:
            self._weight -= old[1]
        if weight > self._weight_max:
            return
        self._entries[key] = (value, weight)
        self._weight += weight
        while self._weight > self._weight_max:
            _, (_, gone) = self._entries.popitem(last=False)
            self._weight -= gone

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()
            self._weight = 0

    @property
    def weight(self) -> int:
        """Sum of the weights of all entries."""
        return self._weight

    def __len__(self) -> int:
        return len(self._entries)
