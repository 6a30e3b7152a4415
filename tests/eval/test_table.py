"""A table says the same to everybody, and a terminal never breaks a number nor a word that can be folded."""

import html
import re
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from eval.table import INTERVALS, Cell, Column, Table, counted, folded, means_table, paired_cells, plain_markdown, shown

WORD = st.text("abcdefghij", min_size=1, max_size=10)
LABEL = st.lists(st.lists(WORD, min_size=1, max_size=3).map(".".join), min_size=1, max_size=6).map(" ".join)
NUMBER = st.none() | st.integers(0, 10**7) | st.floats(-1e4, 1e4)
PAIR = st.tuples(NUMBER, NUMBER).filter(lambda pair: None not in pair)
CELLS = {
    "label": LABEL, "words": LABEL, "number": NUMBER, "value": NUMBER, "change": NUMBER, "interval": PAIR,
    "p": st.none() | st.floats(0, 1), "share": st.none() | st.floats(0, 1), "mean": NUMBER,
    "verdict": st.sampled_from(("better", "worse", "cannot tell")),
}  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> Table:
    kinds = ["label", *draw(st.lists(st.sampled_from(sorted(CELLS)), max_size=7))]
    columns = [Column(f"{kind} {number}", kind) for number, kind in enumerate(kinds)]  # type: ignore[arg-type]
    rows = draw(st.lists(st.tuples(*(CELLS[kind] for kind in kinds)), min_size=1, max_size=4))
    return Table(columns, rows)


def printed(table: Table, width: int = 80) -> tuple[str, list[str]]:
    """What a terminal shows, and the titles that it lacks."""
    drawn, lacking = table.terminal(width)
    out = Console(file=StringIO(), width=width)
    out.print(drawn, highlight=False)
    return out.file.getvalue(), lacking  # type: ignore[attr-defined]


def cells(text: str) -> list[list[str]]:
    """The rows of lines of a terminal's table, cell by cell."""
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]


@given(tables())
def test_at_80_columns_numbers_are_whole_and_labels_are_folded_by_words(table: Table) -> None:
    text, lacking = printed(table)
    assert max(map(len, text.splitlines())) <= 80
    shown_columns = [i for i, column in enumerate(table.columns) if column.title not in lacking]
    lines = cells(text)
    for at, i in enumerate(shown_columns):
        found = [line[at] for line in lines]
        told = [row[i] for row in table.texts()]
        if table.columns[i].kind in ("label", "words"):
            words = {part for text in told for word in text.split() for part in (word, *re.findall(r"[^.]+\.?", word))}
            pieces = [piece for line in found for piece in line.split()]
            assert all(any(word.startswith(piece) or word.endswith(piece) for word in words) for piece in pieces)
            assert {piece.strip(".") for line in found for piece in re.split(r"[ .]", line)} - {""} <= {
                piece for text in told for piece in re.split(r"[ .]", text)
            }
        else:
            assert [text for text in found if text] == told


@given(tables())
def test_the_four_forms_have_the_same_cells(table: Table) -> None:
    texts = table.texts()
    text, _ = printed(table, 10_000)
    assert cells(text) == texts
    in_markdown = [line[2:-2].split(" | ") for line in table.markdown().splitlines()[2:]]
    assert in_markdown == [[plain_markdown(cell) if i == 0 else cell for i, cell in enumerate(row)] for row in texts]
    in_html = re.findall(r"<t[hd] role=\"(?:rowheader|cell)\"[^>]*>(.*?)</t[hd]>", table.html())
    dashed = [cell.replace("–", "-") for cell in map(html.unescape, in_html)]
    assert dashed == [cell for row in texts for cell in row]
    told = table.json()
    assert told["columns"] == [column.title for column in table.columns]
    again = Table(
        table.columns, [[tuple(one) if isinstance(one, list) else one for one in row] for row in told["rows"]]
    )
    assert again.texts() == texts


@given(LABEL, st.integers(1, 40))
def test_a_text_is_folded_into_lines_that_fit(text: str, width: int) -> None:
    lines = folded(text, width).splitlines()
    assert all(len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("1 fusion.dense_weight=0.9", 24, ["1", "fusion.dense_weight=0.9"]),
        ("fusion.dense_weight=0.9", 20, ["fusion.dense_weight=", "0.9"]),
        ("fusion.dense_weight=0.9", 13, ["fusion.", "dense_weight=", "0.9"]),
        ("fusion.dense_weight=0.9", 8, ["fusion.", "dense_", "weight=", "0.9"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("会議の議事録", 4, ["会議", "の議", "事録"]),
        ("a\nb", 4, ["a", "b"]),
    ],
)
def test_where_a_label_is_folded(text: str, width: int, lines: list[str]) -> None:
    assert folded(text, width).splitlines() == lines


def comparison(side: str) -> Table:
    """One row, as a comparison has them."""
    row = {"difference": -0.077, "low": -0.118, "high": -0.036, "p_holm": 0.0004, "lower_is_better": False}
    columns = (
        Column("measure", "label"), Column("side", "label"), Column("mean", "value"), Column("difference", "change"),
        Column("interval", "interval"), Column("p (Holm)", "p"), Column("verdict", "verdict"),
    )  # fmt: skip
    lacks = (("p (Holm)",), ("p (Holm)", "mean"), ("difference", "interval"))
    return Table(columns, [("recall@2000t", side, 0.5, *paired_cells(row), "worse")], lacks=lacks)


def test_what_a_narrow_terminal_lacks_is_what_the_table_says() -> None:
    text, lacking = printed(comparison("1 lcm fusion.dense_weight=0.9"))
    assert lacking == ["difference", "interval"]
    assert "< .001" in text
    text, lacking = printed(comparison("1 neighbours"))
    assert lacking == ["p (Holm)"]
    assert "[-0.118, -0.036]" in text
    assert not printed(comparison("1 lcm"), 100)[1]


def test_means_lose_columns_then_their_bounds_then_columns() -> None:
    entry = {"value": 0.5, "n": 20.0, "low": 0.4, "high": 0.6}
    names = [f"measure@{n}" for n in range(7)]
    table = means_table("arm", {"system": dict.fromkeys(names, entry)}, names, own="system")
    assert printed(table, 160)[1] == []
    assert printed(table, 120)[1] == names[5:]
    assert printed(table, 100)[1] == [INTERVALS]
    assert printed(table, 60)[1] == [INTERVALS, *names[3:]]


def test_a_mean_has_its_bounds_its_star_and_its_own_n() -> None:
    entry = {"value": 0.5, "n": 20.0, "low": 0.4, "high": 0.6}
    rows = {"a": {"recall": entry, "MRR": entry, "tokens": {**entry, "value": 120.4, "n": 8}}, "b": {"recall": entry}}
    table = means_table("arm", rows, ["recall", "MRR", "tokens"], ["tokens"], stars={"recall": [0]})
    assert table.texts() == [["a", "20", "0.500*", "0.500", "120"], ["b", "20", "0.500", "-", "-"]]
    assert cells(printed(table, 200)[0])[0][2:] == ["0.500* [.400 .600]", "0.500 [.400 .600]", "120 n=8"]
    assert "| a | 20 | **0.500** [.400 .600] | 0.500 [.400 .600] | 120 n=8 |" in table.markdown()
    assert "<small>0.400 – 0.600</small>" in table.html()
    assert table.json()["rows"][0][2] == {"value": 0.5, "low": 0.4, "high": 0.6}


def test_a_cost_is_written_with_fewer_digits() -> None:
    columns = [Column("a", "label"), Column("b", "value"), Column("c", "change"), Column("d", "interval")]
    rows = [("x", Cell(1200.26, is_cost=True), Cell(0.5), Cell((-3.0, 0.25), is_cost=True))]
    assert Table(columns, rows).texts() == [["x", "1,200.3", "+0.500", "[-3.0, +0.250]"]]


def test_a_caption_and_notes_stand_around_it() -> None:
    table = Table([Column("a", "label"), Column("b", "gate")], [("x|y", "regressed")], "all *of* it", ["one _more_"])
    assert table.markdown().splitlines() == [
        r"all \*of\* it", "", "| a | b |", "|---|---|", r"| x\|y | **regressed** |", "", r"- one \_more\_",
    ]  # fmt: skip
    assert "<caption><span>all *of* it</span></caption>" in table.html()
    assert '<td role="cell" data-name="b" class="words worse">regressed</td>' in table.html()
    assert table._repr_html_() == table.html()


def test_words_are_neither_markup_nor_commands() -> None:
    hostile = "<b>[red]x\u202e\x1b[1m</b>"
    table = Table([Column("a", "label")], [(hostile,)], hostile)
    assert "<b>" not in table.html() and "[U+202E]" in table.html()
    text, _ = printed(table)
    assert "[red]x" in text and "\x1b" not in text


def test_a_count_agrees_with_its_noun_and_what_steers_is_shown() -> None:
    assert (counted(1, "run"), counted(1200, "run"), counted(2, "query", "queries")) == (
        "1 run",
        "1,200 runs",
        "2 queries",
    )
    assert shown("a\u202eb\tc") == "a[U+202E]b\tc"
