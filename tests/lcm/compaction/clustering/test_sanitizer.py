import pytest

from lcm.compaction.clustering.sanitizer import Sanitizer

NOTE = "[sanitized opaque payload omitted for continuity]"


@pytest.mark.parametrize("run", ["Z" * 96, "0123456789abcdef" * 4])  # too short to be base64
@pytest.mark.parametrize("letter", ["é", "茶", "ß"])
def test_a_letter_beyond_ascii_does_not_hide_an_opaque_run(letter: str, run: str) -> None:
    """Words end at ASCII's letters: an "é" is none, so a run may begin or end beside it."""
    words = "and more words of the line around it, so that it is long"
    assert Sanitizer().sanitize(f"{letter}{run} {words}") == NOTE
    assert Sanitizer().sanitize(f"{words} {run}{letter}") == NOTE


def test_a_run_needs_its_length_and_its_line_another() -> None:
    words = " and more words of the line around it, so that it is long"
    assert Sanitizer().sanitize("Z" * 80 + words) == NOTE
    assert Sanitizer().sanitize("Z" * 79 + words) == "Z" * 79 + words
    assert Sanitizer().sanitize("Z" * 95) == "Z" * 95


def test_the_lines_of_a_short_block_are_judged_like_all_others() -> None:
    payload = "data:" + "A" * 60
    noted = "[sanitized transport payload omitted for continuity]"
    assert Sanitizer().sanitize(f"```\n{payload}\nx\n\n\ny\n```\nend") == f"```\n{noted}\nx\n\ny\n```\nend"
    assert Sanitizer().sanitize(f"begin\n```\nx\n{payload}") == f"begin\n```\nx\n{noted}"
