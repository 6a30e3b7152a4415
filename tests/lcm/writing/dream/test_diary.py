"""A dream diary: which bullets are entries, and which of them are kept."""

from dataclasses import replace

from lcm.writing.dream.diary import DiaryEntry, diary_entries

NUMBERS = "{score=0.8 recall=3 unique=2}"
ENTRY = DiaryEntry("sixteen bytes ok", score=0.6, recall_count=2, unique_queries=2)
NO_ENTRIES = (f"1. a {NUMBERS}", f"-a {NUMBERS}", f"- a {NUMBERS} b", "- a {}", f"- {NUMBERS}")


def texts(diary: str) -> list[str]:
    return [entry.text for entry in diary_entries(diary)]


def test_an_entry_has_its_numbers_its_section_and_its_line() -> None:
    diary = f"# 2026\n\n## Deep   Sleep\n\n- I counted goats {NUMBERS}\n"
    assert diary_entries(diary) == [DiaryEntry("I counted goats", 0.8, 3, 2, "deep sleep", 5)]


def test_a_heading_of_dreams_opens_a_section_and_a_title_closes_none() -> None:
    assert texts(f"## Last deep sleep\n# 2026\n- a {NUMBERS}\n## Misc\n- b {NUMBERS}\n") == ["a"]


def test_a_bullet_with_numbers_is_an_entry_and_nothing_else_is() -> None:
    bullets = ("- a", "* a", "+ a", "  - a")
    assert [texts(f"## Dreams\r\n{bullet} {NUMBERS}  \r\n") for bullet in bullets] == [["a"]] * len(bullets)
    assert [line for line in NO_ENTRIES if texts(f"## Dreams\n{line}\n")] == []


def test_what_stands_between_fences_is_skipped() -> None:
    assert texts(f"## Dreams\n```\n- a {NUMBERS}\n## Misc\n```\n- b {NUMBERS}\n~~~ md\n- c {NUMBERS}\n") == ["b"]


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
