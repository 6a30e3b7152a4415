"""The sections of a page that tell of conversations."""

from collections import Counter
from pathlib import Path

from eval.measures.resume import Resume
from eval.measures.survival import Survival
from eval.report.conversations import conversation_headline, conversation_sections, of_conversations
from eval.report.parts import Figure, Table
from tests.eval.measures.test_survival import LINES, dataset, folding
from tests.support.workspaces import transcript


def test_a_run_without_questions_is_told_by_what_survives(tmp_path: Path) -> None:
    survival = Survival((20, 500, 9000), 2)
    talks = dataset(transcript(LINES), transcript(LINES[:4], "other"))
    rows = survival.of_system(folding(), talks, incidents=Counter())
    rows.write_parquet(tmp_path / "survival.parquet")
    summary = {"measures": {}, "survival": survival.section(rows), "compression": {"ratio": 2.0}}
    assert list(of_conversations(summary)) == ["survival"]
    (line,) = conversation_headline(summary)
    own = summary["survival"]["system@500"]["retained"]["value"]  # type: ignore[index]
    assert line.startswith(f"Retained under 500 tokens is {own:.3f} (")
    assert "over 2 conversations; beside it: last_n " in line
    (section,) = conversation_sections(tmp_path, summary)
    kinds = [type(part) for part in section.parts]
    assert kinds == [Figure, Table, Table, Table]
    means, cycles, of_kinds = (part for part in section.parts if isinstance(part, Table))
    assert means.headings[:2] == ("arm@budget", "retained")
    assert cycles.headings == ("arm", "1", "2")
    assert {str(row[0]) for row in of_kinds.rows} >= {"number", "rule", "url"}


def test_where_nothing_was_mentioned_again_there_is_no_section(tmp_path: Path) -> None:
    resume = Resume((100,), 2)
    rows = resume.of_system(folding(), dataset(transcript(("Hello there.",))), incidents=Counter())
    summary = {"measures": {}, "resume": resume.section(rows)}
    assert conversation_sections(tmp_path, summary) == []
    assert conversation_headline(summary) == []
