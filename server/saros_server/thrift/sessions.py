"""The session of a connection: login, time zone, statements, open results.

    openSession --> token of the client API --closeSession, or end of connection--> closed, with its results

Clients send the numbers of their session and their statement with every message, and some of them swap the two.
Whatever number the client sends, a call runs in the session of its own connection. A statement's number only groups
results, so that `closeOperation` can close them together. A client cannot refer to results and statements of other
connections.

One thread at a time.
"""

from __future__ import annotations

import itertools
import re
from contextlib import suppress
from typing import TypeVar

from saros_server.api import operations
from saros_server.api.calls import Operation, Peer
from saros_server.api.cancellation import CancelToken
from saros_server.api.client_api import ClientApi
from saros_server.api.client_sessions import NoSession
from saros_server.api.executions import Answer, Statement
from saros_server.api.iotdb_codes import NOT_LOGGED_IN, UNSUPPORTED_DIALECT
from saros_server.process.version import RELEASE
from saros_server.thrift.results import OpenResults, first_column
from saros_server.thrift.status_codes import DONE
from saros_server.thrift.structs import (
    CloseSession,
    NoArguments,
    OpenSession,
    OpenSessionAnswer,
    ServerProperties,
    SessionArguments,
    SetTimeZone,
    Status,
    TimeZoneAnswer,
)

#: The version of the protocol since IoTDB 1.0: V_3.
_PROTOCOL_VERSION = 2
#: The maximum number of bytes of a frame after the login, and before it.
FRAME_BYTES_MAX, LOGIN_BYTES_MAX = 64 << 20, 64 << 10
STATEMENTS_MAX = 1_000
#: A UTC offset as Java writes it.
_JAVA_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_AGGREGATIONS = ["COUNT", "AVG", "SUM", "FIRST_VALUE", "LAST_VALUE", "MAX_TIME", "MIN_TIME", "MAX_VALUE", "MIN_VALUE"]

_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")

#: The numbers of sessions and statements. They come from one sequence, so that no session has the number of a
#: statement.
_numbers = itertools.count(1)


class NotLoggedIn(Exception):
    """The call needs a session, and the connection has none."""

    code = NOT_LOGGED_IN

    def __init__(self) -> None:
        super().__init__("there is no session on this connection: call openSession first")


class WrongCall(Exception):
    """The call does not fit the state of the session, or Saros does not support it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        #: IoTDB's code.
        self.code = code


class ThriftSession:
    """The session of a connection, before and after its login."""

    def __init__(self, api: ClientApi, peer: Peer) -> None:
        self.api = api
        self._connection = api.connect(peer)
        #: The cancellation of the current call, which is triggered if the client disconnects; each call gets a new one.
        self.cancel = CancelToken()
        #: The token of the session in the client API; empty if the client has not logged in.
        self._token = b""
        self.number = 0
        #: The time zone as the client wrote it.
        self.zone = ""
        self.statements: set[int] = set()
        self.results = OpenResults()

    @property
    def is_open(self) -> bool:
        """True if the client has logged in."""
        return bool(self._token)

    def call(self, operation: Operation[_Request, _Answer], request: _Request) -> _Answer:
        """Call an operation of the client API in this session. Raises NotLoggedIn, and the errors of the operation."""
        if not self._token:
            raise NotLoggedIn
        return self._connection.call(operation, self._token, request, cancel=self.cancel)

    def renew(self) -> None:
        """Check that the session has not ended, and keep it from expiring. Raises NotLoggedIn, NoSession."""
        self.call(operations.RENEW, None)

    def execute(self, text: str, timeout_ms: int | None = None) -> Answer:
        """Execute a statement. Raises its errors."""
        return self.call(operations.EXECUTE, Statement(text, timeout_ms=max(timeout_ms or 0, 0)))

    def run(self, text: str) -> Status:
        """Execute a statement without a result. Raises its errors."""
        self.execute(text)
        return DONE

    def open(self, login: OpenSession) -> OpenSessionAnswer:
        """Log in. Raises the errors of OPEN, such as LoginFailed."""
        self.close()
        zone = zone_name(login.zone)
        opened = self._connection.call(operations.OPEN, b"", operations.Login(login.user, login.password or "", zone))
        self._token = opened.token
        self.zone = login.zone or self.api.node.configuration.time_zone
        self.number = next(_numbers)
        configuration = {"timestamp_precision": opened.time_unit}
        return OpenSessionAnswer(DONE, _PROTOCOL_VERSION, self.number, configuration)

    def open_statement(self) -> int:
        """Return the number of a new statement."""
        if len(self.statements) >= STATEMENTS_MAX:
            raise WrongCall(301, f"{STATEMENTS_MAX} statements are open on this connection: close some")
        self.statements.add(number := next(_numbers))
        return number

    def check_statement(self, number: int | None) -> int:
        """Return the number of an open statement, or 0 if the call has none. Raises NotLoggedIn, WrongCall."""
        if not self._token:
            raise NotLoggedIn
        if number is None or number == self.number:
            return 0
        if number not in self.statements:
            raise WrongCall(301, f"statement {number} is not open on this connection: it was closed, or never opened")
        return number

    def close(self) -> None:
        """End the session, its statements and its results. Idempotent."""
        self.results.close()
        self.statements.clear()
        token, self._token = self._token, b""
        if token:
            with suppress(NoSession):
                self._connection.call(operations.CLOSE, token, None)

    def end(self) -> None:
        """Close the session and its connection to the client API."""
        self.close()
        self._connection.close()


def zone_name(text: str) -> str:
    """Return a time zone as Saros writes it: Java's `GMT+8` is `+08:00`."""
    match = _JAVA_OFFSET.fullmatch(text)
    return text if match is None else f"{match[1]}{int(match[2]):02}:{match[3] or '00'}"


# ---------------------------------------------------------------------------------------------- calls


def open_session(session: ThriftSession, request: OpenSession) -> OpenSessionAnswer:
    """Call `openSession`."""
    dialect = (request.configuration or {}).get("sql_dialect", "tree")
    if dialect.lower() != "tree":
        message = f"Saros has no {dialect} model: connect with sql_dialect=tree, or without sql_dialect"
        raise WrongCall(UNSUPPORTED_DIALECT, message)
    return session.open(request)


def close_session(session: ThriftSession, _: CloseSession) -> Status:
    """Call `closeSession`."""
    session.close()
    return DONE


def request_statement_id(session: ThriftSession, _: SessionArguments) -> int:
    """Call `requestStatementId`.

    The answer to this call has no status, so a client that has not logged in gets the number -1.
    """
    return session.open_statement() if session.is_open else -1


def get_time_zone(session: ThriftSession, _: SessionArguments) -> TimeZoneAnswer:
    """Call `getTimeZone`: return the zone as the client wrote it, unless a statement has set another zone since."""
    (zone,) = first_column(session.execute("show time_zone"))
    return TimeZoneAnswer(DONE, session.zone if zone == zone_name(session.zone) else zone)


def set_time_zone(session: ThriftSession, request: SetTimeZone) -> Status:
    """Call `setTimeZone`."""
    zone = zone_name(request.zone).replace("'", "''")
    session.run(f"set time_zone = '{zone}'")
    session.zone = request.zone
    return DONE


def get_properties(session: ThriftSession, _: NoArguments) -> ServerProperties:
    """Call `getProperties`."""
    unit = session.api.node.configuration.time_unit
    return ServerProperties(RELEASE, _AGGREGATIONS, unit, 0, FRAME_BYTES_MAX, read_only=False, build="Saros", logo="")


def answer_empty_call(_: ThriftSession, __: NoArguments) -> Status:
    """Call `testConnectionEmptyRPC`."""
    return DONE
