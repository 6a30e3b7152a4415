"""Debian's Chromium, driven by Playwright; nothing is downloaded."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
NEEDS_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's package chromium")

SCREENS = [
    (400, "dark"),
    *(pytest.param(*screen, marks=pytest.mark.full) for screen in ((400, "light"), (1280, "dark"), (1280, "light"))),
]
"""Width and colour scheme."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser; while it is open, its event loop runs in this thread, and other tests want one of their own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:
    """A page of its own, 1200 pixels wide; whatever it says on its console or asks of a network fails the test."""
    context = chromium.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.set_default_timeout(20_000)
    yield page
    context.close()
    assert said == []


def violations(browser: Any) -> list[str]:
    """What axe has against the page as it stands."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(browser).response["violations"]
    return [f"{one['id']}: {node['html']}" for one in found for node in one["nodes"]]


def until(browser: Any, script: str, argument: Any = None) -> None:
    """Wait until a script is true; the page's own policy lets nothing within it wait for text that is evaluated."""
    for _ in range(400):
        if browser.evaluate(script, argument):
            return
        browser.wait_for_timeout(50)
    raise AssertionError(f"never true: {script}")
