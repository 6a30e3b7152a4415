"""`lcm serve` in headless Chromium: look, search, tick two and compare, read a store, judge; nothing hostile runs."""

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import NEEDS_CHROMIUM, SCREENS, until, violations
from tests.pipelines.test_serve import Served, served  # noqa: F401 - a fixture

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM, pytest.mark.xdist_group("browser")]


@pytest.fixture
def here(browser: Any, served: Served) -> Any:  # noqa: F811
    """The list."""
    browser.goto(served.server.address)
    return browser


def test_two_runs_are_ticked_and_compared(here: Any) -> None:
    button = here.locator("#compare")
    assert button.is_disabled()
    for name in ("a", "b"):
        here.get_by_label(f"compare {name}", exact=True).check()
    assert here.inner_text("#ticked").startswith("2 ticked")
    button.click()
    here.wait_for_selector("#list a")
    assert "recall@10" in here.inner_text("main")
    assert here.locator("#list a").count() == 3


def test_a_search_over_questions_opens_the_page_of_a_run_at_its_place(here: Any) -> None:
    here.get_by_role("link", name="Questions", exact=True).click()
    here.fill("#q", "kettle")
    here.keyboard.press("Enter")
    here.wait_for_url("**/questions?q=kettle")
    here.locator(".found a").first.click()
    here.wait_for_selector("#question .asked")
    assert here.inner_text("#question .asked").startswith("where is the kettle?")
    assert here.title() != "taken"
    until(here, "document.activeElement.id === 'question'")
    assert here.evaluate("document.querySelector('#question .asked').getBoundingClientRect().top") < 450


def test_a_store_is_searched_and_read(here: Any) -> None:
    here.get_by_role("link", name="memory.db").click()
    here.fill("#q", "rope")
    here.keyboard.press("Enter")
    here.locator(".found a").first.click()
    assert "the rope lies in drawer 2" in here.inner_text(".said")
    assert here.locator("script:not([src])").count() == 0


def test_what_a_run_found_is_judged(here: Any, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    here.get_by_label("judge b", exact=True).click()
    here.wait_for_selector("#count:not(:empty)")
    done, total = (int(one) for one in here.inner_text("#count").split(" of "))
    for number in range(done, total):
        here.keyboard.press("3")
        expect(here.locator("#count")).to_contain_text(f"{number + 1} of")  # the page lets no test evaluate text
    here.keyboard.press("f")
    here.wait_for_selector("#gone:not([hidden])")
    assert "qrels.trec" in here.inner_text("#gone-text")
    assert list((tmp_path / "judgements").rglob("qrels.trec"))


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_every_page_is_accessible(here: Any, served: Served, width: int, scheme: str) -> None:  # noqa: F811
    here.emulate_media(color_scheme=scheme)
    here.set_viewport_size({"width": width, "height": 900})
    store = served.key("memory.db")
    for page in ("", "?q=nothing", "questions?q=where", f"store/{store}?q=rope", f"store/{store}/msg%231"):
        here.goto(served.server.address + page)
        assert violations(here) == [], page
        assert here.evaluate("document.documentElement.scrollWidth <= innerWidth"), page
