"""A real Chromium for tests of the page. Whatever a page should not do ends its test."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

REFUSED = "the server responded with a status of 400"
PAUSE = 400
"""Milliseconds after a key until its value has been announced."""


def chromium_path() -> str:
    """Return the path of Chromium; the test is skipped where there is none."""
    path = os.environ.get("FOVEAL_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no Chromium: apt-get install chromium, or name it in FOVEAL_CHROMIUM")
    return path


@contextmanager
def launched_browser() -> Iterator[Any]:
    """Start Chromium for a module of tests."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = chromium_path()
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def watched_page(browser: Any, may_be_refused: bool = False, **context: Any) -> Iterator[Any]:
    """Open a page. It may write no error, ask no other machine, and open no dialog.

    With `may_be_refused`, the server may answer that an input is wrong, which Chromium reports, too.
    """
    events: list[str] = []
    opened = browser.new_context(**context)
    page = opened.new_page()

    def on_console(message: Any) -> None:
        if message.type == "error" and not (may_be_refused and REFUSED in message.text):
            events.append(f"console: {message.text}")

    def on_request(request: Any) -> None:
        address = urlsplit(request.url)
        if address.scheme not in ("file", "data", "blob") and address.hostname != "127.0.0.1":
            events.append(f"request: {request.url}")

    def on_dialog(dialog: Any) -> None:
        events.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("console", on_console)
    page.on("pageerror", lambda error: events.append(f"error: {error}"))
    page.on("request", on_request)
    page.on("dialog", on_dialog)
    yield page
    opened.close()
    assert not events, events


def tool_path(name: str, *places: str) -> Path:
    """Return the path of a tool of Node; the test is skipped where it is not installed.

    `FOVEAL_NODE_MODULES` names the folder in which `npm install typescript axe-core` put its packages.
    """
    folder = os.environ.get("FOVEAL_NODE_MODULES")
    for place in places:
        if folder and (path := Path(folder, place)).exists():
            return path
    pytest.skip(f"no {name}: npm install {name}, and name its node_modules in FOVEAL_NODE_MODULES")


def shown(page: Any) -> str:
    """Wait until the page of a run has shown its view. Return its error, or an empty text."""
    page.wait_for_function("() => document.querySelector('.columns')?.ariaBusy === 'false'", timeout=120_000)
    return " ".join(page.locator(".columns .error").all_inner_texts())


def violations(page: Any) -> list[tuple[str, str]]:
    """Return the rules of accessibility that a page breaks, each with an element."""
    page.evaluate(tool_path("axe-core", "axe-core/axe.min.js").read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in found]


def press(page: Any, *keys: str) -> None:
    """Press keys, and wait until the value at the cursor has been announced."""
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_timeout(PAUSE)


def announced(page: Any, panel: str) -> str:
    """Return what the live region of a panel says."""
    return str(page.locator(panel).locator("[role=status]").inner_text())


def as_announced(value: float) -> str:
    """Return a number as the page writes it: three digits, or all of an integer."""
    if value != value:
        return "no value"
    if float(value).is_integer():
        return f"{int(value):,}"
    if abs(value) < 1e-3:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{float(f'{value:.3g}'):g}" if abs(value) < 100 else f"{value:,.1f}".removesuffix(".0")
