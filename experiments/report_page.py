"""How large report pages are, and how fast they open in Chromium: `report_page.py [PAGE ...]`.

Without a page one is invented: 2,000 questions over a conversation of 8,000 messages, two rankings, 1,000 summaries. Prints a
row in Markdown for each: megabytes, seconds until the list of questions stands, milliseconds until a question is shown
(median, 95th percentile, of 60), until the list is filtered, until a folded conversation is shown.
"""

import random
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
from playwright.sync_api import Page, sync_playwright

from eval.dataset.dataset import QRELS_SCHEMA, Dataset
from eval.report.explorer import Explorer, Texts
from eval.report.page import ReportPage, write_page
from eval.report.ranking import FoldedConversation, Insight, ShownRanking
from lcm.records.conversation import Message, Transcript
from lcm.records.summary import Summary

QUESTIONS, MESSAGES, SUMMARIES, DEPTH = 2_000, 8_000, 1_000, 40
QUESTION_MS = """async () => {
  const ids = index.questions.map((one) => one[0]), every = Math.max(1, Math.floor(ids.length / 60)), took = [];
  for (let i = 0; i < ids.length; i += every) {
    const begun = performance.now();
    await open(ids[i]);
    document.body.offsetHeight;
    took.push(performance.now() - begun);
  }
  took.sort((a, b) => a - b);
  return [took[Math.floor(took.length / 2)], took[Math.floor(took.length * 0.95)]];
}"""
FILTER_MS = """() => {
  byId("search").value = "the";
  const begun = performance.now();
  filter();
  document.body.offsetHeight;
  return performance.now() - begun;
}"""
FOLDED_MS = """async () => {
  if (!index.folded.length) return null;
  const begun = performance.now();
  await openConversation(0);
  document.body.offsetHeight;
  return performance.now() - begun;
}"""


def main() -> None:
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        paths = [Path(one) for one in sys.argv[1:]] or [invented(Path(place) / "invented.html")]
        executable = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        print("| page | MB | open, s | question, ms (p50, p95) | filter, ms | folded conversation, ms |")
        print("|---|--:|--:|--:|--:|--:|")
        for path in paths:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            print(f"| {path.name} | {path.stat().st_size / 1e6:.1f} | {measured(page, path)} |")
            page.close()
        browser.close()


def measured(page: Page, path: Path) -> str:
    begun = time.perf_counter()
    page.goto(path.resolve().as_uri())
    page.wait_for_selector("#list a")
    opened = time.perf_counter() - begun
    median, late = page.evaluate(QUESTION_MS)
    folded = page.evaluate(FOLDED_MS)
    told = "-" if folded is None else f"{folded:.0f}"
    return f"{opened:.2f} | {median:.0f}, {late:.0f} | {page.evaluate(FILTER_MS):.0f} | {told}"


def invented(path: Path) -> Path:
    draw = random.Random(0)  # no secret
    words = [f"word{n}" for n in range(3_000)]

    def said(n: int) -> str:
        return " ".join(draw.choices(words, k=n))

    begun = datetime(2026, 1, 1, tzinfo=UTC)
    ids = [f"{n:016x}" for n in range(MESSAGES)]
    messages = tuple(Message(one, "user", said(60), "s", begun + timedelta(minutes=n)) for n, one in enumerate(ids))
    talk = Transcript("talk", messages, "w")
    data = Dataset("invented", "as is", "0" * 64, (talk,), (), pl.DataFrame(schema=QRELS_SCHEMA))
    each = MESSAGES // SUMMARIES
    leaves = tuple(
        Summary(f"s{n}", "talk", "leaf", 0, said(120), 200, begun, source_ids=tuple(ids[n * each : (n + 1) * each]))
        for n in range(SUMMARIES)
    )
    entries = tuple(("summary", one.summary_id, 200) for one in leaves)
    folded = {("w", "talk"): FoldedConversation("talk", "w", leaves, entries)}
    asked = [f"q{n}" for n in range(QUESTIONS)]
    evidence = [draw.sample(ids, 2) for _ in asked]
    queries = pl.DataFrame(
        {
            "query_id": asked, "workspace_id": "w", "conversation_id": "talk",
            "category": [draw.choice(("one", "two", "three")) for _ in asked], "text": [said(12) for _ in asked],
            "asked_at": begun, "evidence": evidence,
        }
    )  # fmt: skip
    columns = []
    for name in ("one", "other"):
        found = [(query, one, rank) for query in asked for rank, one in enumerate(draw.sample(ids, DEPTH), 1)]
        ranking = pl.DataFrame(found, schema=["query_id", "document_id", "rank"], orient="row").with_columns(
            pl.lit("w").alias("workspace_id"),
            score=1 / pl.col("rank"),
            source_message_ids=pl.concat_list("document_id"),
            twin_message_ids=pl.lit(None, dtype=pl.List(pl.String())),
            tokens=pl.lit(80),
        )
        values = pl.DataFrame({"query_id": asked, "measure": "recall@10", "value": [draw.random() for _ in asked]})
        columns.append(ShownRanking(name, values, ranking, {}, Insight(pl.DataFrame(), folded=dict(folded))))
    page = ReportPage("run", "invented", ["2,000 questions, 1,000 summaries"], [])
    Explorer(queries, columns, {}, []).pack(page.blocks, Texts(data, 12 << 20))
    write_page(path, page)
    return path


if __name__ == "__main__":
    main()
