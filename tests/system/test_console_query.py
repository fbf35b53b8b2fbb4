"""The console in a real browser: the login, and the pages Query and Explore."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from server.http.http_node import HttpNode, http_server, make_users
from server.secured import ANN, ROOT
from system.console_browser import (
    accessibility_faults,
    chromium,
    console_page,
    log_in,
    run_statement,
    type_statement,
)
from waiting import wait_equal

import saros
from saros_server.embedded_console import EmbeddedConsole

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
Browser, expect = playwright.Browser, playwright.expect

pytestmark = pytest.mark.slow

POINTS = 500_000
START = 1_700_000_000_000
#: Markup that the console must show as text.
EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpNode]:
    """Yield a node without users. It has a long series, and a series whose names, tags and values are markup."""
    folder = tmp_path_factory.mktemp("console") / "data"
    numbers = np.arange(POINTS)
    with saros.connect(str(folder)) as database:
        times = (START + numbers * 1_000).astype("datetime64[ms]")
        database.insert("root.plant.pump1", times, {"temperature": 20 + np.sin(numbers / 9e3)})
        properties = f"tags('{EVIL}'='{EVIL}') attributes('a{EVIL}'='{EVIL}')"
        created = f"create timeseries root.evil.`{EVIL}`.`{EVIL}` with datatype=TEXT {properties}"
        for statement in (created, f"insert into root.evil.`{EVIL}`(time, `{EVIL}`) values (1, '{EVIL}')"):
            database.execute(statement)
    with http_server(folder) as made:
        yield made


def _console(node: HttpNode) -> str:
    return f"{node.url}/console/"


# ---------------------------------------------------------------------------------------------- logging in


def test_a_user_logs_in_and_out(browser: Browser, tmp_path: Path) -> None:
    make_users(tmp_path / "data")
    with http_server(tmp_path / "data") as node, console_page(browser, _console(node)) as page:
        log_in(page, "ann", "wrong")
        expect(page.get_by_role("alert")).not_to_be_empty()
        log_in(page, "root", ROOT)
        run_statement(page, "show current_user")
        expect(page.get_by_role("cell")).to_have_text("root")
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Password")).to_be_visible()


def test_a_user_without_rights_sees_the_error_of_the_node(browser: Browser, tmp_path: Path) -> None:
    make_users(tmp_path / "data")
    with http_server(tmp_path / "data") as node, console_page(browser, _console(node)) as page:
        log_in(page, "ann", ANN)
        run_statement(page, "create database root.x")
        expect(page.locator(".error")).to_contain_text("Error 803")


def test_the_link_of_an_embedded_console_works_once(browser: Browser, tmp_path: Path) -> None:
    console = EmbeddedConsole(str(tmp_path / "data"))
    try:
        link = console.link()
        with console_page(browser, link) as page:
            run_statement(page, "insert into root.a.d(time, x) values (1, 1)")
            expect(page.locator(".result")).to_contain_text("Done, 1 points")
            assert "ticket" not in page.url
        with console_page(browser, link) as page:
            expect(page.locator(".card")).to_contain_text("Run saros console again")
    finally:
        console.close()


# ---------------------------------------------------------------------------------------------- Query


def test_a_large_result_is_a_table_of_which_only_a_part_is_in_the_page(browser: Browser, node: HttpNode) -> None:
    with console_page(browser, _console(node)) as page:
        run_statement(page, "select temperature from root.plant.pump1")
        expect(page.locator(".status")).to_contain_text("500,000 rows")
        assert page.locator(".row").count() < 200
        page.locator(".rows").focus()
        page.keyboard.press("End")
        expect(page.locator(".row").last.locator(".cell").first).to_have_text("2023-11-20T17:06:39.000Z")


def test_a_statement_is_cancelled_on_the_node(browser: Browser, node: HttpNode) -> None:
    columns = ", ".join(f"temperature + {number}" for number in range(60))
    with console_page(browser, _console(node)) as page:
        type_statement(page, f"select {columns} from root.plant.pump1")
        page.keyboard.press("Control+Enter")
        wait_equal(1, lambda: node.api.node.engine.open_queries)
        page.keyboard.press("Escape")
        expect(page.locator(".status")).to_contain_text("cancelled")
        wait_equal(0, lambda: node.api.node.engine.open_queries)


def test_a_chart_zooms_into_the_points(browser: Browser, node: HttpNode) -> None:
    with console_page(browser, _console(node)) as page:
        run_statement(page, "select temperature from root.plant.pump1")
        page.get_by_role("button", name="Chart").click()
        expect(page.locator(".chart-note")).to_contain_text("reduced to the pixels")
        box = page.locator(".chart-area .u-over").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 100, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + 104, box["y"] + 40)
        page.mouse.move(box["x"] + 106, box["y"] + 40)
        page.mouse.up()
        expect(page.locator(".chart-note")).to_contain_text("all points")
        page.get_by_role("button", name="Whole range").click()
        expect(page.locator(".chart-note")).to_contain_text("reduced to the pixels")


def test_a_chart_that_takes_long_shows_for_how_long(browser: Browser, node: HttpNode) -> None:
    with console_page(browser, _console(node)) as page:
        held: list[playwright.Route] = []

        def hold(route: playwright.Route) -> None:
            held.append(route)

        page.route("**/console/chart", hold)
        run_statement(page, "select temperature from root.plant.pump1")
        page.get_by_role("button", name="Chart").click()
        expect(page.locator(".chart-note")).to_have_text(re.compile(r"reading the points: \d+ s"))
        held[0].continue_()
        expect(page.locator(".chart-note")).to_contain_text("Drag to zoom")


def test_a_chosen_view_is_kept_for_the_next_result(browser: Browser, node: HttpNode) -> None:
    with console_page(browser, _console(node)) as page:
        run_statement(page, "select temperature from root.plant.pump1 limit 10")
        page.get_by_role("button", name="Chart").click()
        run_statement(page, "show version")
        expect(page.locator(".row")).to_have_count(1)
        run_statement(page, "select temperature from root.plant.pump1 limit 20")
        expect(page.locator(".chart-note")).to_contain_text("20 points, all points")


def test_a_plan_is_a_tree_with_times(browser: Browser, node: HttpNode) -> None:
    with console_page(browser, _console(node)) as page:
        type_statement(page, "select count(*) from root.plant.pump1")
        page.get_by_role("button", name="Explain").click()
        expect(page.locator(".operator-name", has_text="AggregateScan")).to_be_visible()
        expect(page.locator(".plan .time-bar").first).to_be_visible()


def test_results_are_downloaded(browser: Browser, node: HttpNode) -> None:
    with console_page(browser, _console(node)) as page:
        run_statement(page, "select count(temperature) from root.plant.pump1")
        with page.expect_download() as download:
            page.get_by_role("link", name="CSV").click()
        assert '"count(root.plant.pump1.temperature)"\n500000\n' == Path(download.value.path()).read_text()


def test_tabs_and_history_outlive_the_page(browser: Browser, node: HttpNode) -> None:
    with console_page(browser, _console(node)) as page:
        run_statement(page, "show databases")
        page.keyboard.press("Alt+n")
        type_statement(page, "show devices")
        page.reload()
        expect(page.locator('[role="tab"]')).to_have_text(["show databases", "show devices"], use_inner_text=True)
        page.get_by_role("button", name="History").click()
        expect(page.locator(".history-entry code")).to_have_text("show databases")


@pytest.mark.parametrize(
    ("typed", "completion"),
    [("select * from root.pl", "plant"), ("select max_v", "max_value"), ("show data", "databases")],
)
def test_words_are_completed(browser: Browser, node: HttpNode, typed: str, completion: str) -> None:
    with console_page(browser, _console(node)) as page:
        page.locator(".cm-content").click()
        page.keyboard.type(typed)
        expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text(completion)


def test_measurements_of_the_device_after_from_are_completed(browser: Browser, node: HttpNode) -> None:
    with console_page(browser, _console(node)) as page:
        type_statement(page, "select temp from root.plant.pump1")
        page.keyboard.press("Home")
        for _ in "select temp":
            page.keyboard.press("ArrowRight")
        page.keyboard.press("Control+Space")
        expect(page.locator(".cm-tooltip-autocomplete li").first).to_contain_text("temperature")


# ---------------------------------------------------------------------------------------------- Explore


def test_the_schema_is_explored_level_by_level(browser: Browser, node: HttpNode) -> None:
    with console_page(browser, f"{_console(node)}#/explore") as page:
        page.get_by_role("button", name="Open root.plant", exact=True).click()
        page.locator(".tree-link", has_text="pump1").click()
        expect(page.locator(".detail td .sparkline")).to_be_visible()
        page.locator(".detail a", has_text="temperature").click()
        expect(page.locator(".facts").first).to_contain_text("500,000")
        expect(page.locator(".chart-note")).to_contain_text("reduced to the pixels")


def test_series_are_found_by_a_part_of_their_path(browser: Browser, node: HttpNode) -> None:
    with console_page(browser, f"{_console(node)}#/explore") as page:
        page.get_by_label("Search series").fill("temper")
        expect(page.locator(".found .tree-link")).to_have_text("root.plant.pump1.temperature")


def test_many_devices_are_shown_a_part_at_a_time(browser: Browser, node: HttpNode) -> None:
    for number in range(1_200):
        node.written(f"insert into root.many.d{number:04d}(time, x) values (1, {number})")
    with console_page(browser, f"{_console(node)}#/explore/root.many") as page:
        nodes = page.locator(".tree-link", has_text=re.compile(r"^d\d{4}"))
        expect(nodes).to_have_count(500)
        page.get_by_role("button", name="Show more (700 left)").click()
        expect(nodes).to_have_count(1_000)
        expect(nodes.nth(500)).to_be_focused()
        page.goto(f"{_console(node)}#/explore/root.many.d1100")
        expect(page.locator('.tree-link[aria-current="true"]')).to_contain_text("d1100")


def test_a_device_with_many_series_shows_the_first_ones(browser: Browser, node: HttpNode) -> None:
    names = [f"m{number:03d}" for number in range(300)]
    node.written(f"insert into root.wide.d(time, {', '.join(names)}) values (1, {', '.join('7' for _ in names)})")
    with console_page(browser, f"{_console(node)}#/explore/root.wide.d") as page:
        expect(page.locator(".detail")).to_contain_text("The first 200 of 300 series")
        expect(page.locator(".detail tbody tr")).to_have_count(200)
        expect(page.locator(".detail .sparkline")).to_have_count(200)


def test_an_empty_database_says_so(browser: Browser, node: HttpNode) -> None:
    node.written("create database root.empty")
    with console_page(browser, f"{_console(node)}#/explore/root.empty") as page:
        expect(page.locator(".tree")).to_contain_text("empty")
        expect(page.locator(".detail .facts")).to_contain_text("Series0")


def test_the_live_view_follows_new_points(browser: Browser, node: HttpNode) -> None:
    node.written("insert into root.live.d(time, x) values (1700000000000, 1)")
    with console_page(browser, f"{_console(node)}#/explore/root.live.d.x") as page:
        expect(page.locator(".facts").first).to_contain_text("Points")
        expect(page.locator(".chart-note")).not_to_be_empty()
        page.get_by_role("button", name="Live", exact=True).click()
        expect(page.locator(".detail")).to_contain_text("Waiting for new points")
        node.written("insert into root.live.d(time, x) values (1700000001000, 42)")
        expect(page.get_by_label("New points").locator("tbody tr")).to_have_count(1)
        expect(page.get_by_label("New points").locator("tbody td").last).to_have_text("42")


def test_the_tree_is_walked_by_arrows_and_keeps_its_place(browser: Browser, node: HttpNode) -> None:
    with console_page(browser, f"{_console(node)}#/explore") as page:
        page.get_by_label("Search series").focus()
        page.locator('.tree-link[title="root.plant"]').wait_for()
        page.keyboard.press("Tab")
        links = page.locator(".tree-link")
        expect(links.first).to_be_focused()
        page.keyboard.press("End")
        expect(links.last).to_be_focused()
        page.keyboard.press("Home")
        for _ in range([link.get_attribute("title") for link in links.all()].index("root.plant")):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        pump = page.locator('.tree-link[title="root.plant.pump1"]')
        pump.wait_for()
        page.keyboard.press("ArrowRight")
        expect(pump).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".detail h2")).to_have_text("root.plant.pump1")
        expect(pump).to_be_focused()
        expect(pump).to_have_attribute("aria-current", "true")
        page.locator(".detail table").wait_for()  # the details are complete
        page.keyboard.press("Tab")
        expect(page.locator(".detail").get_by_role("link", name="Query")).to_be_focused()


def test_a_chart_zooms_and_moves_by_keys(browser: Browser, node: HttpNode) -> None:
    with console_page(browser, f"{_console(node)}#/explore/root.plant.pump1.temperature") as page:
        expect(page.locator(".chart-note")).to_contain_text("reduced to the pixels")
        page.locator(".chart-area").focus()
        with page.expect_request("**/console/chart") as asked:
            page.keyboard.press("+")
        zoomed = asked.value.post_data_json
        with page.expect_request("**/console/chart") as asked:
            page.keyboard.press("ArrowRight")
        moved = asked.value.post_data_json
        assert moved["from"] > zoomed["from"] > START
        assert moved["to"] - moved["from"] == zoomed["to"] - zoomed["from"]
        with page.expect_request("**/console/chart") as asked:
            page.keyboard.press("Home")
        assert asked.value.post_data_json["from"] is None
        expect(page.get_by_role("button", name="Whole range")).to_be_disabled()


def test_tabs_are_opened_by_arrows(browser: Browser, node: HttpNode) -> None:
    with console_page(browser, _console(node)) as page:
        type_statement(page, "show databases")
        page.keyboard.press("Alt+n")
        type_statement(page, "show devices")
        page.get_by_role("tab", name="show devices").focus()
        page.keyboard.press("ArrowLeft")
        expect(page.get_by_role("tab", name="show databases")).to_be_focused()
        expect(page.locator(".cm-content")).to_have_text("show databases")


def test_a_statement_run_by_its_button_leaves_the_focus_there(browser: Browser, node: HttpNode) -> None:
    with console_page(browser, _console(node)) as page:
        type_statement(page, "show version")
        page.get_by_role("button", name="Run").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".row")).to_have_count(1)
        expect(page.get_by_role("button", name="Run")).to_be_focused()


def test_a_console_without_data_says_how_to_begin(browser: Browser, tmp_path: Path) -> None:
    with http_server(tmp_path / "data") as node, console_page(browser, _console(node)) as page:
        expect(page.locator(".result")).to_contain_text("insert into root.plant.pump")
        page.get_by_role("link", name="Explore").first.click()
        expect(page.locator(".detail")).to_contain_text("There is no series yet.")
        page.locator(".detail").get_by_role("link", name="Import").click()
        expect(page.locator(".drop")).to_be_visible()


# ---------------------------------------------------------------------------------------------- safety, accessibility


@pytest.mark.parametrize(
    "place",
    [
        "#/explore",
        f"#/explore/root.evil.`{EVIL}`",
        f"#/explore/root.evil.`{EVIL}`.`{EVIL}`",
        "#/query/select%20*%20from%20root.evil.**",
        "#/query/select%20'%3Cimg%20src=x%20onerror=alert(1)%3E",
    ],
)
def test_names_tags_values_and_errors_are_text(browser: Browser, node: HttpNode, place: str) -> None:
    with console_page(browser, f"{_console(node)}{place.replace('<', '%3C').replace('>', '%3E')}") as page:
        if place == "#/explore":
            page.get_by_role("button", name="Open root.evil").click()
        expect(page.locator("main")).to_contain_text(re.compile(re.escape(EVIL)))
        assert 0 == page.locator('main img[src="x"]').count()


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize(
    ("place", "selector"),
    [
        ("#/query", ".cm-content"),
        ("#/query/select%20temperature%20from%20root.plant.pump1", ".row"),
        ("#/query/explain%20analyze%20select%20count(*)%20from%20root.plant.**", ".operator-ms"),
        ("#/explore/root.plant.pump1", ".sparkline"),
        ("#/explore/root.plant.pump1.temperature", ".chart-brush canvas"),
    ],
)
def test_there_are_no_serious_faults_of_accessibility(
    browser: Browser, node: HttpNode, place: str, selector: str, scheme: str
) -> None:
    assert [] == accessibility_faults(browser, f"{_console(node)}{place}", selector, color_scheme=scheme)


@pytest.mark.parametrize("place", ["#/query/select%20*%20from%20root.plant.pump1", "#/explore/root.plant.pump1"])
def test_pages_fit_a_phone(browser: Browser, node: HttpNode, place: str) -> None:
    phone = {"width": 390, "height": 844}
    with console_page(browser, f"{_console(node)}{place}", viewport=phone) as page:
        page.locator(".row, .sparkline").first.wait_for()
        assert 390 == page.evaluate("document.documentElement.scrollWidth")


def test_the_open_tab_is_in_sight(browser: Browser, node: HttpNode) -> None:
    with console_page(browser, _console(node), viewport={"width": 400, "height": 800}) as page:
        for number in range(4):
            page.evaluate(
                "place => location.hash = place", f"#/query/select%20temperature%20from%20root.plant.pump{number}"
            )
            expect(page.get_by_role("tab", selected=True)).to_contain_text("select temperature")
            expect(page.get_by_role("tab")).to_have_count(2 + number)
        expect(page.get_by_role("tab", selected=True)).to_be_in_viewport(ratio=0.9)


@pytest.mark.parametrize("width", [1_300, 400])
def test_a_long_name_leaves_room_for_the_other_columns(browser: Browser, node: HttpNode, width: int) -> None:
    node.written(f"insert into root.long.d(time, `{'m' * 150}`) values (1, 1.5)")
    with console_page(
        browser, f"{_console(node)}#/explore/root.long.d", viewport={"width": width, "height": 800}
    ) as page:
        page.locator("td").first.wait_for()
        frame, cell = page.locator(".table-frame").bounding_box(), page.locator("th", has_text="Type").bounding_box()
        assert frame["x"] + frame["width"] >= cell["x"] + cell["width"]
        assert width == page.evaluate("document.documentElement.scrollWidth")


def test_the_keyboard_reaches_pages_theme_and_help(browser: Browser, node: HttpNode) -> None:
    with console_page(browser, f"{_console(node)}#/explore", color_scheme="dark") as page:
        page.locator(".tree-link").first.wait_for()
        page.locator("main").focus()
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_contain_text("Shortcuts")
        page.keyboard.press("Escape")
        page.keyboard.press("Alt+t")
        expect(page.locator("html")).to_have_attribute("data-theme", "light")
        page.keyboard.press("Alt+1")
        expect(page.locator(".cm-content")).to_be_focused()
