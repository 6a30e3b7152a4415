"""Summaries that are short enough, whatever a summarizer answers."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.lossless.folding import press
from lcm.compaction.lossless.lossless import Lossless
from lcm.protocols.models import TokenEstimator
from lcm.records.summary import SummaryRequest, SummaryResult
from lcm.token_estimator import Utf16Units
from tests.lcm.compaction.contexts import head

TEXTS = st.text(st.sampled_from("ab \n茶😀\ud83d"), max_size=300)


@dataclass(frozen=True)
class OnePerCharacter:
    image_tokens: int | None = None

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]


def lengths(target: int = 20, factor: float = 3.0, tokens: TokenEstimator | None = None) -> Lossless:
    targets = {"leaf_target_tokens": target, "condensed_target_tokens": target}
    return Lossless(head(0), tokens or Utf16Units(), summary_max_overage_factor=factor, **targets)  # type: ignore[arg-type]


def pressed(of: Lossless, source: str, answers: Sequence[SummaryResult], limit: int | None = None) -> Any:
    work = press(of, source, 0, None, limit)
    try:
        next(work)
        for answer in answers:
            work.send(answer)
    except StopIteration as end:
        return end.value
    raise AssertionError("it asks for more answers than there are")


def said(text: str) -> SummaryResult:
    return SummaryResult(text, 0.5, "stub")


@pytest.mark.parametrize("tokens", [Utf16Units(), OnePerCharacter()], ids=["utf16", "characters"])
@given(source=TEXTS, answers=st.tuples(TEXTS, TEXTS), limit=st.integers(16, 90), target=st.integers(1, 40))
def test_a_summary_stays_below_its_limit_and_its_words_are_the_answers_or_the_sources(
    tokens: TokenEstimator, source: str, answers: tuple[str, str], limit: int, target: int
) -> None:
    found = pressed(lengths(target, 2.0, tokens), source, [said(text) for text in answers], limit)
    size = tokens.count([found.text])[0]
    assert size < limit or not source.strip()
    if found.level in ("normal", "aggressive", "capped"):
        assert size <= 2 * target
    body = found.text.rsplit("\n[", 1)[0]
    assert any(body in text for text in (source, *answers)) or found.text == "[Truncated from 0 tokens]"


def test_an_answer_as_long_as_the_source_is_asked_for_again_more_tightly() -> None:
    work = press(lengths(target=200), "w" * 4000, 0, "before")
    first = next(work)
    assert first == SummaryRequest("w" * 4000, 200, 0, "before")
    second = work.send(said("w" * 4000))
    assert (second.is_aggressive, second.text, second.previous) == (True, first.text, "before")
    assert second.target_tokens == 110, "0.55 * 200"
    with pytest.raises(StopIteration) as end:
        work.send(said("short"))
    assert end.value.value[:2] == ("short", "aggressive")


def test_a_source_that_is_too_short_for_a_note_gives_nothing_below_its_limit() -> None:
    assert pressed(lengths(), "w" * 20, [said("")], limit=5).text == ""
    assert len(pressed(lengths(), "w" * 20, [said("")]).text) > 20


def test_a_far_too_long_answer_is_cut_to_its_limit_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    found = pressed(lengths(target=20, factor=2), "w" * 4000, [said("x" * 400)])
    assert found.level == "capped"
    note = "\n[Capped from 100 tokens to ~40]"
    assert found.text == "x" * (4 * 40 - len(note)) + note
    assert "100 tokens, 20 were aimed at" in caplog.text


def test_a_cut_that_is_still_too_long_is_cut_to_what_fits() -> None:
    """One token a character: the 4 units a token that are tried first are too many."""
    cut = pressed(lengths(tokens=OnePerCharacter()), "w" * 4000, [said("")], limit=60)
    note = "\n[Truncated from 4000 tokens]"
    assert (cut.level, cut.text) == ("fallback", "w" * (59 - len(note)) + note)


def test_no_more_is_asked_for_than_there_is_room() -> None:
    """A floor of 192 tokens is no use where 39 have room."""
    work = press(lengths(), "word " * 200, 0, None, 40, room_tokens=39)
    assert next(work).target_tokens == 39
    assert work.send(said("long " * 200)).target_tokens == 39
