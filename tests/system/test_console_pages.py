"""The console's pages Cluster, Storage, Access and Import, in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pandas as pd
import pytest
from free_ports import free_addresses
from server.http.http_node import HttpNode, http_server, make_users
from server.secured import ANN, ROOT
from system.cluster_fixture import answers_strongly, make_folders
from system.console_browser import chromium, console_page, log_in, serious_faults
from waiting import PATIENCE_S, wait_until

from saros_cluster.node.cluster_file import CLUSTER_FILE
from saros_server.api.session import open_session
from saros_server.server import Server

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
Browser, Locator, Page, expect = playwright.Browser, playwright.Locator, playwright.Page, playwright.expect

pytestmark = pytest.mark.slow

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
NASTY = "<img src=x onerror=alert(1)>"
CSV = "when,level,state\n2024-01-01T00:00:00,1.5,on\nyesterday,2,off\n2024-01-01T00:00:02,2.5,off\n"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@contextmanager
def console(browser: Browser, url: str, page_id: str, user: str = "", password: str = "") -> Iterator[Page]:
    """Show a page of a console; if `user` is not empty, log in first."""
    with console_page(browser, f"{url}/console/#/{page_id}", reduced_motion="reduce") as page:
        if user:
            log_in(page, user, password)
        page.get_by_role("navigation").wait_for()
        yield page


@pytest.fixture
def node(tmp_path: Path) -> Iterator[HttpNode]:
    make_users(tmp_path / "data")
    with http_server(tmp_path / "data", auth=("root", ROOT)) as found:
        yield found


def panel(page: Page, name: str) -> Locator:
    return page.locator(f"section[aria-label='{name}']")


def confirm(page: Page, verb: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=verb, exact=True).click()


# ---------------------------------------------------------------------------------------------- cluster


def test_a_node_that_joins_is_shown_without_a_reload(browser: Browser, tmp_path: Path) -> None:
    folders = make_folders(tmp_path, 2, 1)
    servers = [Server(str(folder), "", 0, http_port=0) for folder in folders]
    try:
        for server in servers:
            server.start()
        wait_until(lambda: all(answers_strongly(server.api.node) for server in servers))
        assert servers[0].http is not None
        url = servers[0].http.url
        with console(browser, url, "cluster") as page:
            rows = panel(page, "Nodes").locator("tbody tr")
            expect(rows).to_have_count(2)
            expect(panel(page, "Groups")).to_contain_text("node 1 leads")
            servers.append(_joined(url, tmp_path / "node3"))
            expect(rows).to_have_count(3)
            expect(rows.nth(2)).to_contain_text("Running")
            expect(page.get_by_text("3 of 3")).to_be_visible()
    finally:
        for server in servers:
            server.stop()


def _joined(url: str, folder: Path) -> Server:
    """Admit a node, start its server, and begin to add it; return the server."""
    peer, client = free_addresses(2)
    with httpx.Client(base_url=url, timeout=PATIENCE_S) as http:
        admitted = http.post("/query.json", content=f"admit node '{peer}' client '{client}'").json()
        node, text = admitted.values()
        folder.mkdir()
        (folder / CLUSTER_FILE).write_text(text)
        server = Server(str(folder), "", 0)
        server.start()
        assert 200 == http.post("/query", content=f"add node {node}").status_code
    return server


def test_a_hidden_page_asks_for_nothing(browser: Browser, node: HttpNode) -> None:
    with console(browser, node.url, "cluster", "root", ROOT) as page:
        expect(panel(page, "Nodes")).to_contain_text("Running")
        page.clock.install()
        set_hidden(page, "true")
        page.wait_for_load_state("networkidle")
        requests = list[str]()
        page.on("request", lambda request: requests.append(request.url))
        page.clock.run_for(60_000)
        assert [] == requests
        with page.expect_response("**/statements/slow"):
            set_hidden(page, "false")


def set_hidden(page: Page, value: str) -> None:
    page.evaluate(f"Object.defineProperty(document, 'hidden', {{value: {value}, configurable: true}})")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_a_query_is_killed_after_a_question(browser: Browser, node: HttpNode, tmp_path: Path) -> None:
    times = np.arange(300_000)
    session = open_session(str(tmp_path / "data"), time_zone=None, options={})
    session.insert("root.a.d", times, {"x": times * 1.0, "s": ["on"] * len(times)}, aligned=None)
    session.close()
    columns = ", ".join(f"x + {n}" for n in range(24))
    with (
        node.client.stream(
            "POST", "/query.csv", content=f"select {columns} from root.a.d where s != '{NASTY}'"
        ) as sent,
        console(browser, node.url, "cluster", "root", ROOT) as page,
    ):
        running = panel(page, "Running queries")
        expect(running).to_contain_text(NASTY)
        expect(page.locator("img[src=x]")).to_have_count(0)
        running.get_by_role("button", name="Kill").click()
        confirm(page, "Cancel")
        expect(running).to_contain_text(NASTY)
        running.get_by_role("button", name="Kill").click()
        confirm(page, "Kill query")
        expect(running).to_contain_text("No query is running.")
        with pytest.raises(httpx.RemoteProtocolError):
            for _ in sent.iter_raw():
                pass


# ---------------------------------------------------------------------------------------------- storage


def test_databases_files_and_times_to_live_are_shown(browser: Browser, node: HttpNode) -> None:
    node.written("create database root.plant", "set ttl to root.plant.** 8640000000000")
    node.written("insert into root.plant.d(time, x) values (1700000000000, 1)", "flush")
    with console(browser, node.url, "storage", "root", ROOT) as page:
        expect(panel(page, "Databases").get_by_role("row", name="root.plant")).to_contain_text("1")
        expect(panel(page, "Files")).to_contain_text(".tsfile")
        expect(panel(page, "Partitions")).to_contain_text("2023-11-09 00:00:00")
        expect(panel(page, "Time to live")).to_contain_text("100,000 days")
        expect(panel(page, "Merges")).to_contain_text("Merges completed")
        expect(page.get_by_text("Disk free")).to_be_visible()


# ---------------------------------------------------------------------------------------------- access


def test_users_roles_and_privileges_are_changed(browser: Browser, node: HttpNode) -> None:
    with console(browser, node.url, "access", "root", ROOT) as page:
        page.get_by_role("button", name="New role").click()
        page.get_by_role("dialog").get_by_label("Name").fill("operators@1")
        confirm(page, "Create role")
        expect(page.get_by_role("heading", name="Role operators@1")).to_be_visible()
        page.get_by_role("button", name="Grant privilege").click()
        page.get_by_role("dialog").get_by_label("Privilege").select_option("MAINTAIN")
        confirm(page, "Grant")
        expect(panel(page, "Privileges")).to_contain_text("MAINTAIN")
        page.get_by_role("button", name="ann").click()
        page.get_by_role("button", name="Grant role").click()
        confirm(page, "Grant")
        expect(panel(page, "Privileges")).to_contain_text("by role operators@1")
        assert [["ann", "operators@1"]] == [["ann", name] for name in roles_of(node, "ann")]
        page.get_by_role("button", name="Revoke role operators@1 from ann").click()
        confirm(page, "Revoke")
        expect(panel(page, "Privileges")).to_contain_text("No privileges.")
        assert [] == roles_of(node, "ann")
        expect(panel(page, "Audit trail")).to_contain_text("create role `operators@1`")
        panel(page, "Audit trail").get_by_label("Kind").select_option("login")
        expect(panel(page, "Audit trail")).not_to_contain_text("create role")


def roles_of(node: HttpNode, user: str) -> list[str]:
    return [json.loads(line)["Role"] for line in node.sql(f"list role of user {user}").text.splitlines()]


def test_a_token_is_created_shown_once_and_revoked(browser: Browser, node: HttpNode) -> None:
    with console(browser, node.url, "access", "root", ROOT) as page:
        tokens = panel(page, "API tokens")
        tokens.get_by_role("button", name="New token").click()
        page.get_by_role("dialog").get_by_label("Name").fill("grafana")
        confirm(page, "Create token")
        secret = tokens.locator(".secret code")
        expect(secret).to_have_text(re.compile("saros_"))
        headers = {"authorization": f"Bearer {secret.text_content()}"}
        with httpx.Client(base_url=node.url, timeout=PATIENCE_S) as program:
            assert 200 == program.post("/query", content="show current_user", headers=headers).status_code
            tokens.get_by_role("button", name="Revoke token grafana of root").click()
            confirm(page, "Revoke")
            expect(tokens).to_contain_text("There is no token.")
            wait_until(lambda: program.post("/query", content="show version", headers=headers).status_code == 401)


def test_a_user_without_rights_is_told_what_is_needed(browser: Browser, node: HttpNode) -> None:
    with console(browser, node.url, "cluster", "ann", ANN) as page:
        for name in ("Nodes", "Groups"):
            expect(panel(page, name)).to_contain_text("You may not see this: MAINTAIN is needed. An administrator can")
        expect(panel(page, "Running queries")).to_contain_text("No query is running.")
        page.get_by_role("link", name="Storage").click()
        expect(panel(page, "Partitions")).to_contain_text("You may not see this: MAINTAIN is needed.")
        page.get_by_role("link", name="Access").click()
        expect(page.get_by_role("heading", name="User ann")).to_be_visible()
        expect(panel(page, "Privileges")).to_contain_text("No privileges.")
        expect(page.get_by_role("button", name="Set password")).to_be_visible()
        expect(page.get_by_role("button", name="Drop user")).to_have_count(0)
        expect(panel(page, "Audit trail")).to_contain_text("Only administrators may see this.")
        page.get_by_role("link", name="Import").click()
        choose(page, "data.csv", CSV.encode())
        expect(page.get_by_role("alert")).to_contain_text("WRITE_DATA is needed")


def test_a_page_that_refreshes_asks_once_for_what_is_refused(browser: Browser, node: HttpNode) -> None:
    with console(browser, node.url, "cluster", "ann", ANN) as page:
        for _ in range(2):
            with page.expect_response("**/statements/slow"):
                pass
        denied = node.client.get("/audit", params={"event": "denied"}).json()["lines"]
        statements = [line["statement"] for line in denied]
        assert len(statements) == len(set(statements)), statements


# ---------------------------------------------------------------------------------------------- import


def choose(page: Page, name: str, data: bytes) -> None:
    page.locator("#import-file").set_input_files({"name": name, "mimeType": "text/csv", "buffer": data})


def test_a_file_is_shown_mapped_and_imported(browser: Browser, node: HttpNode, tmp_path: Path) -> None:
    with console(browser, node.url, "import", "root", ROOT) as page:
        choose(page, f"{NASTY}.csv", CSV.replace("off", NASTY).encode())
        expect(panel(page, "Preview")).to_contain_text(NASTY)
        expect(panel(page, "Preview")).to_contain_text("'yesterday' is not an ISO 8601 time")
        expect(page.locator("img[src=x]")).to_have_count(0)
        page.get_by_label("Device (", exact=False).fill("root.plant.pump")
        page.get_by_label("Name for level").fill("depth")
        page.get_by_label("Name for level").press("Tab")
        page.get_by_label("Type of level").select_option("FLOAT")
        expect(panel(page, "Columns")).to_contain_text("root.plant.pump.depth")
        assert "" == node.sql("show devices root.plant.**").text
        page.get_by_role("button", name="Import", exact=True).click()
        expect(panel(page, "Progress")).to_contain_text("2 rows, 4 points, 1 row left out")
        expect(panel(page, "Progress").get_by_role("row", name="3 when: 'yesterday'")).to_be_visible()
    rows = [json.loads(line) for line in node.sql("select depth from root.plant.pump").text.splitlines()]
    assert [1.5, 2.5] == [row["root.plant.pump.depth"] for row in rows]
    wait_until(lambda: not [path for path in (tmp_path / "data" / "uploads").rglob("*") if path.is_file()])


def test_an_import_is_cancelled_and_leaves_no_file(browser: Browser, node: HttpNode, tmp_path: Path) -> None:
    data = "time,x\n" + "".join(f"{number},{number}\n" for number in range(2_000_000))
    with console(browser, node.url, "import", "root", ROOT) as page:
        (tmp_path / "large.csv").write_text(data)
        page.locator("#import-file").set_input_files(tmp_path / "large.csv")
        page.get_by_role("button", name="Import", exact=True).click()
        page.get_by_role("button", name="Cancel import").click()
        confirm(page, "Cancel import")
        expect(page.get_by_role("alert")).to_contain_text("It was cancelled; the rows that are written stay.")
    wait_until(lambda: not [path for path in (tmp_path / "data" / "uploads").rglob("*") if path.is_file()])


def test_a_file_that_cannot_be_read_is_told_with_the_reason(browser: Browser, node: HttpNode) -> None:
    with console(browser, node.url, "import", "root", ROOT) as page:
        choose(page, "data.csv", b"time,x\n1,1\n")
        page.get_by_label("Zone").fill("Mars/Olympus")
        expect(page.get_by_role("alert")).to_contain_text("time zone 'Mars/Olympus' is unknown")
        expect(page.get_by_role("button", name="Import", exact=True)).to_be_disabled()


@pytest.mark.skipif(not SHARED.exists(), reason="the recordings are not here")
def test_a_recording_is_imported(browser: Browser, node: HttpNode) -> None:
    file = min((SHARED / "skab").glob("*.csv"))
    with console(browser, node.url, "import", "root", ROOT) as page:
        choose(page, file.name, file.read_bytes())
        expect(panel(page, "Preview")).to_contain_text("Temperature")
        page.get_by_role("button", name="Import", exact=True).click()
        rows = len(pd.read_csv(file, sep=";"))
        expect(panel(page, "Progress")).to_contain_text(f"{rows:,} rows")
        expect(page.get_by_role("heading", name=f"Imported {file.name}")).to_be_visible()


def test_the_focus_stays_on_a_table_that_is_refreshed(browser: Browser, node: HttpNode) -> None:
    with console(browser, node.url, "cluster", "root", ROOT) as page:
        frame = panel(page, "Nodes").locator(".table-frame")
        frame.focus()
        frame.evaluate("element => element.dataset.old = 1")
        expect(frame).not_to_have_attribute("data-old", "1")
        expect(frame).to_be_focused()


# ---------------------------------------------------------------------------------------------- accessibility


@pytest.mark.parametrize("page_id", ["cluster", "storage", "access", "import"])
def test_pages_have_no_serious_accessibility_fault(browser: Browser, node: HttpNode, page_id: str) -> None:
    node.written("insert into root.a.d(time, x) values (1, 1)", "flush")
    with console(browser, node.url, page_id, "root", ROOT) as page:
        if page_id == "import":
            choose(page, "data.csv", CSV.encode())
        page.locator("tbody tr").first.wait_for()
        for theme in ("dark", "light"):
            page.emulate_media(color_scheme=theme)
            assert [] == serious_faults(page)
