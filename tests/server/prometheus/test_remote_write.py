"""The status of a write depends on the outcomes of its series. It asks for a retry only if a retry can help."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from server.prometheus.prometheus_client import series

from saros_cluster.database.partial_failure import PartialFailure, final_refusal
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.no_leader import NoLeader
from saros_server.api.insert_request import InsertRequest
from saros_server.prometheus import remote_write
from saros_storage.base.errors import DiskFull, StorageError, UserMistake
from saros_wire.generated.prometheus_pb2 import WriteRequest

REFUSED = UserMistake("another type", code=507)


def session(errors: Sequence[StorageError], calls: list[int]) -> Any:
    """Return a session whose first inserts fail, each with the next error in `errors`.

    At each call, the session appends the number of inserts in this call to `calls`.
    """
    left = list(errors)

    def call(_: object, inserts: Sequence[InsertRequest]) -> list[object]:
        calls.append(len(inserts))
        return [left.pop(0) if left else 1 for _ in inserts]

    return SimpleNamespace(time_unit="ms", call=call)


def columns(count: int) -> remote_write.WriteColumns:
    found = [series({"__name__": "m", "n": str(n)}, [(1, 1)]) for n in range(count)]
    return remote_write.decoded(WriteRequest(timeseries=found).SerializeToString())


@pytest.mark.parametrize(
    ("errors", "status"),
    [
        ([], 204),
        ([REFUSED], 400),
        ([NoLeader(GroupId(1), "gone")], 503),
        ([DiskFull("no space")], 503),
        ([PartialFailure({}, {}, "gone")], 503),
        ([final_refusal({}, REFUSED)], 400),
        ([REFUSED, PartialFailure({}, {}, "gone"), REFUSED], 503),
    ],
    ids=str,
)
def test_a_sender_retries_only_if_it_helps(errors: list[StorageError], status: int) -> None:
    result = remote_write.write(columns(4), session(errors, []))
    assert (status, len(errors)) == (result.status, result.count)


def test_a_large_request_is_several_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_write, "_WRITE_BYTES_MAX", 3_000)
    calls: list[int] = []
    assert 0 == remote_write.write(columns(25), session([], calls)).count
    assert (25, True) == (sum(calls), len(calls) > 2)


def test_the_first_problems_are_named() -> None:
    result = remote_write.write(columns(9), session([REFUSED] * 9, []))
    assert result.message.startswith("9 series were not written")
    assert (5, True) == (result.message.count("(code 507)"), result.message.endswith("; and 4 more"))
