"""Send mutated requests to every route of a server process, which must serve other clients meanwhile.

    /openapi.json --> routes --seed--> a valid request --> mutated: method, path, query, headers, body, framing, cut
                  --> sent on a separate connection; the response is read to its end

The requests are derived from the descriptions of the routes, so a new route is included automatically. Each of these is
a violation: a response has status 500; a connection stays open without a response; the server ends, or logs an internal
error; its memory grows; another client is not served, or does not read the points that it wrote. The seed alone
determines a request.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import httpx
from free_ports import free_ports
from server.http.json_mutations import mutated_json
from server.thrift_client import ANN, ROOT
from server.wire_campaign import AttackedServer, memory_growth, mutated
from waiting import PATIENCE_S

#: The number of requests between two checks of the server.
_LOOK_EVERY = 50
#: If there is no response for this number of seconds, the client shuts down its side of the connection, which ends a
#: request that is incomplete.
_HALF_SECONDS = 0.3
_RESPONSE = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_CONTINUE = 100
_STATEMENTS = (
    "select a, b from root.m.d",
    "select count(a) from root.m.** group by ([0, 100), 1ms)",
    "select last * from root.m.**",
    "show devices root.**",
    "show tokens",
    "insert into root.m.d(time, a, b) values (1, 2, 'x')",
    "explain select a from root.m.d",
)
#: Values for the fields in the routes' descriptions. The keys are names in lower case without underscores.
_VALUES: Mapping[str, Any] = {
    "timestamps": [1, 2],
    "measurements": ["a", "b"],
    "measurementslist": [["a", "b"], ["a"]],
    "datatypes": ["INT32", "TEXT"],
    "datatypeslist": [["INT32", "TEXT"], ["INT32"]],
    "values": [[1, 2], ["x", None]],
    "valueslist": [[1, "x"], [2]],
    "device": "root.m.d",
    "deviceid": "root.m.d",
    "devices": ["root.m.d", "root.m.e"],
    "deviceids": ["root.m.d", "root.m.e"],
    "isaligned": False,
    "rowlimit": 10,
    "expression": ["a"],
    "prefixpath": ["root.m.d"],
    "starttime": 0,
    "endtime": 10,
    "condition": "a > 0",
    "control": "limit 5",
    "parameters": [],
    "timeoutms": 1_000,
}
_TEXTS = ("", "x", "%00", "..", "%2e%2e/", "é", "🎈", "\ud800", "a" * 9_000, "'", '"', "<script>", "${7*7}", "\\", "//")
_TYPES = ("application/json", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x/y", "", "é")
_ACCEPTED = ("*/*", "application/json", "text/csv", "application/vnd.apache.arrow.stream", "a/b;q=2", "", ",,;", "é")


@dataclass(frozen=True, slots=True)
class Target:
    """A route of a running server, as its OpenAPI document describes it."""

    method: str
    path: str
    parameters: Sequence[str]
    #: The schemas of bodies, by content type.
    bodies: Mapping[str, Mapping[str, Any]]


@dataclass(slots=True)
class Request:
    """A request that is being mutated."""

    method: str
    path: str
    #: Pairs of names and values.
    query: list[tuple[str, str]]
    body: bytes
    headers: list[tuple[str, str]] = field(default_factory=list)
    #: True if the body is sent in chunks.
    is_chunked: bool = False


@dataclass(frozen=True, slots=True)
class Identities:
    """The valid values of the Authorization header."""

    valid: Sequence[str]


def targets(document: Mapping[str, Any]) -> list[Target]:
    """Return the routes of an OpenAPI document."""
    found = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            names = [parameter["name"] for parameter in operation.get("parameters", ())]
            contents = operation.get("requestBody", {}).get("content", {})
            bodies = {content_type: media["schema"] for content_type, media in contents.items()}
            found.append(Target(method.upper(), path, names, bodies))
    return found


# ---------------------------------------------------------------------------------------------- valid requests


def valid_request(chance: random.Random, target: Target, identities: Identities) -> Request:
    """Return a valid request, made from the description of a route."""
    query = [(name, str(_value_of(chance, name, {"type": "string"}))) for name in target.parameters]
    request = Request(target.method, target.path, query, b"", [("Authorization", chance.choice(identities.valid))])
    if target.bodies:
        content_type = chance.choice(list(target.bodies))
        request.headers.append(("Content-Type", content_type))
        value = _value_of(chance, "sql" if content_type == "text/plain" else "", target.bodies[content_type])
        request.body = value.encode() if content_type == "text/plain" else json.dumps(value).encode()
    return request


def _value_of(chance: random.Random, name: str, schema: Mapping[str, Any]) -> Any:
    key = name.lower().replace("_", "")
    if key == "sql":
        return chance.choice(_STATEMENTS)
    if key in _VALUES:
        return _VALUES[key]
    match schema.get("type"):
        case "object":
            return {part: _value_of(chance, part, inner) for part, inner in schema.get("properties", {}).items()}
        case "array":
            return [_value_of(chance, "", schema.get("items", {}))]
        case "integer" | "number":
            return chance.choice((0, 1, -1, 10))
        case "boolean":
            return chance.choice((True, False))
        case _:
            return "root"


# ---------------------------------------------------------------------------------------------- mutations


def _method(chance: random.Random, request: Request) -> None:
    request.method = chance.choice(
        ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "get", "X" * 99)
    )


def _path(chance: random.Random, request: Request) -> None:
    at = chance.randrange(len(request.path) + 1)
    request.path = request.path[:at] + chance.choice(_TEXTS) + request.path[at + chance.randrange(3) :]


def _query(chance: random.Random, request: Request) -> None:
    names = [name for name, _ in request.query] or ["sql"]
    for _ in range(chance.randint(1, 5)):
        name = chance.choice([*names, *_VALUES, "u", "p", ""])
        request.query.insert(0, (name, chance.choice([*_TEXTS, *_STATEMENTS, "-1", "1e9", "NaN", "true"])))


def _headers(chance: random.Random, request: Request) -> None:
    text = chance.choice(_TEXTS)
    request.headers.append(
        chance.choice(
            (
                ("Accept", chance.choice(_ACCEPTED)),
                ("Content-Type", chance.choice(_TYPES)),
                ("Accept-Encoding", chance.choice(("gzip", "br", "*;q=0", text))),
                ("Host", chance.choice(("evil.example", "localhost:1", "[::1]", "", text))),
                ("Origin", chance.choice(("null", "http://evil.example", text))),
                ("Sec-Fetch-Site", chance.choice(("cross-site", "same-origin", text))),
                ("Range", chance.choice(("bytes=0-1", "bytes=-1", text))),
                ("Expect", chance.choice(("100-continue", text))),
                ("Connection", chance.choice(("keep-alive", "upgrade", "close, x"))),
                ("Upgrade", chance.choice(("websocket", "h2c", text))),
                ("X-Forwarded-For", "127.0.0.1"),
                ("Transfer-Encoding", chance.choice(("gzip", "identity", "chunked, chunked", text))),
                ("Content-Length", chance.choice(("0", "-1", "1", "99999999999", "1e3", "0x10", text))),
                (chance.choice(("X-Y", "", "a b", "\x01")), text),
            )
        )
    )


def _cookies(chance: random.Random, request: Request) -> None:
    pairs = [
        f"{chance.choice(('session', 'csrf', 'a', ''))}={chance.choice(_TEXTS)}" for _ in range(chance.randint(1, 9))
    ]
    request.headers.append(("Cookie", chance.choice(("; ", ";", ",", "\x00")).join(pairs)))


def _identity(chance: random.Random, request: Request) -> None:
    request.headers = [pair for pair in request.headers if pair[0] != "Authorization"]
    wrong = base64.b64encode(chance.choice((b"mallory:x", b"mallory", b":", b"\xff:\xff"))).decode()
    schemes = ("Basic", "Bearer", "Token", "Digest", "", "basic basic")
    if chance.randrange(3):
        value = f"{chance.choice(schemes)} {chance.choice((wrong, 'saros_' + 'a' * 49, 'a:b', *_TEXTS))}"
        request.headers.append(("Authorization", value))


def _json(chance: random.Random, request: Request) -> None:
    with suppress(ValueError):
        request.body = json.dumps(mutated_json(chance, json.loads(request.body))).encode("utf-8", "surrogatepass")


def _bytes(chance: random.Random, request: Request) -> None:
    request.body = mutated(chance, request.body or b'{"sql": "show version"}', request.path.encode("utf-8", "replace"))


def _compression(chance: random.Random, request: Request) -> None:
    request.headers.append(("Content-Encoding", chance.choice(("gzip", "x-gzip", "GZIP", "br", "gzip, gzip", "zstd"))))
    body = request.body * chance.choice((1, 1, 1, 20_000))
    packed = gzip.compress(body, 1, mtime=0)
    request.body = chance.choice((packed, packed[:-3], packed + b"x", packed + packed, request.body))


def _chunking(_: random.Random, request: Request) -> None:
    request.is_chunked = True


#: The changes that may be made to a request before it becomes bytes.
MUTATIONS: Sequence[Callable[[random.Random, Request], None]] = (
    *(_method, _path, _query, _headers, _headers, _cookies, _identity),
    *(_json, _json, _bytes, _bytes, _compression, _chunking),
)


def encoded(chance: random.Random, request: Request) -> bytes:
    """Return the bytes of a request. Its framing may be wrong, and it may be cut off."""
    pairs = "&".join(f"{quote_plus(name)}={quote_plus(value, errors='replace')}" for name, value in request.query)
    path = quote(request.path, safe="/%.'\"<>\\$", errors="replace")
    names = {name.lower() for name, _ in request.headers}
    headers = [*([] if "host" in names else [("Host", "localhost")]), *request.headers]
    if "connection" not in names:
        headers.append(("Connection", "close"))
    body = request.body
    if request.is_chunked:
        headers.append(("Transfer-Encoding", "chunked"))
        body = _chunks(chance, body)
    elif "content-length" not in names:
        headers.append(
            ("Content-Length", str(len(body) if chance.randrange(20) else len(body) + chance.randint(-9, 9)))
        )
    lines = [f"{request.method} {path}{'?' if pairs else ''}{pairs} HTTP/1.1", *(f"{n}: {v}" for n, v in headers)]
    data = "\r\n".join([*lines, "", ""]).encode("utf-8", "replace") + body
    match chance.randrange(12):
        case 0:
            return data[: chance.randrange(len(data) + 1)]
        case 1:
            return mutated(chance, data, body)
        case _:
            return data


def _chunks(chance: random.Random, body: bytes) -> bytes:
    """Return a body in chunks, some of which may declare a wrong size."""
    parts, at = list[bytes](), 0
    while at < len(body):
        part = body[at : at + chance.randint(1, 4_000)]
        size = len(part) if chance.randrange(30) else chance.choice((0, len(part) + 1, -1, 1 << 40))
        extension = b"" if chance.randrange(10) else b";a=b"
        parts.append(f"{size:x}".encode() + extension + b"\r\n" + part + b"\r\n")
        at += len(part)
    end = chance.choice((b"0\r\n\r\n",) * 8 + (b"0\r\nX: y\r\n\r\n", b""))
    return b"".join([*parts, end])


def request_bytes(chance: random.Random, routes: Sequence[Target], identities: Identities) -> bytes:
    """Return a request to one of the routes, after up to four mutations."""
    request = valid_request(chance, chance.choice(routes), identities)
    for mutate in chance.choices(MUTATIONS, k=chance.choice((0, 1, 1, 1, 2, 2, 3, 4))):
        mutate(chance, request)
    return encoded(chance, request)


# ---------------------------------------------------------------------------------------------- the server


class Hang(Exception):
    """A connection stayed open."""


def exchange(address: tuple[str, int], data: bytes) -> bytes:
    """Send a request, and return everything that the server sends. Raises Hang."""
    received = bytearray()
    with socket.create_connection(address, PATIENCE_S) as client, suppress(ConnectionError):
        sender = threading.Thread(target=_send, args=(client, data))
        sender.start()
        try:
            client.settimeout(_HALF_SECONDS)
            is_open = True
            while is_open:
                try:
                    is_open = _receive(client, received)
                except TimeoutError:
                    with suppress(OSError):
                        client.shutdown(socket.SHUT_WR)
                    client.settimeout(PATIENCE_S)
                    is_open = _receive(client, received)
        except TimeoutError:
            raise Hang(f"no end after {PATIENCE_S} s, after {bytes(received[:200])!r}") from None
        finally:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
            sender.join()
    return bytes(received)


def _receive(client: socket.socket, received: bytearray) -> bool:
    more = client.recv(1 << 16)
    received += more
    return bool(more)


def _send(client: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        client.sendall(data)


class OtherClient:
    """An HTTP client that, again and again, writes points and queries how many there are."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, auth=("root", ROOT), timeout=PATIENCE_S)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._use)
        #: The number of this client's requests that the server answered.
        self.served = 0
        self.failures: list[str] = []

    def __enter__(self) -> OtherClient:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._stopping.set()
        self._thread.join(PATIENCE_S)
        self._client.close()

    def _use(self) -> None:
        try:
            while not self._stopping.wait(0.01):
                self.served += 1
                tablet = {"device": "root.web.d", "is_aligned": False, "timestamps": [self.served]}
                tablet |= {"measurements": ["i"], "data_types": ["INT64"], "values": [[7]]}
                assert 200 == self._client.post("/rest/v2/insertTablet", json=tablet).json()["code"]
                if self.served % 20 == 0:
                    found = self._client.post("/query.json", content="select count(i) from root.web.d").json()
                    assert [self.served] == list(found.values()), f"{found} instead of {self.served} points"
        except Exception as error:  # noqa: BLE001 (a violation)
            self.failures.append(f"the other client of HTTP: {type(error).__name__}: {error}")


@contextmanager
def attacked(folder: Path) -> Iterator[tuple[AttackedServer, httpx.Client, OtherClient]]:
    """Run a server with HTTP and an `OtherClient`. Yield both of them, and a client that is logged in as ann."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    with (
        AttackedServer(folder, "--http-port", str(port)) as server,
        OtherClient(url) as other,
        httpx.Client(base_url=url, auth=("ann", ANN), timeout=PATIENCE_S) as ann,
    ):
        yield server, ann, other


def campaign(folder: Path, seeds: Iterable[int]) -> tuple[Counter[str], list[str]]:
    """Send a request for each seed. Return figures about the campaign, and the violations."""
    figures: Counter[str] = Counter()
    memory: list[int] = []
    with attacked(folder) as (server, ann, other):
        routes = targets(ann.get("/openapi.json").json())
        identities = _identities(ann)
        address = ("127.0.0.1", ann.base_url.port or 0)
        for number, seed in enumerate(seeds):
            data = request_bytes(random.Random(f"http {seed}"), routes, identities)
            try:
                received = exchange(address, data)
            except (Hang, OSError) as error:
                return figures, [*server.violations(), f"seed {seed}: {type(error).__name__}: {error}: {data[:500]!r}"]
            statuses = [code for code in map(int, _RESPONSE.findall(received[:4_096])) if code != _CONTINUE][:1]
            figures.update(f"responses {status}" for status in statuses or [0])
            if 500 in statuses:
                return figures, [f"seed {seed}: {received[:500]!r} to {data[:500]!r}"]
            if number % _LOOK_EVERY == 0:
                if violations := [*server.violations(), *other.failures]:
                    return figures, [*violations, f"seed {seed} or up to {_LOOK_EVERY} before it"]
                memory.append(server.memory_bytes())
        figures["routes"] = len(routes)
        figures["calls of other clients"] = server.served + other.served
        figures["memory in MiB"] = server.memory_bytes() >> 20
        violations = [*server.violations(), *other.failures]
    return figures, violations + memory_growth(memory)


def _identities(ann: httpx.Client) -> Identities:
    secret = ann.post("/query.json", content="create token campaign").json()["Secret"]
    password = base64.b64encode(f"ann:{ANN}".encode()).decode()
    return Identities((f"Basic {password}", f"Bearer {secret}"))
