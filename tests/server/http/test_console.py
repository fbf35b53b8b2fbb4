"""The routes of the console: files, browser sessions, results as JSON lines, charts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from server.http.http_node import HttpNode, http_server, make_users
from server.secured import ANN, CHEAP, ROOT
from starlette.datastructures import Headers
from waiting import PATIENCE_S, wait_equal

import saros
from saros_cluster.users.commands import SetPassword
from saros_server.api.calls import Peer
from saros_server.api.client_api import ClientApi
from saros_server.api.operations import Login
from saros_server.auth.passwords import hash_password
from saros_server.console import browser_sessions
from saros_server.console.assets import CONTENT_SECURITY_POLICY
from saros_server.console.browser_sessions import BrowserSessions
from saros_server.embedded_console import EmbeddedConsole
from saros_storage.base.clock import SystemClock

FILES = ("", "index.html", "console.js", "console.css", "icon.svg", "THIRD_PARTY.txt")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpNode]:
    folder = tmp_path_factory.mktemp("secured") / "data"
    make_users(folder)
    with http_server(folder) as node:
        yield node


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpNode]:
    with http_server(tmp_path_factory.mktemp("console") / "data") as node:
        yield node


class Browser:
    """An HTTP client that keeps cookies and sends the requests of a page of the console."""

    def __init__(self, url: str) -> None:
        self.client = httpx.Client(base_url=url, timeout=PATIENCE_S)
        self.client.headers["x-saros-csrf"] = ""

    def log_in(self, user: str, password: str) -> httpx.Response:
        answer = self.client.post("/console/login", json={"user": user, "password": password})
        if answer.status_code == 200:
            self.client.headers["x-saros-csrf"] = answer.json()["csrf"]
        return answer

    def status_of(self, method: str, path: str, **options: Any) -> int:
        return self.client.request(method, path, **options).status_code


@pytest.fixture
def browser(secured: HttpNode) -> Iterator[Browser]:
    made = Browser(secured.url)
    yield made
    made.client.close()


# ---------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("name", FILES)
def test_files_have_a_strict_policy_and_an_etag(secured: HttpNode, name: str) -> None:
    answer = secured.client.get(f"/console/{name}")
    assert (200, CONTENT_SECURITY_POLICY) == (answer.status_code, answer.headers["content-security-policy"])
    again = secured.client.get(f"/console/{name}", headers={"if-none-match": answer.headers["etag"]})
    assert (304, b"") == (again.status_code, again.content)


def test_files_are_compressed_for_browsers_that_ask(secured: HttpNode) -> None:
    plain = secured.client.get("/console/console.js", headers={"accept-encoding": "identity"})
    with secured.client.stream("GET", "/console/console.js", headers={"accept-encoding": "gzip"}) as answer:
        zipped = b"".join(answer.iter_raw())
    assert plain.content == gzip.decompress(zipped)
    assert plain.headers["etag"] != answer.headers["etag"]


def test_only_the_url_with_a_version_is_kept_by_browsers(secured: HttpNode) -> None:
    kept = secured.client.get("/console/console.js", params={"v": "1"}).headers["cache-control"]
    assert ("private, max-age=31536000, immutable", "no-cache") == (
        kept,
        secured.client.get("/console/").headers["cache-control"],
    )


@pytest.mark.parametrize("path", ["/console/../server.py", "/console/%2e%2e/assets.py", "/console//etc/passwd"])
def test_a_path_of_a_request_names_no_file(secured: HttpNode, path: str) -> None:
    assert 404 == secured.client.get(path).status_code


def test_browsers_are_led_to_the_console_and_programs_are_not(secured: HttpNode) -> None:
    browser = secured.client.get("/", headers={"accept": "text/html,*/*"})
    assert (303, "/console/") == (browser.status_code, browser.headers["location"])
    assert 404 == secured.client.get("/").status_code


# ---------------------------------------------------------------------------------------------- logging in


def test_a_login_sets_a_cookie_that_scripts_and_other_sites_cannot_use(browser: Browser) -> None:
    answer = browser.log_in("root", ROOT)
    port = browser.client.base_url.port
    name, *attributes = answer.headers["set-cookie"].split("; ")
    assert (f"saros-{port}", ["Path=/", "HttpOnly", "SameSite=Strict"]) == (name.partition("=")[0], attributes)
    assert ("in", "root") == (answer.json()["state"], answer.json()["user"])
    assert "root" == browser.client.get("/console/session").json()["user"]


def test_with_tls_the_cookie_is_secure(tmp_path: Path) -> None:
    api = ClientApi(str(tmp_path / "data"), SystemClock())
    sessions = BrowserSessions(api, secure=True)
    _, cookie = sessions.open(Login(shared=True), Headers({"host": "db:18080"}), Peer.at("127.0.0.1"))
    sessions.close()
    api.close()
    assert cookie.startswith("__Host-saros-18080=")
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict; Secure")


def test_a_failed_login_asks_for_no_password_of_the_browser(browser: Browser) -> None:
    answer = browser.log_in("root", "wrong")
    assert (401, 'Cookie realm="saros"') == (answer.status_code, answer.headers["www-authenticate"])
    assert "set-cookie" not in answer.headers


def test_logins_pass_the_gate_with_its_audit_trail_and_its_delays(tmp_path: Path) -> None:
    make_users(tmp_path / "data")
    with http_server(tmp_path / "data") as node:
        browser = Browser(node.url)
        statuses = [browser.log_in("ann", password).status_code for password in (ANN, "wrong", ANN)]
        browser.client.close()
    assert [200, 401, 401] == statuses  # the last attempt is refused because it follows too soon after a failed one
    text = "".join(file.read_text() for file in (tmp_path / "data" / "audit").glob("*.jsonl"))
    assert 2 <= text.count('"ann"')


def test_a_login_must_be_json(browser: Browser) -> None:
    assert 415 == browser.status_of("POST", "/console/login", content=b'{"user": "root", "password": "x"}')


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/query"), ("POST", "/console/query"), ("POST", "/console/chart"), ("POST", "/console/logout")],
)
def test_a_cookie_without_the_csrf_token_does_not_write(browser: Browser, method: str, path: str) -> None:
    browser.log_in("root", ROOT)
    body = {"sql": "create database root.forged"}
    tokens = ({}, {"x-saros-csrf": "forged"})
    del browser.client.headers["x-saros-csrf"]
    assert [403, 403] == [browser.status_of(method, path, json=body, headers=headers) for headers in tokens]
    assert "root.forged" not in browser.client.get("/query.csv", params={"sql": "show databases"}).text


def test_a_cookie_without_the_csrf_token_does_not_write_by_rest(browser: Browser) -> None:
    browser.log_in("root", ROOT)
    answer = browser.client.post("/rest/v2/nonQuery", json={"sql": "create database root.by_rest"})
    forged = browser.client.post(
        "/rest/v2/nonQuery", json={"sql": "create database root.x"}, headers={"x-saros-csrf": ""}
    )
    assert (200, True) == (answer.json()["code"], forged.json()["code"] != 200)


def test_a_cookie_with_the_csrf_token_writes(browser: Browser) -> None:
    browser.log_in("root", ROOT)
    assert 200 == browser.status_of("POST", "/query", json={"sql": "create database root.meant"})
    assert "root.meant" in browser.client.get("/query.csv", params={"sql": "show databases"}).text


def test_a_user_without_rights_is_refused_by_the_same_rules(browser: Browser) -> None:
    browser.log_in("ann", ANN)
    assert 403 == browser.status_of("POST", "/console/query", json={"sql": "create database root.x"})


def test_a_logout_ends_the_session(browser: Browser) -> None:
    browser.log_in("root", ROOT)
    cookies = dict(browser.client.cookies)
    assert 200 == browser.status_of("POST", "/console/logout", json={})
    browser.client.cookies.update(cookies)
    assert ("login", 401) == (
        browser.client.get("/console/session").json()["state"],
        browser.status_of("GET", "/query", params={"sql": "show databases"}),
    )


def test_a_changed_password_ends_the_sessions_of_browsers(tmp_path: Path) -> None:
    make_users(tmp_path / "data")
    with http_server(tmp_path / "data") as node:
        browser = Browser(node.url)
        browser.log_in("ann", ANN)
        assert 200 == browser.status_of("GET", "/query", params={"sql": "show current_user"})
        assert node.api.node.directory is not None
        node.api.node.directory.change(SetPassword("ann", hash_password("ann-has-another", CHEAP)))
        assert 401 == browser.status_of("GET", "/query", params={"sql": "show current_user"})
        browser.client.close()


def test_of_too_many_browsers_the_one_unused_for_longest_is_logged_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_sessions, "SESSIONS_MAX", 2)
    make_users(tmp_path / "data")
    with http_server(tmp_path / "data") as node:
        browsers = [Browser(node.url) for _ in range(3)]
        for browser in browsers:
            browser.log_in("root", ROOT)
        assert ["login", "in", "in"] == [b.client.get("/console/session").json()["state"] for b in browsers]
        for browser in browsers:
            browser.client.close()


def test_a_node_without_users_needs_no_login(node: HttpNode) -> None:
    assert "open" == node.client.get("/console/session").json()["state"]


# ---------------------------------------------------------------------------------------------- saros console FOLDER


@pytest.fixture
def console(tmp_path: Path) -> Iterator[EmbeddedConsole]:
    made = EmbeddedConsole(str(tmp_path / "data"))
    yield made
    made.close()


def _redeem(link: str) -> tuple[Browser, httpx.Response]:
    url, _, ticket = link.partition("/console/#ticket=")
    browser = Browser(url)
    answer = browser.client.post("/console/ticket", json={"ticket": ticket})
    if answer.status_code == 200:
        browser.client.headers["x-saros-csrf"] = answer.json()["csrf"]
    return browser, answer


def test_a_link_lets_one_browser_in_once(console: EmbeddedConsole) -> None:
    link = console.link()
    first, answer = _redeem(link)
    second, refused = _redeem(link)
    statement = {"sql": "show databases"}
    assert (200, 401) == (answer.status_code, refused.status_code)
    assert 200 == first.status_of("POST", "/console/query", json=statement)
    assert 401 == second.status_of("POST", "/console/query", json=statement)
    first.client.close()
    second.client.close()


@pytest.mark.parametrize("headers", [{}, {"authorization": "Basic cm9vdDpyb290"}, {"cookie": "saros=x; saros-1=y"}])
def test_nobody_else_on_the_machine_is_let_in(console: EmbeddedConsole, headers: dict[str, str]) -> None:
    url = console.link().partition("/console/")[0]
    answers = [
        httpx.get(f"{url}/query", params={"sql": "show databases"}, headers=headers),
        httpx.post(f"{url}/rest/v2/nonQuery", json={"sql": "create database root.x"}, headers=headers),
    ]
    assert [401, 401] == [answer.status_code for answer in answers]
    login = httpx.post(f"{url}/console/login", json={"user": "root", "password": "root"}, headers=headers)
    assert 403 == login.status_code


def test_a_node_takes_no_tickets(node: HttpNode) -> None:
    assert 401 == node.client.post("/console/ticket", json={"ticket": "x"}).status_code


# ---------------------------------------------------------------------------------------------- results


def _lines(node: HttpNode, sql: str) -> list[dict[str, Any]]:
    answer = node.client.post("/console/query", json={"sql": sql})
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_result_comes_by_columns_with_types_and_an_end(node: HttpNode) -> None:
    node.written("insert into root.r.d(time, i, x, s, b) values (1, 9007199254740993, 1.5, 'a', true)")
    head, rows, end = _lines(node, "select i, x, s, b from root.r.d")
    expected = [("Time", "TIMESTAMP"), ("root.r.d.i", "DOUBLE"), ("root.r.d.x", "DOUBLE"), ("root.r.d.s", "TEXT")]
    assert [name for name, _ in expected] == [column["name"] for column in head["columns"]][:4]
    assert (1, ["1970-01-01T00:00:00.001Z"], ["a"], [True]) == (
        rows["rows"],
        rows["values"][0],
        rows["values"][3],
        rows["values"][4],
    )
    assert end["end"] is True


def test_numbers_that_javascript_cannot_represent_are_texts(node: HttpNode) -> None:
    node.written(
        "create timeseries root.n.d.i with datatype=INT64",
        "insert into root.n.d(time, i) values (1, 9007199254740993)",
    )
    assert ["9007199254740993"] == _lines(node, "select i from root.n.d")[1]["values"][1]
    assert ["inf"] == _lines(node, "select exp(i) from root.n.d")[1]["values"][1]


def test_a_statement_without_rows_tells_its_count(node: HttpNode) -> None:
    head, end = _lines(node, "insert into root.w.d(time, x) values (1, 1), (2, 2)")
    assert ([], 2, True) == (head["columns"], head["count"], end["end"])


@pytest.mark.slow
def test_a_statement_ends_when_its_browser_cancels_it(tmp_path: Path) -> None:
    with saros.connect(str(tmp_path / "data")) as database:
        times = np.arange(2_000_000).astype("datetime64[ms]")
        database.insert("root.a.d", times, {"x": np.random.default_rng(1).random(len(times))})
    with http_server(tmp_path / "data") as node:
        columns = ", ".join(f"x + {number}" for number in range(24))
        body = {"sql": f"select {columns} from root.a.d"}
        with node.client.stream("POST", "/console/query", json=body) as answer:
            chunks = answer.iter_raw()
            received = b""
            while b'"rows"' not in received and (chunk := next(chunks, None)):
                received += chunk
            assert (200, True) == (answer.status_code, b'"rows"' in received), received
            assert 1 == node.api.node.engine.open_queries, received[-500:]
        wait_equal(0, lambda: node.api.node.engine.open_queries)


# ---------------------------------------------------------------------------------------------- charts

POINTS = 50_000
WIDTH = 200


@pytest.fixture(scope="module")
def charted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpNode]:
    folder = tmp_path_factory.mktemp("charted") / "data"
    numbers = np.arange(POINTS)
    kept = (numbers < 20_000) | (numbers >= 30_000)
    random = np.random.default_rng(7)
    with saros.connect(str(folder)) as database:
        times = (1_700_000_000_000 + numbers * 1_000).astype("datetime64[ms]")
        values = {"x": random.normal(0, 1, POINTS), "s": np.array(["on"] * POINTS)}
        database.insert("root.c.d", times[kept], {name: found[kept] for name, found in values.items()})
        database.insert("root.c.few", times[:10], {"x": np.arange(10.0)})
        database.execute("flush")
    with http_server(folder) as node:
        yield node


def _chart(node: HttpNode, sql: str, start: int | None = None, end: int | None = None) -> dict[str, Any]:
    answer = node.client.post("/console/chart", json={"sql": sql, "width": WIDTH, "from": start, "to": end})
    assert 200 == answer.status_code, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _values(node: HttpNode, condition: str = "") -> list[float]:
    text = node.client.get("/query.csv", params={"sql": f"select x from root.c.d {condition}"}).text
    return [float(line.split(",")[1]) for line in text.splitlines()[1:]]


@pytest.mark.parametrize("sql", ["select x from root.c.d", "select * from root.c.d;", "select x + 0 from root.c.d"])
def test_a_chart_has_the_extremes_of_all_points_at_few_points(charted: HttpNode, sql: str) -> None:
    (series,) = _chart(charted, sql)["series"]
    drawn, values = [value for value in series["values"] if value is not None], _values(charted)
    assert (min(values), max(values), values[0], values[-1]) == (min(drawn), max(drawn), drawn[0], drawn[-1])
    assert len(drawn) <= 4 * (WIDTH + 1)


@pytest.mark.parametrize("sql", ["select x from root.c.d", "select x + 0 from root.c.d"])
def test_a_chart_shows_a_gap_where_points_are_missing(charted: HttpNode, sql: str) -> None:
    (series,) = _chart(charted, sql)["series"]
    gaps = [time for time, value in zip(series["times"], series["values"], strict=True) if value is None]
    assert 1 == len(gaps)
    assert 1_700_000_000_000 + 19_000_000 <= gaps[0] <= 1_700_000_000_000 + 30_000_000


def test_a_chart_of_a_range_has_its_points(charted: HttpNode) -> None:
    start, end = 1_700_000_001_000, 1_700_000_004_000
    found = _chart(charted, "select x from root.c.d", start, end)
    assert (start, end, False) == (found["from"], found["to"], found["is_reduced"])
    assert [1_700_000_001_000, 1_700_000_002_000, 1_700_000_003_000] == found["series"][0]["times"]


def test_a_chart_keeps_the_condition_of_its_statement(charted: HttpNode) -> None:
    found = _chart(charted, "select x from root.c.d where time < 2023-11-14T22:13:22Z or time < 5")
    assert [1_700_000_000_000, 1_700_000_001_000] == found["series"][0]["times"]


def test_a_chart_by_device_tells_the_devices_apart(charted: HttpNode) -> None:
    found = _chart(charted, "select x from root.c.** align by device")
    assert ["root.c.d.x", "root.c.few.x"] == [series["name"] for series in found["series"]]


def test_a_plain_series_is_drawn_from_statistics(charted: HttpNode) -> None:
    before = charted.api.node.engine.counters().statements
    assert _chart(charted, "select x from root.c.d")["is_reduced"]
    assert 3 == charted.api.node.engine.counters().statements - before


@pytest.mark.parametrize(
    "sql", ["show devices", "create database root.by_chart", "select", "select s from root.c.d limit"]
)
def test_a_chart_of_something_else_is_refused(charted: HttpNode, sql: str) -> None:
    answer = charted.client.post("/console/chart", json={"sql": sql, "width": WIDTH})
    assert (400, {"code", "message"}) == (answer.status_code, set(answer.json()))
