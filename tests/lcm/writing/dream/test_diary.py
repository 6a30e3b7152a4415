"""A dream diary: which bullets are entries, and which of them are kept."""

from dataclasses import replace

from lcm.writing.dream import DiaryEntry, diary_entries

NUMBERS = "{score=0.8 recall=3 unique=2}"
ENTRY = DiaryEntry("sixteen bytes ok", score=0.6, recall_count=2, unique_queries=2)
NO_ENTRIES = (f"1. a {NUMBERS}", f"-a {NUMBERS}", f"- a {NUMBERS} b", "- a {}", f"- {NUMBERS}")


def texts(diary: str) -> list[str]:
    return [entry.text for entry in diary_entries(diary)]


def test_a_heading_of_dreams_opens_a_section_and_a_title_closes_none() -> None:
    assert texts(f"## Last deep sleep\n# 2026\n- a {NUMBERS}\n## Misc\n- b {NUMBERS}\n") == ["a"]


def test_a_bullet_with_numbers_is_an_entry_and_nothing_else_is() -> None:
    bullets = ("- a", "* a", "+ a", "  - a")
    assert [texts(f"## Dreams\r\n{bullet} {NUMBERS}  \r\n") for bullet in bullets] == [["a"]] * len(bullets)
    assert [line for line in NO_ENTRIES if texts(f"## Dreams\n{line}\n")] == []


def test_an_entry_is_measured_in_bytes_and_its_score_must_be_a_number() -> None:
    assert replace(ENTRY, text="é" * 8).is_admitted  # 16 bytes
    for below in ({"text": "  fifteen bytes.  "}, {"score": float("nan")}, {"score": float("inf")}):
        assert not replace(ENTRY, **below).is_admitted  # type: ignore[arg-type]
