"""How requests reach the functions of routes: policies, sessions, origins, bodies, errors."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from server.http.http_node import HttpNode, http_server, make_users, serving
from server.secured import ANN, ROOT
from waiting import PATIENCE_S, wait_until

from saros_cluster.users.commands import SetPassword
from saros_server.auth.login import AuthenticatedClient, LoginGate
from saros_server.auth.passwords import Cost, hash_password
from saros_server.console import chart, query
from saros_server.http.limits import HttpLimits
from saros_server.http.request import HttpRequest
from saros_server.http.response import Chunks, Response
from saros_server.http.routes import Policy, Route, RouteTable
from saros_server.http.session import HttpSession
from saros_server.rest.iotdb_rest import failure
from saros_server.server import http_routes

#: All routes of a server except those that the node adds itself.
ROUTES = [
    *http_routes([]),
    *query.routes(),
    *chart.routes(),
    Route("GET", "/metrics", Policy.LOCAL_OR_AUTHENTICATED, lambda *_: Response()),
]
PUBLIC = {("GET", "/ping"), ("GET", "/openapi.json"), ("GET", "/health"), ("GET", "/ready")}
#: The public routes for which the matrix has no requests. Each of them was reviewed. A new public route makes a test
#: fail.
OPEN = {
    *(("GET", path) for path in ("/", "/console", "/console/", "/console/session", "/health", "/ready")),
    *(("GET", f"/console/{name}") for name in ("index.html", "console.js", "console.css", "icon.svg")),
    ("GET", "/console/THIRD_PARTY.txt"),
    *(("POST", f"/console/{name}") for name in ("login", "logout", "ticket")),
}
BODY = {"sql": "show current_user", "timestamps": []}


def _echo(request: HttpRequest, _: HttpSession) -> Response:
    return Response(request.body())


def _fail(_: HttpRequest, __: HttpSession) -> Response:
    raise RuntimeError("a secret of the program")


# ---------------------------------------------------------------------------------------------- access rights


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpNode]:
    folder = tmp_path_factory.mktemp("secured") / "data"
    make_users(folder)
    with http_server(folder) as node:
        yield node


IDENTITIES: dict[str, dict[str, str]] = {
    "none": {},
    "no scheme": {"authorization": "root"},
    "unknown scheme": {"authorization": "Digest username=root"},
    "no base64": {"authorization": "Basic %%%"},
    "no pair": {"authorization": "Basic cm9vdA=="},
    "empty": {"authorization": "Basic Og=="},
    "unknown user": {"authorization": httpx.BasicAuth("eve", ROOT)._auth_header},
    "bearer": {"authorization": "Bearer " + "0" * 64},
    "too long": {"authorization": "Basic " + "A" * 10_000},
}


def test_every_route_of_a_server_is_in_the_matrix(secured: HttpNode) -> None:
    served = {(route.method, route.path): route.policy for route in secured.service._application._routes}
    tested = {(route.method, route.path): route.policy for route in ROUTES}
    assert dict.fromkeys(OPEN, Policy.PUBLIC) == {name: served[name] for name in served.keys() - tested.keys()}
    assert tested == {name: served.get(name) for name in tested}
    assert PUBLIC | OPEN == {name for name, policy in served.items() if policy is Policy.PUBLIC}


@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_route_without_a_login_is_refused(secured: HttpNode, route: Route, identity: str) -> None:
    answer = secured.client.request(
        route.method, route.path, headers=IDENTITIES[identity], params={"sql": "show databases"}
    )
    is_open = (route.method, route.path) in PUBLIC or route.policy is not Policy.AUTHENTICATED
    assert (200 if is_open else 401) == answer.status_code
    if not is_open:
        assert answer.headers["www-authenticate"].startswith("Basic ")
        assert ({"error"} if route.path == "/write" else {"code", "message"}) == set(answer.json())


@pytest.mark.parametrize(
    "route",
    [found for found in ROUTES if found.policy is Policy.AUTHENTICATED],
    ids=lambda route: f"{route.method} {route.path}",
)
def test_a_user_without_rights_writes_nothing(secured: HttpNode, route: Route) -> None:
    statement = "create database root.stolen"
    device, kinds = "root.stolen.d", ["INT32"]
    body = {
        "sql": statement,
        "timestamps": [1],
        "measurements": ["s"],
        "values": [[1]],
        "devices": [device],
        **dict.fromkeys(("data_types", "dataTypes"), kinds),
        **dict.fromkeys(("device", "deviceId"), device),
        **{key: [["s"]] for key in ("measurements_list", "measurementsList")},
        **{key: [kinds] for key in ("data_types_list", "dataTypesList")},
        **{key: [[1]] for key in ("values_list", "valuesList")},
        **dict.fromkeys(("is_aligned", "isAligned"), False),
    }
    with_body = {"json": body} if route.method == "POST" else {"params": {"sql": statement}}
    secured.client.request(route.method, route.path, auth=("ann", ANN), **with_body)  # type: ignore[arg-type]
    found = secured.client.get("/query", params={"sql": "show databases"}, auth=("root", ROOT))
    assert (200, False) == (found.status_code, "stolen" in found.text)


def test_a_token_pair_logs_in_as_basic_does(secured: HttpNode) -> None:
    answer = secured.client.get(
        "/query", params={"sql": "show current_user"}, headers={"authorization": f"Token ann:{ANN}"}
    )
    assert '"CurrentUser"\n"ann"\n' == answer.text


def test_a_password_is_hashed_once_for_many_requests(secured: HttpNode, monkeypatch: pytest.MonkeyPatch) -> None:
    before = secured.api.sessions
    logins = []
    enter = LoginGate.enter

    def counted(gate: LoginGate, *words: str) -> AuthenticatedClient:
        logins.append(words)
        return enter(gate, *words)

    monkeypatch.setattr(LoginGate, "enter", counted)

    async def burst() -> list[int]:
        async with httpx.AsyncClient(base_url=secured.url, auth=("root", ROOT), timeout=PATIENCE_S) as client:
            answers = [client.get("/query", params={"sql": "show current_user", "n": str(n)}) for n in range(20)]
            return [answer.status_code for answer in await asyncio.gather(*answers)]

    assert [200] * 20 == asyncio.run(burst())
    assert len(logins) <= 1
    assert secured.api.sessions - before <= 1


def test_a_new_password_ends_the_sessions(tmp_path: Path) -> None:
    make_users(tmp_path / "data")
    with http_server(tmp_path / "data", auth=("ann", ANN)) as node:
        query = {"params": {"sql": "show current_user"}}
        assert 200 == node.client.get("/query", **query).status_code
        phc = hash_password("another-long-secret", Cost(10))
        node.api.node.directory.change(SetPassword("ann", phc))  # type: ignore[union-attr]
        assert 401 == node.client.get("/query", **query).status_code
        wait_until(lambda: 200 == node.client.get("/query", auth=("ann", "another-long-secret"), **query).status_code)


def test_a_session_that_has_ended_is_opened_again(tmp_path: Path) -> None:
    make_users(tmp_path / "data")
    with http_server(tmp_path / "data", auth=("ann", ANN)) as node:
        statuses = []
        for _ in range(2):
            statuses.append(node.client.get("/query", params={"sql": "show current_user"}).status_code)
            node.api.node.directory.change(SetPassword("ann", hash_password(ANN, Cost(10))))  # type: ignore[union-attr]
        assert [200, 200] == statuses


def test_a_wrong_password_waits_longer_each_time(tmp_path: Path) -> None:
    make_users(tmp_path / "data")
    with http_server(tmp_path / "data") as node:
        query = {"params": {"sql": "show current_user"}}
        first, second = (node.client.get("/query", auth=("root", f"wrong-{n}"), **query) for n in range(2))  # type: ignore[arg-type]
        assert ("wrong user or password", 401) == (first.json()["message"], second.status_code)
        assert "too many attempts failed" in second.json()["message"]
        trail = "".join(path.read_text() for path in (tmp_path / "data" / "audit").iterdir())
        assert 2 == trail.count('"login"')
        assert "wrong-" not in trail


# ---------------------------------------------------------------------------------------------- web pages


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"host": "evil.example"},
        {"host": "evil.example:18080"},
        {"host": "127.0.0.1.evil.example"},
    ],
)
def test_pages_of_other_sites_reach_nothing(tmp_path: Path, headers: dict[str, str]) -> None:
    with http_server(tmp_path / "data") as node:
        answer = node.client.post("/rest/v2/nonQuery", json={"sql": "create database root.x"}, headers=headers)
        assert 403 == answer.status_code
        assert "access-control-allow-origin" not in answer.headers
        assert "" == node.sql("show databases").text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]", "db.localhost:1"])
def test_this_machine_has_several_names(tmp_path: Path, host: str) -> None:
    with http_server(tmp_path / "data") as node:
        headers = {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
        assert 200 == node.client.get("/ping", headers=headers).status_code


# ---------------------------------------------------------------------------------------------- bodies and errors

SMALL = HttpLimits(body_bytes=1_000, plain_body_bytes=2_000, bodies_bytes=1_500)
ECHO = (Route("POST", "/echo", Policy.PUBLIC, _echo), Route("POST", "/fail", Policy.PUBLIC, _fail))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpNode]:
    with serving(tmp_path_factory.mktemp("echo"), ECHO, SMALL) as made:
        yield made


@pytest.mark.parametrize(
    ("content", "encoding", "status"),
    [
        (b"x" * 1_000, "", 200),
        (b"x" * 1_001, "", 413),
        (gzip.compress(b"x" * 2_000), "gzip", 200),
        (gzip.compress(b"x" * 1_000) + gzip.compress(b"x" * 1_000), "gzip", 200),
        (gzip.compress(b"x" * 2_001), "gzip", 413),
        (gzip.compress(b"x" * 2_000) + gzip.compress(b"x"), "gzip", 413),
        (gzip.compress(b"x" * 900_000), "gzip", 413),
        (gzip.compress(b"x")[:-4], "gzip", 400),
        (b"hello", "gzip", 400),
        (b"hello", "br", 415),
    ],
)
def test_bodies_are_limited_before_and_after_decompression(
    node: HttpNode, content: bytes, encoding: str, status: int
) -> None:
    answer = node.client.post("/echo", content=content, headers={"content-encoding": encoding})
    assert status == answer.status_code, answer.text


def test_a_body_without_a_length_is_limited(node: HttpNode) -> None:
    assert 413 == node.client.post("/echo", content=iter([b"x" * 600] * 2)).status_code
    assert 200 == node.client.post("/echo", content=iter([b"x" * 300] * 2)).status_code


def test_an_error_of_the_program_says_nothing_of_it(node: HttpNode, caplog: pytest.LogCaptureFixture) -> None:
    answer = node.client.post("/fail")
    assert (500, 2001) == (answer.status_code, answer.json()["code"])
    assert "a call failed" in caplog.messages


def test_paths_and_methods_that_are_not_there(node: HttpNode) -> None:
    for path in ("/", "/Echo", "/echo/", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/echo%00"):
        assert 404 == node.client.post(path).status_code, path
    answer = node.client.delete("/echo")
    assert (405, "POST") == (answer.status_code, answer.headers["allow"])


def test_too_many_requests_are_told_to_come_again(tmp_path: Path) -> None:
    release, started = threading.Event(), threading.Semaphore(0)

    def wait(_: HttpRequest, __: HttpSession) -> Response:
        started.release()
        assert release.wait(PATIENCE_S)
        return Response()

    with serving(tmp_path, [Route("GET", "/wait", Policy.PUBLIC, wait)], HttpLimits(workers=1)) as node:

        async def burst() -> list[int]:
            async with httpx.AsyncClient(base_url=node.url, timeout=PATIENCE_S) as client:
                tasks = [asyncio.create_task(client.get("/wait")) for _ in range(5)]
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                while len(done) < 3:
                    done, _ = await asyncio.wait(tasks, timeout=0.01)
                release.set()
                return sorted(answer.status_code for answer in await asyncio.gather(*tasks))

        assert [200, 200, 503, 503, 503] == asyncio.run(burst())


def test_a_stream_that_fails_is_cut_off(tmp_path: Path) -> None:
    closed = threading.Event()

    def chunks() -> Iterator[bytes]:
        yield b"first"
        raise ValueError("lost")

    def stream(_: HttpRequest, __: HttpSession) -> Response:
        return Response(Chunks(chunks(), closed.set))

    with serving(tmp_path, [Route("GET", "/stream", Policy.PUBLIC, stream)]) as node:
        with pytest.raises(httpx.RemoteProtocolError):
            node.client.get("/stream")
        assert closed.wait(PATIENCE_S)


def test_routes_have_policies_and_one_function_each() -> None:
    with pytest.raises(TypeError, match="no policy"):
        Route("GET", "/x", None, _echo)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="two routes"):
        RouteTable([*ECHO, *ECHO])


def test_what_iotdb_answers_with_200() -> None:
    assert [(200, 700), (200, 803), (401, 801), (413, 2003)] == [
        (answer.status, code)
        for status, code in ((400, 700), (403, 803), (401, 801), (413, 2003))
        for answer in [failure(status, code, "")]
    ]
