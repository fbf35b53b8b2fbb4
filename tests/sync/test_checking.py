"""The thread that checks arrived files and makes them durable."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import closing

import pytest

from saros_sync.receiver.checking import _WAITING_MAX, ThreadExecutor


def test_however_many_bring_something_little_waits_and_the_rest_is_done_by_who_brings_it() -> None:
    free = threading.Event()
    here = threading.get_ident()
    with closing(ThreadExecutor()) as chores:
        for _ in range(2):  # finished work makes room
            waiting: list[Future[bool]] = [chores.begin(free.wait) for _ in range(_WAITING_MAX)]
            more = [chores.begin(threading.get_ident) for _ in range(3)]
            assert [here] * 3 == [future.result() for future in more if future.done()]
            assert not any(future.done() for future in waiting)
            free.set()
            assert all(future.result() for future in waiting)
            assert here != chores.begin(threading.get_ident).result()
            free.clear()


def test_what_goes_wrong_is_raised_to_who_asks_whoever_did_it() -> None:
    free = threading.Event()
    with closing(ThreadExecutor()) as chores:
        found = [chores.begin(lambda: free.wait() and 1 // 0) for _ in range(_WAITING_MAX)]
        free.set()
        found += [chores.begin(lambda: 1 // 0) for _ in range(_WAITING_MAX)]
        for future in found:
            with pytest.raises(ZeroDivisionError):
                future.result()
