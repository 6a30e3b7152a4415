"""What fires in a text, by either set of patterns, and what the nearest documents say."""

import math
import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.records.rules import Rules
from lcm.writing.admission.gating_signals import Familiarity, Patterns, evidence, load_patterns
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "gating.md").read_text()
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in PAGE.partition("<!-- sentences -->")[2].partition("<!-- end -->")[0].splitlines()[3:]
    if line.startswith("|")
]
"""Sentence, what fires in the original set, what fires in the corrected one."""

BOUNDS = {"turn_cosine": 0.8, "turn_saturation": 5, "memory_cosine": 0.85, "memory_saturation": 3}
SCORES = st.lists(st.floats(-1, 1), max_size=10)


@pytest.fixture(params=get_args(Rules))
def patterns(request: pytest.FixtureRequest) -> Patterns:
    return load_patterns(request.param)


def fired(name: Rules, text: str) -> set[str]:
    return set(load_patterns(name).matches(text))


def test_the_page_says_what_fires() -> None:
    found = []
    for sentence, _, _ in ROWS:
        quoted = re.fullmatch("`([^`]*)`", sentence)  # a sentence with code of its own stands as it is
        text = quoted[1] if quoted else sentence
        fires = (", ".join(load_patterns(name).matches(text)) for name in ("original", "corrected"))
        found.append((sentence, *fires))
    assert found == ROWS


def test_the_page_shows_every_pattern() -> None:
    shown = {name for _, original, corrected in ROWS for name in f"{original}, {corrected}".split(", ")}
    assert set(load_patterns("corrected").compiled) <= shown


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("Every evening Emma eats eggs", "error_code"),
        ("The lease ends on 30/06/2026", "file_path"),
        ("Bring tea and/or coffee", "file_path"),
        ("Bring tea and/or coffee", "url"),
        ("Let us go to the lake", "shell_command"),
        ("We make bread", "shell_command"),
        ("Her class is full", "function_definition"),
        ("We met in the main hall", "git_ref"),
        ("The master bedroom is blue", "git_ref"),
        ("We met Ann (my sister)", "function_definition"),
        ("Bring your book(s)", "function_reference"),
        ("My number is 5551234567", "hash"),
        ("The defaced wall", "hash"),
        ("See you at 10:30", "stack_trace"),
        ("I bought red yarn", "shell_command"),
        ("$20 is too much", "shell_command"),
        ("What type of tea is it", "data_structure"),
        ("I paid 450 euros", "error_code"),
    ],
)
def test_the_corrected_set_leaves_prose_alone(text: str, pattern: str) -> None:
    assert pattern in fired("original", text)
    assert pattern not in fired("corrected", text)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("panic: runtime error", "stack_trace"),
        ("it('parses', () => {})", "test_case"),
        ("set the environment variable PATH", "configuration"),
    ],
)
def test_the_corrected_set_hears_what_the_original_misses(text: str, pattern: str) -> None:
    assert pattern not in fired("original", text)
    assert pattern in fired("corrected", text)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("E11000 duplicate key", "error_code"),
        ("EPIPE on write", "error_code"),
        ("ERR_CONNECTION_REFUSED", "error_code"),
        ("it returned HTTP 503", "error_code"),
        ("a status code 404", "error_code"),
        ("see src/handlers/auth.ts", "file_path"),
        ("see ../shared/config", "file_path"),
        ("in /etc/hosts", "file_path"),
        ("GET /healthz", "url"),
        ("go test ./...", "shell_command"),
        ("$ make install", "shell_command"),
        ("run `make lint`", "shell_command"),
        ("class RingBuffer:", "function_definition"),
        ("call NewCache() first", "function_definition"),
        ("merged into main.", "git_ref"),
        ("at commit 3f9c1e7", "git_ref"),
        ("0xDEADBEEF", "hash"),
        ("at src/auth.ts:142", "stack_trace"),
        ("java.lang.NullPointerException: no", "stack_trace"),
        ("type Config struct {", "data_structure"),
        ("import numpy as np", "dependency"),
    ],
)
def test_both_sets_know_what_is_technical(text: str, pattern: str) -> None:
    assert pattern in fired("corrected", text)
    if not text.startswith("java"):  # it has no word of its own there
        assert pattern in fired("original", text)


def test_loads_are_sums_of_the_weights_that_fire() -> None:
    text = "Fixed src/cache.go: see docs/cache.md, I like it, it cost 5"
    patterns = load_patterns("corrected")
    found = patterns.loads(patterns.matches(text), 14)
    assert found.technical_density == 0.4
    assert found.conversational_load == pytest.approx(0.4 + 0.2)
    assert found.specificity == pytest.approx(2 * 0.4)
    assert found.actionability == 0.4
    assert found.technical_load == 0


def test_specificity_is_by_a_hundred_tokens() -> None:
    patterns = load_patterns("corrected")
    matches = patterns.matches("src/cache.go and docs/cache.md")
    assert [patterns.loads(matches, tokens).specificity for tokens in (1, 100, 400)] == [0.8, 0.8, 2 * 0.4 / 4]


@given(st.text(), st.integers(1, 500))
def test_loads_are_bounded(text: str, tokens: int) -> None:
    for patterns in map(load_patterns, get_args(Rules)):
        loads = patterns.loads(patterns.matches(text), tokens)
        assert all(value >= 0 for value in loads)
        assert all(value <= 1 for value in loads[1:])


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


def test_every_weight_names_a_pattern(patterns: Patterns) -> None:
    weighed = {name for weights in patterns.weights.values() for name in weights}
    assert weighed == set(patterns.compiled)


def test_the_sets_differ_in_patterns_alone() -> None:
    one, other = (load_patterns(name) for name in get_args(Rules))
    assert one.weights == other.weights


def test_novelty_is_one_minus_the_mean_cosine() -> None:
    assert evidence([], [0.9, 0.5, -0.4], **BOUNDS) == Familiarity(h=1 - (0.9 + 0.5 + 0) / 3, f=0, s=1 / 3)


def test_frequency_and_saturation_count_the_like_up_to_enough() -> None:
    found = evidence([0.8, 0.79, 0.9], [0.85, 0.84], **BOUNDS)
    assert (found.f, found.s, found.r) == (2 / 5, 1 / 3, 2 / 5 * (1 - 1 / 3))
    assert evidence([0.9] * 7, [0.9] * 4, **BOUNDS)[1:] == (1, 1)


@given(SCORES, SCORES)
def test_evidence_is_in_the_unit_interval(turns: list[float], memories: list[float]) -> None:
    found = evidence(turns, memories, **BOUNDS)
    assert all(0 <= value <= 1 for value in (*found, found.r))
    assert memories or found.h == 1
    assert found.s < 1 or found.r == 0


def test_a_cosine_that_is_no_number_or_above_one_does_no_harm() -> None:
    assert evidence([math.nan], [math.nan, 1.0000001], **BOUNDS) == Familiarity(h=1 - 1 / 2, f=0, s=1 / 3)


def test_the_patterns_are_packaged_as_they_stand() -> None:
    folder = Path(ROOT / "lcm" / "writing" / "admission" / "gating_patterns")
    assert sorted(path.stem for path in folder.iterdir()) == sorted(get_args(Rules))
    for path in folder.iterdir():
        assert re.match(r"# \S", path.read_text())
