"""A judge at a keyboard, in headless Chromium: documents of the sample, judged as its own judgements say."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ir_measures
import polars as pl
import pytest

from eval.dataset.dataset import Dataset
from eval.dataset.sample import Sample
from lcm.transcript.passages import PASSAGE_KINDS, text_of
from tests.browser.conftest import NEEDS_CHROMIUM
from tests.eval.tiny import tiny
from tests.support.looked_at import Finished, copied

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM, pytest.mark.xdist_group("browser")]
KEYS = {1: "1", 0: "3"}
JUDGED = 16


@contextmanager
def judging(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`lcm judge` as a user starts it, and the address that it prints."""
    command = [sys.executable, "-m", "pipelines.cli", "judge", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        yield process, re.search(r"http://127\.0\.0\.1:\d+/\S+/", line)[0]
    finally:
        process.kill()


class Judge:
    """Sees what stands on the page, and presses keys."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        page.goto(address)
        page.wait_for_selector("#count:not(:empty)")

    def text(self, name: str) -> str:
        return self.page.inner_text(f"#{name}")

    def marked(self) -> str:
        return self.page.text_content(".judged .text")

    def pair(self) -> tuple[str, str]:
        """What is judged, by its ids, which the page does not show."""
        return tuple(self.page.evaluate("[state.task.query_id, state.task.document_id]"))

    def press(self, key: str) -> None:
        """Press a key, and wait until the page counts otherwise."""
        before = self.text("count")
        self.page.keyboard.press(key)
        while self.text("count") == before:
            self.page.wait_for_timeout(10)


def test_documents_are_judged_by_keyboard(browser: Any, compared: Finished, tmp_path: Path) -> None:
    here = copied(compared, tmp_path)
    sample = Sample().load()
    relevant = {(query, message) for query, message, _ in sample.qrels.iter_rows()}
    asked = {query.query_id: query.text for query in sample.queries}
    messages = [message for one in sample.transcripts for message in one.messages]
    words = {message.message_id: text_of(message, PASSAGE_KINDS) for message in messages}
    arguments = ("first", "into=qrels", "queries=2", "arms=system,bm25", "depth=10")
    with judging(here, *arguments) as (process, address):
        judge = Judge(browser, address)
        total = int(judge.text("count").split()[-1])
        assert total >= JUDGED
        for number in range(JUDGED):
            assert judge.text("count") == f"{number} of {total}"
            pair = judge.pair()
            assert (judge.text("query"), judge.marked()) == (asked[pair[0]], words[pair[1]])
            if number == 7:  # a slip, taken back
                judge.press("2")
                judge.press("u")
                assert judge.pair() == pair
            judge.press(KEYS[int(pair in relevant)])
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")
    assert f"{JUDGED} of {total} pooled messages of 2 queries are judged" in out
    qrels = list(ir_measures.read_trec_qrels(str(here / "qrels" / "qrels.trec")))
    assert len(qrels) == JUDGED
    assert all((one.relevance == 2) == ((one.query_id, one.doc_id) in relevant) for one in qrels)


def hostile() -> Dataset:
    """Messages that would run, break out, or hide what stands behind them."""
    from tests.support.workspaces import queries, transcript

    talk = transcript(
        [
            "<img src=x onerror=\"document.title='taken'\">",
            "</p><script>document.title='taken'</script>",
            "\u202eabc <b>",
        ]
    )
    asked = queries(["<script>document.title='taken'</script> & so on?"])
    return tiny([talk], asked, [("q0", "talk:0")])


def test_words_that_would_be_markup_are_shown_as_they_are(browser: Any, tmp_path: Path) -> None:
    import threading

    from eval.judging.judgements import JudgementFile
    from eval.judging.page import JudgingPage
    from eval.judging.session import JudgingSession

    data = hostile()
    pool = pl.DataFrame({"query_id": ["q0"] * 3, "document_id": [f"talk:{i}" for i in range(3)]})
    page = JudgingPage(JudgingSession(pool, data, JudgementFile(tmp_path), "ada", lambda: ""))
    thread = threading.Thread(target=page.serve)
    thread.start()
    judge = Judge(browser, page.address)
    for message in data.transcripts[0].messages:
        assert judge.text("query") == data.queries[0].text
        assert judge.marked() == message.content
        assert browser.title() == "lcm judge"
        assert browser.locator("main img, main script, main b b").count() == 0
        judge.press("s")
    assert judge.text("tally") == "0 relevant, 0 partly relevant, 0 not relevant, 3 skipped"
    browser.keyboard.press("f")
    thread.join(20)
    assert not thread.is_alive()
