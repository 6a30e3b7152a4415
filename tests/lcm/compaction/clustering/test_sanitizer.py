"""Opaque payloads where golden vectors of the original say nothing."""

from lcm.compaction.clustering import Sanitizer

NOTE = "[sanitized opaque payload omitted for continuity]"
WORDS = "and more words of the line around it, so that it is long"


def test_a_letter_beyond_ascii_does_not_hide_an_opaque_run() -> None:
    """Words end at ASCII's letters: an "é" is none, so a run may begin or end beside it."""
    for letter in ("é", "茶", "ß"):
        for run in ("Z" * 96, "0123456789abcdef" * 4):  # the latter too short to be base64
            assert Sanitizer().sanitize(f"{letter}{run} {WORDS}") == NOTE
            assert Sanitizer().sanitize(f"{WORDS} {run}{letter}") == NOTE


def test_a_run_needs_its_length_and_its_line_another() -> None:
    assert Sanitizer().sanitize(f"{'Z' * 80} {WORDS}") == NOTE
    for short in (f"{'Z' * 79} {WORDS}", "Z" * 95):
        assert Sanitizer().sanitize(short) == short
