"""A dream diary: which bullets are entries, and which of them are kept."""

from dataclasses import replace

import pytest

from lcm.writing.dream.diary import DiaryEntry, diary_entries
from lcm.writing.dream.query import asks_for_dreams

NUMBERS = "{score=0.8 recall=3 unique=2}"
ENTRY = DiaryEntry("sixteen bytes ok", score=0.6, recall_count=2, unique_queries=2)


def texts(diary: str) -> list[str]:
    return [entry.text for entry in diary_entries(diary)]


def test_an_entry_has_its_numbers_its_section_and_its_line() -> None:
    diary = f"# 2026\n\n## Deep   Sleep\n\n- I counted goats {NUMBERS}\n"
    assert diary_entries(diary) == [DiaryEntry("I counted goats", 0.8, 3, 2, "deep sleep", 5)]


@pytest.mark.parametrize("heading", ["## Dreams", "###### Promoted", "### PROMOTION", "## last deep sleep"])
def test_a_heading_of_dreams_opens_a_section(heading: str) -> None:
    assert texts(f"{heading}\n- a {NUMBERS}\n## Misc\n- b {NUMBERS}\n") == ["a"]


@pytest.mark.parametrize("heading", ["# Dreams", "####### Dreams", "##Dreams", "## Light sleep", "Dreams"])
def test_another_heading_does_not(heading: str) -> None:
    assert texts(f"{heading}\n- a {NUMBERS}\n") == []


def test_a_title_closes_no_section() -> None:
    assert texts(f"## Dreams\n# 2026\n- a {NUMBERS}\n") == ["a"]


@pytest.mark.parametrize("bullet", ["- a", "* a", "+ a", "  - a"])
def test_a_bullet_is_an_entry(bullet: str) -> None:
    assert texts(f"## Dreams\r\n{bullet} {NUMBERS}  \r\n") == ["a"]


@pytest.mark.parametrize(
    "line", [f"1. a {NUMBERS}", f"a {NUMBERS}", f"-a {NUMBERS}", f"- a {NUMBERS} b", "- a", "- a {}", f"- {NUMBERS}"]
)
def test_anything_else_is_none(line: str) -> None:
    assert texts(f"## Dreams\n{line}\n") == []


def test_what_stands_between_fences_is_skipped() -> None:
    assert texts(f"## Dreams\n```\n- a {NUMBERS}\n## Misc\n```\n- b {NUMBERS}\n~~~ md\n- c {NUMBERS}\n") == ["b"]


@pytest.mark.parametrize(
    ("block", "numbers"),
    [
        ("{score=.8, recallCount=2.9,uniqueQueries=3x}", (0.8, 2, 3)),
        ("{SCORE=1e-1 Recall=-1 UNIQUE=+4 mood=odd}", (0.1, -1, 4)),
        ("{score=0.7 recall=2}", None),
        ("{score=abc recall=2 unique=2}", None),
        ("{score=nan recall=2 unique=2}", None),
        ("{score 0.7 recall=2 unique=2}", None),
    ],
)
def test_numbers_are_read_as_far_as_they_are_numbers(block: str, numbers: tuple[float, int, int] | None) -> None:
    found = [
        (entry.score, entry.recall_count, entry.unique_queries) for entry in diary_entries(f"## Dreams\n- a {block}")
    ]
    assert found == ([numbers] if numbers else [])


def test_an_entry_is_admitted_at_each_bound_and_not_below() -> None:
    assert ENTRY.is_admitted
    assert replace(ENTRY, text="é" * 8).is_admitted  # 16 bytes
    for below in (
        {"text": "  fifteen bytes.  "},
        {"score": 0.59},
        {"score": float("nan")},
        {"score": float("inf")},
        {"recall_count": 1},
        {"unique_queries": 1},
    ):
        assert not replace(ENTRY, **below).is_admitted  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["a dream", "DREAMS?", "what I dreamed", "dreaming", "day-dream", "my dream's end"])
def test_a_question_that_names_a_dream_asks_for_dreams(text: str) -> None:
    assert asks_for_dreams(text)


@pytest.mark.parametrize("text", ["", "dreamt", "dreamer", "dreamy", "daydreaming", "undreamed", "dream_id"])
def test_another_does_not(text: str) -> None:
    assert not asks_for_dreams(text)
