"""What fires in a text, by either set of patterns, and what the nearest documents say."""

import math
import re
from typing import get_args

import pytest

from lcm.records.rules import Rules
from lcm.writing.admission.gating import Familiarity, Patterns, evidence, load_patterns
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "gating.md").read_text()
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in PAGE.partition("<!-- sentences -->")[2].partition("<!-- end -->")[0].splitlines()[3:]
    if line.startswith("|")
]
"""Sentence, what fires in the original set, what fires in the corrected one."""

BOUNDS = {"turn_cosine": 0.8, "turn_saturation": 5, "memory_cosine": 0.85, "memory_saturation": 3}


@pytest.fixture(params=get_args(Rules))
def patterns(request: pytest.FixtureRequest) -> Patterns:
    return load_patterns(request.param)


def fired(name: Rules, text: str) -> set[str]:
    return set(load_patterns(name).matches(text))


def test_the_page_says_what_fires_and_shows_every_pattern() -> None:
    found = []
    for sentence, _, _ in ROWS:
        quoted = re.fullmatch("`([^`]*)`", sentence)  # a sentence with code of its own stands as it is
        text = quoted[1] if quoted else sentence
        fires = (", ".join(load_patterns(name).matches(text)) for name in ("original", "corrected"))
        found.append((sentence, *fires))
    assert found == ROWS
    shown = {name for _, original, corrected in ROWS for name in f"{original}, {corrected}".split(", ")}
    assert set(load_patterns("corrected").compiled) <= shown


@pytest.mark.parametrize(
    ("text", "pattern", "sets"),
    [
        ("$20 is too much", "shell_command", {"original"}),
        ("java.lang.NullPointerException: no", "stack_trace", {"corrected"}),
        ("set the environment variable PATH", "configuration", {"corrected"}),
        ("ERR_CONNECTION_REFUSED", "error_code", {"original", "corrected"}),
        ("it returned HTTP 503", "error_code", {"original", "corrected"}),
        ("a status code 404", "error_code", {"original", "corrected"}),
        ("see ../shared/config", "file_path", {"original", "corrected"}),
        ("in /etc/hosts", "file_path", {"original", "corrected"}),
        ("$ make install", "shell_command", {"original", "corrected"}),
        ("run `make lint`", "shell_command", {"original", "corrected"}),
        ("call NewCache() first", "function_definition", {"original", "corrected"}),
        ("at commit 3f9c1e7", "git_ref", {"original", "corrected"}),
    ],
)
def test_what_the_page_does_not_show_fires_in_these_sets(text: str, pattern: str, sets: set[Rules]) -> None:
    assert {name for name in get_args(Rules) if pattern in fired(name, text)} == sets


def test_nothing_fires_in_an_empty_text(patterns: Patterns) -> None:
    assert patterns.matches("") == {}
    assert patterns.loads({}, 0) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("part", ["a", "aB3", "\n", " ", "a.", "a/", "/", "a(", "1/", "at a", "class ", "`"])
def test_a_long_text_of_one_part_is_read_through(patterns: Patterns, part: str) -> None:
    """A pattern that took quadratic time would take minutes here."""
    text = part * 30_000
    assert all(value >= 0 for value in patterns.loads(patterns.matches(text), 7_500))
    assert patterns.loads(patterns.matches(f"{text} It is fixed."), 7_500).actionability == 0.4


def test_letters_of_other_alphabets_bound_words() -> None:
    """As in Go, whose `\\b` knows ASCII alone."""
    assert fired("original", "é5é") == {"quantity"}
    assert fired("original", "٣") == set()


def test_an_unknown_set_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^rules must be one of: corrected, original, got 'best'$"):
        load_patterns("best")  # type: ignore[arg-type]


def test_every_weight_names_a_pattern_and_the_sets_differ_in_patterns_alone() -> None:
    one, other = (load_patterns(name) for name in get_args(Rules))
    weighed = {name for weights in one.weights.values() for name in weights}
    assert weighed == set(one.compiled) == set(other.compiled)
    assert one.weights == other.weights


def test_a_cosine_that_is_no_number_or_above_one_does_no_harm() -> None:
    assert evidence([math.nan], [math.nan, 1.0000001], **BOUNDS) == Familiarity(h=1 - 1 / 2, f=0, s=1 / 3)
