"""The sections of a page that tell of conversations."""

from pathlib import Path
from typing import Any

import polars as pl

from eval.measures.means import Means
from eval.measures.measure import SystemReading
from eval.measures.sessions import Resume, Survival
from eval.report.page import Figure
from eval.report.run_page import conversation_headline, conversation_sections, of_conversations
from eval.run import Run
from eval.table import Table
from tests.eval.measures.test_survival import LINES, dataset, folding, values
from tests.support.workspaces import transcript


def survived(folder: Path, measure: Survival) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Rows and summary of two conversations, of eight turns and of two."""
    talks = dataset(transcript(LINES), transcript(LINES[:4], "other"))
    rows = measure.rows(SystemReading(folding(), talks))
    rows.write_parquet(folder / "survival.parquet")
    return rows, {"measures": {}, "survival": measure.section(rows, Means()), "compression": {"ratio": 2.0}}


def test_a_run_without_questions_is_told_by_what_survives(tmp_path: Path) -> None:
    rows, summary = survived(tmp_path, Survival((20, 500, 9000), 2))
    assert list(of_conversations(summary)) == ["survival"]
    (line,) = conversation_headline(summary)
    own = summary["survival"]["system@500"]["retained"]["value"]
    assert line.startswith(f"Retained under 500 tokens is {own:.3f} (")
    assert "over 2 conversations; beside it: last_n " in line
    (section,) = conversation_sections(Run(tmp_path, summary=summary))
    assert [type(part) for part in section.parts] == [Figure, Table, Table, Table, Table]
    means, cycles, by_conversation, of_kinds = (part for part in section.parts if isinstance(part, Table))
    assert [column.title for column in means.columns[:3]] == ["arm@budget", "n", "retained"]
    assert [column.title for column in cycles.columns] == ["arm", "1", "2"]
    assert cycles.caption.endswith(", of 2 conversations")
    both = values(rows, arm="system", budget=500, cycle=2, kind="all", conversation_id="talk")
    other = values(rows, arm="system", budget=500, cycle=2, kind="all", conversation_id="other")
    facts = both["facts"] + other["facts"]
    told = {row[0]: row[1:3] for row in by_conversation.texts()}
    assert next(iter(told)) == "all facts together"
    weighted = (both["retained"] * both["facts"] + other["retained"] * other["facts"]) / facts
    assert told["all facts together"] == [f"{facts:.0f}", f"{weighted:.3f}"]
    assert told["other"] == [f"{other['facts']:.0f}", f"{other['retained']:.3f}"]
    assert {str(row[0]) for row in of_kinds.rows} >= {"number", "rule", "url"}


def test_how_many_conversations_a_column_averages_is_told(tmp_path: Path) -> None:
    """One of two turns has no third compaction."""
    _, summary = survived(tmp_path, Survival((500,), 3))
    (section,) = conversation_sections(Run(tmp_path, summary=summary))
    (cycles,) = (part for part in section.parts if isinstance(part, Table) and part.columns[-1].title == "3")
    assert "each column averages others" in cycles.caption
    assert cycles.texts()[-1] == ["conversations", "2", "2", "1"]


def test_where_nothing_was_mentioned_again_there_is_no_section(tmp_path: Path) -> None:
    resume = Resume((100,), 2)
    rows = resume.rows(SystemReading(folding(), dataset(transcript(("Hello there.",)))))
    summary = {"measures": {}, "resume": resume.section(rows, Means())}
    assert conversation_sections(Run(tmp_path, summary=summary)) == []
    assert conversation_headline(summary) == []
