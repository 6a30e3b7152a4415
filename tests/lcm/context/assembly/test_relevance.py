"""What a text has to do with a prompt."""

import pytest

from lcm.context.assembly.relevance import RelevanceIndex, terms


def test_a_score_is_the_share_of_the_prompts_terms() -> None:
    scores = RelevanceIndex(["cache cache deploy now", "other words", ""], "original").scores("Cache deploy cache")
    assert scores is not None
    assert scores.tolist() == [2 / 4 + 1 / 4, 0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "ascii_terms", "words"),
    [
        ("The a-10 x", ["the", "10"], ["the", "10"]),
        ("naïve Ärger", ["na", "ve", "rger"], ["naïve", "ärger"]),
        ("東京都 is 水", ["is"], ["東京", "京都", "is", "水"]),
        ("snake_case", ["snake", "case"], ["snake", "case"]),
        ("한국어", [], ["한국", "국어"]),
    ],
)
def test_terms(text: str, ascii_terms: list[str], words: list[str]) -> None:
    assert terms(text, "original") == ascii_terms
    assert terms(text, "corrected") == words


def test_a_prompt_without_terms_scores_nothing() -> None:
    index = RelevanceIndex(["東京"], "original")
    assert index.scores("東京 ?!") is None
    assert index.scores("") is None
    assert RelevanceIndex(["東京"], "corrected").scores("東京") is not None
