"""A report page in headless Chromium: opened from disk as a reader would, by keyboard, by link, in light and dark."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from eval.report.explorer import Explorer, Texts
from eval.report.page import Facts, Notes, ReportPage, Section, Source, write_page
from eval.report.ranking import FoldedConversation, Insight, MessageLadder, Rung, ShownContext, ShownRanking
from eval.table import Cell, Table, titled
from lcm.clock import parse_instant
from lcm.records.context import Context, ContextItem
from lcm.records.summary import Summary
from tests.browser.conftest import NEEDS_CHROMIUM, SCREENS, until, violations
from tests.eval.tiny import tiny
from tests.support.looked_at import CONTROLLED, commanded
from tests.support.workspaces import queries, transcript

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM, pytest.mark.xdist_group("browser")]
FOLDED = (
    *("replay=per_turn", "compaction=lossless", "compaction.leaf_chunk_tokens=400", "compaction.min_leaf_tokens=0"),
    *("compaction.fresh_tail_count=4", "compaction.leaf_min_fanout=3", "compaction.budget_tokens=2000"),
    "measures.retention.budgets=[2000]",
)
HOSTILE = (
    "</script><script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "[a](javascript:document.title='taken') {{ 7*7 }} ${7*7}",
    "\u202eabc\u2028<svg/onload=document.title='taken'>",
)


@pytest.fixture(scope="module")
def page_of_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the sample whose conversations are folded, and its page with everything in it."""
    place = tmp_path_factory.mktemp("run") / "here"
    place.mkdir()
    commanded(place, "evaluate", *CONTROLLED, *FOLDED, "report=false", "hydra.run.dir=run")
    commanded(place, "report", "run", "into=page.html")
    return place / "page.html"


def opened(browser: Any, path: Path, link: str = "") -> Any:
    browser.goto(f"{path.as_uri()}{link}")
    browser.wait_for_selector("#list a")
    return browser


def test_a_reader_goes_through_the_questions_by_keyboard(browser: Any, page_of_run: Path) -> None:
    opened(browser, page_of_run)
    listed = browser.eval_on_selector_all("#list a", "all => all.map(one => one.dataset.question)")
    assert len(listed) == 102
    for key, place in (("j", 0), ("j", 1), ("j", 2), ("k", 1)):
        browser.keyboard.press(key)
        browser.wait_for_selector(f'#list a[data-question="{listed[place]}"][aria-current]')
        until(browser, "id => openedData?.id === id", listed[place])
    assert browser.url.endswith(f"#q={listed[1]}")
    browser.keyboard.press("Enter")
    assert browser.evaluate("document.activeElement.id") == "question"
    browser.keyboard.press("Escape")
    assert browser.evaluate("document.activeElement.id") == "list"
    browser.keyboard.press("ArrowDown")
    until(browser, "id => openedData?.id === id", listed[2])
    browser.keyboard.press("?")
    assert browser.is_visible("#help")
    browser.keyboard.press("Escape")
    assert not browser.is_visible("#help")
    browser.keyboard.press("/")
    browser.keyboard.type("kvarnen")
    shown = browser.eval_on_selector_all("#list a .what", "all => all.map(one => one.textContent)")
    assert shown
    assert all("Kvarnen" in text for text in shown)


def test_a_link_opens_a_question_which_is_copied_and_printed(browser: Any, page_of_run: Path) -> None:
    opened(browser, page_of_run, "#q=q026")
    until(browser, "openedData?.id === 'q026'")
    assert browser.inner_text("#question .asked") == "When is the Kvarnen report due?"
    assert browser.locator("#question > .said.gold").count() == 2
    assert browser.locator("#question .sides section").count() == 2
    assert browser.locator("#question .ranked .gold").count() >= 1
    browser.locator("#question .ranked details").first.locator("summary").click()
    browser.wait_for_selector("#question .ranked details[open] .said")
    browser.locator("#question .steps").first.wait_for(state="attached")
    stages = browser.locator("#question .steps").first.locator("th").all_text_contents()
    assert stages[0] == "source"
    assert "fusion" in stages
    parts = browser.eval_on_selector_all("#question .bar span", "all => all.map(one => parseFloat(one.style.width))")
    assert parts
    assert sum(parts) == pytest.approx(100, abs=0.1)

    browser.evaluate("window.copied = ''; navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    browser.click("#copy")
    until(browser, "window.copied !== ''")
    text = browser.evaluate("window.copied")  # for a bug report
    assert text.startswith("Question q026 (update): When is the Kvarnen report due?")
    assert all(part in text for part in ("- dataset: sample", "- configuration: ", " evidence"))

    browser.emulate_media(media="print")
    assert all(browser.is_visible(one) for one in ("#quality table", "#question .asked"))
    assert not any(browser.is_visible(one) for one in ("#list", "#filters", "header", ".actions"))


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.full), 400])
def test_a_link_brings_its_question_into_view_and_focus_and_so_does_a_reload(
    browser: Any, page_of_run: Path, width: int
) -> None:
    browser.set_viewport_size({"width": width, "height": 900})
    opened(browser, page_of_run, "#q=q026")
    for _ in range(2):
        until(browser, "document.activeElement.id === 'question'")
        top = browser.evaluate("document.querySelector('#question .asked').getBoundingClientRect().top")
        assert browser.evaluate("document.querySelector('header').getBoundingClientRect().bottom") <= top < 450
        browser.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
        browser.reload()
    browser.locator("#list a").nth(7).click()
    until(
        browser,
        "openedData?.id === shown[7][0][0] && document.querySelector('#question').getBoundingClientRect().top < 450",
    )


def test_every_section_is_named_where_it_can_be_seen(browser: Any, page_of_run: Path) -> None:
    browser.set_viewport_size({"width": 1300, "height": 900})
    opened(browser, page_of_run)
    last = browser.get_by_role("link", name="Questions, one by one")
    assert last.evaluate("one => one.getBoundingClientRect().right <= innerWidth")
    last.click()
    until(browser, "document.querySelector('#explorer').getBoundingClientRect().top < 200")
    header = browser.evaluate("document.querySelector('header').getBoundingClientRect().bottom")
    assert browser.evaluate("document.querySelector('#explorer-title').getBoundingClientRect().top") >= header


def test_questions_are_sorted_by_what_got_worse_and_filtered(browser: Any, page_of_run: Path) -> None:
    opened(browser, page_of_run)
    changed = browser.evaluate("shown.map(([, by]) => by).filter(by => by !== null)")
    assert changed == sorted(changed)
    assert changed[0] < 0
    browser.select_option("#change", "worse")
    assert browser.locator("#list a").count() == sum(by < 0 for by in changed)
    browser.select_option("#change", "all")
    browser.select_option("#category", "tool")
    assert browser.locator("#list a").count() == browser.evaluate("index.questions.filter(q => q[1] === 'tool').length")


def test_a_summary_unfolds_down_to_what_was_said(browser: Any, page_of_run: Path) -> None:
    opened(browser, page_of_run, "#c=0")
    browser.wait_for_selector("#folded .tree")
    assert browser.locator("#folded .dag .depth0").count() > 5
    outer = browser.locator("#folded > .tree > li > details").first
    outer.locator("> summary").click()
    outer.locator("> .tree > li > details > summary").first.wait_for()
    inner = outer.locator("> .tree > li > details").first
    while inner.count():
        inner.locator("> summary").click()
        inner.locator("> .said, > .tree").first.wait_for()
        if inner.locator("> .said > .who").count():
            break
        inner = inner.locator("> .tree > li > details").first
    assert inner.locator("> .said > .text").first.inner_text()


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_page_is_accessible(browser: Any, page_of_run: Path, width: int, scheme: str) -> None:
    browser.emulate_media(color_scheme=scheme)
    browser.set_viewport_size({"width": width, "height": 900})
    opened(browser, page_of_run, "#q=q026")
    until(browser, "openedData?.id === 'q026'")
    browser.evaluate("openConversation(0)")
    browser.wait_for_selector("#folded .tree")
    assert violations(browser) == []
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shown = browser.locator("figure svg").evaluate_all("all => all.filter((one) => one.getClientRects().length)")
    assert len(shown) == browser.locator("figure").count()
    points = "all => all.map((one) => one.getBoundingClientRect()).filter((one) => one.width).map((one) => one.right)"
    assert all(right <= width for right in browser.locator("figure svg circle, figure svg text").evaluate_all(points))
    if width == 400:
        first = browser.locator("#quality tbody th").first
        before = first.evaluate("one => one.getBoundingClientRect().left")
        browser.locator("#quality .wide:has(table)").evaluate("one => { one.scrollLeft = 300; }")
        assert first.evaluate("one => one.getBoundingClientRect().left") == before


def hostile_page(place: Path) -> Path:
    """Everything that a page shows, in words that would run, break out, or hide what stands behind them."""
    words = HOSTILE[0] + HOSTILE[3]
    talk = transcript(HOSTILE)
    data = tiny([talk], queries([words]), [("q0", "talk:0")])
    made = parse_instant("2026-01-01T00:00:00Z")
    ids = [message.message_id for message in talk.messages]
    first = Summary("s<b>", talk.conversation_id, "leaf", 0, words, 5, made, source_ids=tuple(ids[:2]))
    second = Summary("t<b>", talk.conversation_id, "condensed", 1, words, 5, made, source_ids=("s<b>",))
    items = (
        ContextItem("summary", "t<b>", words, 5),
        ContextItem("message", ids[0], words, 5),
        ContextItem("document", words, words, 5, source_message_ids=(ids[1],)),
    )
    context = Context(items, 15, 20, evicted=1)
    folded = FoldedConversation(
        talk.conversation_id, talk.workspace_id, (first, second), (("summary", "t<b>", 5), ("message", ids[3], 5))
    )
    ladder = MessageLadder(ids[0], words, (Rung(words, 1, 0.5, words, words),))
    insight = Insight(
        pl.DataFrame({"query_id": ["q0"], "category": [words], "message_id": [ids[0]], "place": [words]}),
        {"q0": [ladder]},
        {"q0": [ShownContext(talk.conversation_id, context, ("verbatim",))]},
        {(talk.workspace_id, talk.conversation_id): folded},
    )
    ranking = pl.DataFrame(
        {
            "query_id": ["q0"] * 4,
            "workspace_id": [talk.workspace_id] * 4,
            "document_id": list(HOSTILE),
            "rank": [1, 2, 3, 4],
            "score": [0.5] * 4,
            "source_message_ids": [[one] for one in ids],
            "twin_message_ids": [[]] * 4,
            "tokens": [3] * 4,
        },
        schema_overrides={"twin_message_ids": pl.List(pl.String())},
    )
    values = pl.DataFrame({"query_id": ["q0"], "measure": ["recall@10"], "value": [0.5]})
    column = ShownRanking(words, values, ranking, {"recall@10": "higher"}, insight)
    question = pl.DataFrame(
        {
            "query_id": ["q0"], "workspace_id": [talk.workspace_id], "conversation_id": [None], "category": [words],
            "text": [words], "asked_at": [None], "evidence": [[ids[0]]],
        }
    )  # fmt: skip
    parts = [
        Table(titled(words, ("n",)), [(Cell(words), words)], words),
        Facts([(words, words)]),
        Notes([words]),
        Source(words, words),
    ]
    page = ReportPage("run", words, [words], [Section("a", f"section {words}", parts)], words)
    Explorer(question, [column, column], {"dataset": words}, [words]).pack(page.blocks, Texts(data, 1_000_000))
    write_page(place / "hostile.html", page)
    return place / "hostile.html"


def test_hostile_words_are_shown_and_do_nothing(browser: Any, tmp_path: Path) -> None:
    opened(browser, hostile_page(tmp_path), "#q=q0")
    until(browser, "openedData?.id === 'q0'")
    browser.evaluate("openConversation(0)")
    browser.wait_for_selector("#folded .tree")
    for _ in range(3):
        browser.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        browser.wait_for_timeout(150)
    assert browser.title() != "taken"
    assert browser.locator("main img, main iframe, main a[href^='javascript'], svg[onload], main script").count() == 0
    assert browser.evaluate("document.querySelectorAll('script:not([type])').length") == 1
    text = browser.evaluate("document.querySelector('main').textContent")
    assert "[U+202E]abc[U+2028]" in text
    assert "\u202e" not in text
    assert "</script><script>document.title='taken'</script>" in text
    assert "{{ 7*7 }} ${7*7}" in text
    assert violations(browser) == []
