"""Several sides against the first: which questions, which measures, in which order, and in what words."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from eval.comparison.comparison import Comparison, compared
from eval.comparison.report import draw, headline, markdown, read_comparison, report, table, write_comparison
from eval.report.comparison_page import comparison_page
from eval.report.page import rendered
from eval.run import Run
from lcm.errors import LcmError
from tests.support.run_folders import side

LOW, MIDDLE, HIGH = ([1.0] * ones + [0.0] * (40 - ones) for ones in (10, 20, 35))
CHEAP, DEAR = [100.0] * 40, [150.0] * 40
SIDE = {"name", "folder", "is_baseline", "asked", "config_hash", "measures", "latency_ms"}
ROW = {"side", "measure", "n", "baseline", "candidate", "difference", "low", "high", "p", "p_holm", "verdict"}
"""Keys of `compare.json`, as docs/compare.md names them."""


def three(folder: Path, **more: Any) -> list[Run]:
    return [
        side(folder / "base", {"recall@10": MIDDLE, "tokens@10": CHEAP}, **more),
        side(folder / "rich", {"recall@10": HIGH, "tokens@10": DEAR}, **more),
        side(folder / "poor", {"recall@10": LOW, "tokens@10": CHEAP}, **more),
    ]


@pytest.fixture
def found(tmp_path: Path) -> Comparison:
    return compared(three(tmp_path))


def test_sides_stand_best_first_with_a_word_for_each_measure(found: Comparison) -> None:
    assert (found.by, found.queries, found.judged) == ("recall@10", 40, 40)
    standing = [(one.side.name, one.is_baseline) for one in found.standings]
    assert standing == [("rich", False), ("base", True), ("poor", False)]
    assert [(row[0], row[1], row[2], row[3], row[-1]) for row in table(found).texts()] == [
        ("recall@10", "1 rich", "0.875", "+0.375", "better"),
        ("recall@10", "2 base", "0.500", "", "baseline"),
        ("recall@10", "3 poor", "0.250", "-0.250", "worse"),
        ("tokens@10", "1 rich", "150.0", "+50.0", "worse"),
        ("tokens@10", "2 base", "100.0", "", "baseline"),
        ("tokens@10", "3 poor", "100.0", "0.0", "same"),
    ]
    assert headline(found) == ["1 rich: better by recall@10; worse by tokens@10", "3 poor: worse by recall@10"]


def test_of_a_cost_the_least_is_best(tmp_path: Path) -> None:
    by_cost = compared(three(tmp_path), by="tokens@10")
    assert [one.side.name for one in by_cost.standings] == ["base", "poor", "rich"]
    assert by_cost.measures == ("tokens@10", "recall@10")


def test_only_questions_that_all_were_asked_are_compared(tmp_path: Path) -> None:
    """The second was asked the first 30; over these the baseline has 20 of 30."""
    base = side(tmp_path / "base", {"recall@10": MIDDLE})
    found = compared([base, side(tmp_path / "fewer", {"recall@10": [1.0] * 30})])
    assert found.queries == 30
    assert found.baseline.means["recall@10"]["value"] == 20 / 30
    assert "compared over the 30 questions that all were asked, of: base 40, fewer 30" in found.notes
    told = "no question was put to all of them: base asks 40 of toy; other asks 40 of toy; evaluate all over the same"
    with pytest.raises(LcmError, match=f"^{re.escape(told)}"):
        compared([base, side(tmp_path / "other", {"recall@10": MIDDLE}, text="Who?")])


def test_other_data_around_the_same_questions_is_told_and_other_definitions_are_refused(tmp_path: Path) -> None:
    base = side(tmp_path / "base", {"recall@10": MIDDLE})
    dataset = {"name": "toy", "protocol": "as is", "digest": "b" * 64}
    larger = side(tmp_path / "larger", {"recall@10": LOW}, dataset=dataset)
    assert f"different dataset digest: base {'a' * 12}, larger {'b' * 12}" in compared([base, larger]).notes
    newer = side(tmp_path / "newer", {"recall@10": LOW}, definitions="2")
    with pytest.raises(LcmError, match=r"^different measure definitions: base '1', newer '2'; evaluate both alike$"):
        compared([base, newer])


def test_measures_are_those_that_all_have_and_some_may_be_chosen(tmp_path: Path) -> None:
    base = side(tmp_path / "base", {"MRR": LOW, "recall@10": LOW, "retained@500": LOW, "retained@900": LOW})
    other = side(tmp_path / "other", {"recall@10": HIGH, "retained@500": LOW, "retained@900": HIGH, "MRR": HIGH})
    found = compared([base, other])
    assert found.measures == ("recall@10",)
    assert "all are equal by retained@500" in found.notes
    assert compared([base, other], measures=["retained@900", "MRR"]).measures == ("retained@900", "MRR")
    assert compared([base, other], by="MRR").measures == ("MRR", "recall@10")
    with pytest.raises(LcmError, match=r"^MAP is not known of all of them: choose from: MRR, recall@10, "):
        compared([base, other], by="MAP")
    less = side(tmp_path / "less", {"recall@10": LOW})
    with pytest.raises(LcmError, match=r"MRR is not known of all of them: choose from: recall@10; without it: less"):
        compared([base, less], measures=["MRR"])
    sessions = [side(tmp_path / name, {"session.recall@10": values}) for name, values in (("a", LOW), ("b", HIGH))]
    assert compared(sessions).by == "session.recall@10", "where only sessions are judged"


def test_the_folder_holds_it_for_everybody_and_gives_back_what_was_written(tmp_path: Path, found: Comparison) -> None:
    told = report(found)
    assert told.keys() == {
        *("kind", "dataset", "baseline", "by", "queries", "judged", "alpha", "confidence", "sides", "rows", "notes")
    }
    assert all(one.keys() >= SIDE for one in told["sides"]) and all(row.keys() >= ROW for row in told["rows"])
    assert {row["side"] for row in told["rows"]} == {"rich", "poor"}
    assert [one["name"] for one in told["sides"]] == ["rich", "base", "poor"]
    write_comparison(tmp_path / "out", found)
    files = {"compare.md", "compare.json", "compare.parquet", "compare.png", "summary.json"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == files
    assert "![recall@10 against cost](compare.png)" in (tmp_path / "out" / "compare.md").read_text()
    assert (tmp_path / "out" / "compare.png").read_bytes().startswith(b"\x89PNG")
    read = read_comparison(tmp_path / "out")
    assert (report(read), headline(read), table(read).texts()) == (told, headline(found), table(found).texts())


def test_latency_is_told_and_not_tested_and_a_picture_needs_a_cost(tmp_path: Path) -> None:
    timing = {"timing": {"latency_ms": {"total": {"p50_ms": 3.25, "p95_ms": 9.0}}, "seconds": {"total": 1.0}}}
    found = compared(three(tmp_path, **timing))
    assert ["ms, median", "1 rich", "3.2", "", "", "", "not tested"] in table(found).texts()
    assert report(found)["sides"][0]["latency_ms"] == {"p50_ms": 3.25, "p95_ms": 9.0}
    assert draw(found, tmp_path / "both.png")
    without = compared([side(tmp_path / name, {"recall@10": LOW}) for name in ("a", "b")])
    assert not draw(without, tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


HOSTILE = "<script>alert(1)</script> | `x` [a](javascript:alert(2)) $\\frac{1}{0}$ \"' {{ 7 * 7 }}\n# head"


def test_names_from_outside_do_nothing_anywhere(tmp_path: Path) -> None:
    found = compared([one.having(f"{one.name} {HOSTILE}") for one in three(tmp_path)])
    assert draw(found, tmp_path / "hostile.png")
    text = rendered(comparison_page(found, (), found.baseline.side.queries))
    tags = _Tags()
    tags.feed(text)
    assert tags.scripts == 1  # the page's own, which its policy names by its digest
    assert all(source.startswith("#") for source in tags.sources if source)
    assert "default-src &#39;none&#39;;" in text
    assert "{{ 7 * 7 }}" in text
    shown = MarkdownIt("gfm-like", {"linkify": False, "html": True}).render(markdown(found, "compare.png"))
    assert not [tag for tag in ("<script", "<a ", "<h1") if tag in shown]
    assert shown.count("<tr>") == 1 + len(table(found).rows)


class _Tags(HTMLParser):
    """The scripts of a page, and what it loads."""

    scripts = 0
    sources: tuple[str | None, ...] = ()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.sources += tuple(value for name, value in attrs if name in ("src", "href"))


def test_too_few_workspaces_can_tell_nothing_and_it_is_said(tmp_path: Path) -> None:
    names = [f"w{i // 8}" for i in range(40)]
    sides = three(tmp_path, workspaces=names)
    alone, drawn = compared(sides), compared(sides, cluster="workspace")
    assert {row["verdict"] for row in drawn.rows.iter_rows(named=True)} <= {"cannot tell", "same"}
    assert [note for note in drawn.notes if note.startswith("5 workspaces (cluster=workspace) can tell nothing")]
    assert not [note for note in alone.notes if "can tell nothing" in note]
    wide, narrow = (one.baseline.means["recall@10"] for one in (drawn, alone))
    assert wide["value"] == narrow["value"]
    assert wide["high"] - wide["low"] > narrow["high"] - narrow["low"]  # type: ignore[operator]
