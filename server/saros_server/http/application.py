"""The ASGI application of the HTTP service: passes requests to the functions of routes, and sends their responses.

    head --origin, route, policy, session--> body, limited --> function on a thread --> response
                 +-- refused: the body is not read

The event loop only receives and sends bytes. Other threads run the functions of routes, produce the chunks of their
responses, and handle logins and cancellations. If a client disconnects, its request's call of the client API is
cancelled. For the event loop only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace
from starlette.datastructures import Headers, QueryParams

from saros_server.api.calls import Peer
from saros_server.api.client_api import ClientApi
from saros_server.http.body import BODY, BodyMemory, ClientGone, IncomingBody, too_large
from saros_server.http.connection import ABORT, DIRECT, IS_IDLE, WRITE
from saros_server.http.credentials import ANONYMOUS, Credentials, credentials_of, unauthorized
from saros_server.http.direct_writer import DirectWriter, Frames, send_directly
from saros_server.http.errors import BUSY, NOT_LOGGED_IN, HttpError, failure_of
from saros_server.http.origin import check_local_name, check_origin
from saros_server.http.request import HttpRequest
from saros_server.http.response import Buffer, Response, error_response
from saros_server.http.routes import Policy, Route, RouteTable
from saros_server.http.session import CSRF_HEADER, CookieSessions, HttpSession
from saros_server.http.session_cache import SessionCache

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Scope, Send

    from saros_server.http.limits import HttpLimits, HttpThreads
    from saros_server.port.counters import ProtocolCounters

logger = logging.getLogger(__name__)

#: Responses with these statuses have neither a body nor a Content-Length.
_WITHOUT_BODY = (204, 304)

_Result = TypeVar("_Result")


class HttpApplication:
    """The ASGI application: admits each request, finds its session, reads its body, and sends its response."""

    def __init__(
        self,
        api: ClientApi,
        routes: RouteTable,
        limits: HttpLimits,
        threads: HttpThreads,
        counters: ProtocolCounters,
        *,
        local: bool,
        cookies: CookieSessions | None = None,
    ) -> None:
        """Create the application.

        local    true if the service listens on a loopback address
        cookies  the sessions of browsers; None if the service has no console
        """
        self._counters = counters
        self._api = api
        self._routes = routes
        self._limits = limits
        self._threads = threads
        self._checks_name = local and not api.requires_login
        self._cookies = cookies
        self._is_sealed = cookies is not None and cookies.is_sealed
        self.sessions = SessionCache(api, threads.logins, limits)
        #: The number of requests that are being handled by a thread or are waiting for one.
        self._requests = 0
        self._bodies = BodyMemory()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        route: Route | None = None
        exchange = _Exchange(scope, receive, send, self._counters)
        try:
            check_origin(exchange.headers)
            if self._checks_name:
                check_local_name(exchange.headers)
            route = self._routes.find(scope["method"], scope["path"])
            await self._answer(exchange, route)
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001 (the top of a request)
            if exchange.is_started:
                failure = failure_of(error)
                logger.warning("a response ended early", extra={"path": scope["path"], "error": failure.message})
                exchange.abort()
                return
            await exchange.send(_refusal(error, route, exchange.headers))

    async def _answer(self, exchange: _Exchange, route: Route) -> None:
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(self._session(exchange, route))
            await stack.enter_async_context(self._admitted())
            body = await stack.enter_async_context(self._body(exchange))
            request = HttpRequest(
                exchange.scope["method"],
                route.path,
                session.peer,
                exchange.headers,
                exchange.query,
                body,
                self._limits,
            )
            await stack.enter_async_context(self._watched(exchange, session))
            await self._run(exchange, lambda: route.function(request, session))

    async def _run(self, exchange: _Exchange, function: Callable[[], Response]) -> None:
        """Run the function of a route on a thread, and send the response that it returns."""
        response = await self._on_thread(function)
        if isinstance(response.body, bytes):
            await exchange.send(response)
            return
        frames, close = Frames(response.body.chunks), response.body.close
        try:
            first = await self._on_thread(frames.next)
            await exchange.start(response, None)
            if exchange.scope["method"] != "HEAD":
                await self._send_body(exchange, first, frames)
            await exchange.end()
        finally:
            self._threads.call_soon(close)

    async def _send_body(self, exchange: _Exchange, unsent: Sequence[Buffer], frames: Frames) -> None:
        """Send the first chunk (`unsent`), and all others. Threads send what the client takes without delay."""
        writer: DirectWriter | None = None
        try:
            while unsent:
                if exchange.is_idle:
                    writer = writer or exchange.direct_writer()
                    unsent = await self._on_thread(partial(send_directly, unsent, frames, writer))
                    self._counters.bytes_out += frames.count()
                    if not unsent:
                        break
                await exchange.write(unsent)
                unsent = await self._on_thread(frames.next)
        finally:
            self._counters.bytes_out += frames.count()
            if writer is not None:
                writer.close()

    async def _on_thread(self, function: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads.workers, function)

    # ------------------------------------------------------------------------------------------ admission

    @asynccontextmanager
    async def _session(self, exchange: _Exchange, route: Route) -> AsyncIterator[HttpSession]:
        """Yield the session of a request, and release it afterwards.

        Raises HttpError 401, and the errors of a login.
        """
        peer = exchange.peer
        is_free = route.policy is Policy.LOCAL_OR_AUTHENTICATED and peer.is_local and not self._is_sealed
        if is_free or route.policy is Policy.PUBLIC:
            yield HttpSession(self._api, peer, self._api.connect(peer), b"")
            return
        of_browser = self._of_browser(exchange)
        if of_browser is not None:
            yield of_browser
            return
        cached = await self.sessions.acquire(self._credentials(exchange, route), peer)
        try:
            yield HttpSession(self._api, peer, cached.connection, cached.token)
        finally:
            self.sessions.release(cached)

    def _credentials(self, exchange: _Exchange, route: Route) -> Credentials:
        """Return the credentials of a request, or anonymous ones if no login is required. Raises HttpError 401."""
        if not self._api.requires_login:
            return ANONYMOUS
        query = exchange.query if route.query_credentials else {}
        credentials = credentials_of(exchange.headers.get("authorization"), query)
        if credentials is ANONYMOUS:
            message = "this node requires a login: send user and password (Basic), or a token (Bearer)"
            raise unauthorized(message, NOT_LOGGED_IN)
        return credentials

    def _of_browser(self, exchange: _Exchange) -> HttpSession | None:
        """Return the session that a request's cookie identifies, or None. Raises HttpError (401, 403)."""
        if self._cookies is None or ("authorization" in exchange.headers and not self._is_sealed):
            return None
        found = self._cookies.admit(exchange.scope["method"], exchange.headers, exchange.peer)
        if found is None and self._is_sealed:
            raise unauthorized("only the browser that saros console opened has access: run it again", NOT_LOGGED_IN)
        return found

    @asynccontextmanager
    async def _admitted(self) -> AsyncIterator[None]:
        """Count a request towards the limit on concurrent requests. Raises HttpError 503."""
        if self._requests >= 2 * self._limits.workers:
            raise HttpError(503, "too many requests are in progress: try again", BUSY)
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1

    def _body(self, exchange: _Exchange) -> AbstractAsyncContextManager[bytes]:
        """Return a context manager that reads the body of a request.

        Until its exit, the body counts towards the limit on memory.

        Raises HttpError (408, 413, 503), ClientGone.
        """
        if int(exchange.headers.get("content-length", "0")) > self._limits.body_bytes:
            raise too_large(self._limits.body_bytes)
        return exchange.body.read(self._limits, self._bodies)

    @asynccontextmanager
    async def _watched(self, exchange: _Exchange, session: HttpSession) -> AsyncIterator[None]:
        """Within this context, cancel the session's call if the client disconnects or the request is cancelled."""

        async def watch() -> None:
            await exchange.disconnected()
            self._threads.call_soon(session.cancel.cancel)

        watcher = asyncio.create_task(watch())
        try:
            yield
        except BaseException as error:
            self._threads.call_soon(session.cancel.cancel)  # otherwise, the request's function would continue to run
            if exchange.is_gone and isinstance(error, Exception):
                raise ClientGone from error
            raise
        finally:
            watcher.cancel()


class _Exchange:
    """A request, and the state of its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, counters: ProtocolCounters) -> None:
        self.scope = scope
        self._counters = counters
        self.headers = Headers(scope=scope)
        self.query = QueryParams(scope["query_string"].decode("latin-1"))
        self._receive, self._send = receive, send
        self.body: IncomingBody = scope["state"][BODY]
        #: True once the status has been sent.
        self.is_started = False
        #: True once the client has closed the connection.
        self.is_gone = False

    @property
    def peer(self) -> Peer:
        """The client's machine. Raises ClientGone."""
        client = self.scope["client"]
        if client is None:  # the client has disconnected
            raise ClientGone
        return Peer.at(client[0])

    async def disconnected(self) -> None:
        """Wait until the client disconnects. Call this only after the body has been read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.is_gone = True

    async def send(self, response: Response) -> None:
        """Send a complete response."""
        assert isinstance(response.body, bytes)
        self._counters.bytes_out += len(response.body)
        await self.start(response, len(response.body))
        await self._send({"type": "http.response.body", "body": response.body})

    async def start(self, response: Response, size: int | None) -> None:
        """Send status and headers; `size` is the length of the body in bytes, or None if it is not known."""
        headers = {"content-type": response.content_type, "x-content-type-options": "nosniff"}
        headers |= {"cache-control": "no-store"} | {name.lower(): value for name, value in response.headers.items()}
        if size is not None and response.status not in _WITHOUT_BODY:
            headers["content-length"] = str(size)
        if not self.body.is_complete:
            headers["connection"] = "close"  # the rest of the body is not read
        raw = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]
        self.is_started = True
        await self._send({"type": "http.response.start", "status": response.status, "headers": raw})

    @property
    def is_idle(self) -> bool:
        """True if the event loop has nothing left to write to the connection, and a thread may write to it."""
        return not self.is_gone and bool(self.scope["state"][IS_IDLE]())

    def direct_writer(self) -> DirectWriter:
        """Return a writer for threads."""
        writer: DirectWriter = self.scope["state"][DIRECT]()
        return writer

    async def write(self, buffers: Sequence[Buffer]) -> None:
        """Send a part of the body, waiting while the client's receive window is full. Raises ClientGone."""
        if self.is_gone:
            raise ClientGone
        await self.scope["state"][WRITE](buffers)

    async def end(self) -> None:
        """End a chunked body."""
        await self._send({"type": "http.response.body", "body": b""})

    def abort(self) -> None:
        """Abort the connection, so that the client sees that the response is incomplete."""
        self.scope["state"][ABORT]()


def _refusal(error: Exception, route: Route | None, headers: Headers) -> Response:
    failure = failure_of(error)
    if failure.status == 401 and CSRF_HEADER in headers:  # the console shows its own login form, not the browser's
        failure = replace(failure, headers={"WWW-Authenticate": 'Cookie realm="saros"'})
    if route is not None and route.failure is not None:
        made = route.failure(failure.status, failure.code, failure.message)
        return Response(made.body, made.status, made.content_type, {**made.headers, **failure.headers})
    return error_response(failure.status, failure.code, failure.message, failure.headers)
