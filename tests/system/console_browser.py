"""A headless Chromium that shows the console; each test file starts its own browser.

A test fails if its page reports an error, or sends a request to another server.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("playwright", reason="Playwright is not installed")
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = "/usr/bin/chromium"
#: Milliseconds that a page may take on a busy machine.
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)
_SERIOUS = {"serious", "critical"}


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a browser; if none is installed, skip the test."""
    if shutil.which(CHROMIUM) is None:
        pytest.skip(f"{CHROMIUM} is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def console_page(browser: Browser, url: str, **options: Any) -> Iterator[Page]:
    """Show a page in a new browser context, which is created with the `options`."""
    origin = url.partition("/console")[0]
    errors: list[str] = []
    context = browser.new_context(viewport=options.pop("viewport", {"width": 1280, "height": 800}), **options)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(f"a dialog: {dialog.message}"))
    page.on("request", lambda request: _note_foreign(request.url, origin, errors))
    page.goto(url)
    try:
        yield page
        # A refused request appears as an error in the page's console. Some tests cause such requests on purpose.
        unexpected = [text for text in errors if "Failed to load resource" not in text]
        assert unexpected == [], f"errors of the page: {unexpected}"
    finally:
        context.close()


def _note_foreign(url: str, origin: str, errors: list[str]) -> None:
    if not url.startswith((origin, "data:", "blob:")):
        errors.append(f"a request to {url}")


def log_in(page: Page, user: str, password: str) -> None:
    """Fill in the login form and send it."""
    page.get_by_label("User").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def type_statement(page: Page, text: str) -> None:
    """Replace the text of the editor."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)
    page.keyboard.press("Escape")


def run_statement(page: Page, text: str) -> None:
    """Run a statement, and wait for its end."""
    type_statement(page, text)
    page.keyboard.press("Control+Enter")
    page.locator(".run-bar .primary:enabled").wait_for()


def accessibility_faults(browser: Browser, url: str, selector: str, **options: Any) -> list[str]:
    """Return the serious faults that axe-core finds in the page at `url` once `selector` appears."""
    context = browser.new_context(bypass_csp=True, **options)  # otherwise, the page would not run axe's injected script
    try:
        page = context.new_page()
        page.goto(url)
        page.locator(selector).first.wait_for(timeout=PATIENCE_MS)
        return serious_faults(page)
    finally:
        context.close()


def serious_faults(page: Page) -> list[str]:
    """Return the serious faults that axe-core finds in the current state of a page."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    return [
        f"{fault['id']}: {node['html'][:160]}"
        for fault in axe.run(page).response["violations"]
        if fault["impact"] in _SERIOUS
        for node in fault["nodes"]
    ]
