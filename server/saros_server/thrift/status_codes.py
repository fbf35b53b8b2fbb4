"""Status codes: those of Saros as IoTDB's clients know them, and the statuses of calls.

Most numbers are the same in both. The table has the others: conditions that IoTDB counts under another number, and the
numbers from 2000 on, which mean something else there. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from saros_server.api.errors import refusal_of
from saros_server.thrift.structs import EndPoint, Status

SUCCESS = 200
UNSUPPORTED_DIALECT = 205
UNSUPPORTED = 300
MULTIPLE_ERROR = 302
ILLEGAL_PARAMETER = 303
_INTERNAL = 305
REDIRECTION = 400
_STORAGE, _ALIGNED, _WAL = 601, 609, 610
_PARSE, SEMANTIC, NO_SUCH_QUERY = 700, 701, 714
_TOO_MANY_QUERIES, _NO_MEMORY, _TIMEOUT = 717, 719, 720
NOT_LOGGED_IN, _AUTH, _ILLEGAL_PASSWORD = 802, 815, 820
_NO_REPLICA, _NO_CONNECTION, _DATANODE_MISSING, _TOO_FEW_DATANODES = 1012, 1007, 1004, 1003
_LOAD, _SYNC, _FUNCTION_DROP, _FUNCTION_RUN, _FUNCTION_EXISTS = 1100, 1103, 1205, 1206, 1207

#: IoTDB's code by that of Saros; the others are the same in both.
IOTDB_CODES = {
    504: 500,  # a missing database
    511: _ALIGNED,
    712: _TIMEOUT,
    2000: _STORAGE,
    2001: _INTERNAL,
    2002: UNSUPPORTED,
    2003: ILLEGAL_PARAMETER,
    2004: 202,
    2005: SEMANTIC,
    2006: _PARSE,
    2007: SEMANTIC,
    2008: SEMANTIC,
    2010: _STORAGE,
    2011: UNSUPPORTED,
    2012: _STORAGE,
    2013: _WAL,
    2014: NOT_LOGGED_IN,
    2015: 201,
    2016: _NO_CONNECTION,
    2017: _NO_REPLICA,
    2018: _INTERNAL,
    2019: _INTERNAL,
    2020: MULTIPLE_ERROR,
    2021: _INTERNAL,
    2022: 304,
    2023: _DATANODE_MISSING,
    2024: _TOO_FEW_DATANODES,
    2025: 304,
    2026: _INTERNAL,
    2027: _LOAD,
    2030: _INTERNAL,
    2031: _TOO_MANY_QUERIES,
    2032: NO_SUCH_QUERY,
    2033: _NO_MEMORY,
    2040: _AUTH,
    2041: _ILLEGAL_PASSWORD,
    2050: _LOAD,
    2051: SEMANTIC,
    2052: ILLEGAL_PARAMETER,
    2053: ILLEGAL_PARAMETER,
    2060: _SYNC,
    2061: _SYNC,
    2062: _SYNC,
    2063: _SYNC,
    2064: _SYNC,
    2065: _SYNC,
    2070: _LOAD,
    2080: _FUNCTION_RUN,
    2081: _FUNCTION_EXISTS,
    2082: _FUNCTION_DROP,
}

DONE = Status(SUCCESS)


def failure(error: Exception) -> Status:
    """Return the status of a call that an exception ended; one that is a bug is logged."""
    code, message = refusal_of(error)
    return Status(IOTDB_CODES.get(code, code), message)


def success(leader: str = "") -> Status:
    """Return the status of a write; `leader`: host:port of the other node that the next one should go to."""
    if not leader:
        return DONE
    host, _, port = leader.rpartition(":")
    return Status(REDIRECTION, redirect=EndPoint(host.strip("[]"), int(port)))


def merged(parts: Sequence[Status]) -> Status:
    """Return the status of a call of several parts, from theirs."""
    if all(part is DONE for part in parts):
        return DONE
    failed = [part for part in parts if part.code not in (SUCCESS, REDIRECTION)]
    if not failed:
        return Status(REDIRECTION, parts=list(parts))
    return Status(MULTIPLE_ERROR, failed[0].message, list(parts))
