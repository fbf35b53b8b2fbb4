"""Statuses of calls of IoTDB's session protocol. Pure: any thread."""

from __future__ import annotations

from collections.abc import Sequence

from saros_server.api.errors import refusal_of
from saros_server.api.iotdb_codes import IOTDB_CODES, MULTIPLE_ERROR, REDIRECTION, SUCCESS
from saros_server.thrift.structs import EndPoint, Status

DONE = Status(SUCCESS)


def failure(error: Exception) -> Status:
    """Return the status of a call that an exception ended. An exception that is a bug is logged."""
    code, message = refusal_of(error)
    return Status(IOTDB_CODES.get(code, code), message)


def success(leader: str = "") -> Status:
    """Return the status of a write; `leader` is host:port of another node to which the next write should go."""
    if not leader:
        return DONE
    host, _, port = leader.rpartition(":")
    return Status(REDIRECTION, redirect=EndPoint(host.strip("[]"), int(port)))


def merged(parts: Sequence[Status]) -> Status:
    """Return the status of a call of several parts, merged from the statuses of the parts."""
    if all(part is DONE for part in parts):
        return DONE
    failed = [part for part in parts if part.code not in (SUCCESS, REDIRECTION)]
    if not failed:
        return Status(REDIRECTION, parts=list(parts))
    return Status(MULTIPLE_ERROR, failed[0].message, list(parts))
