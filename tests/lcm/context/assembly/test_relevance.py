"""What a text has to do with a prompt, by the corrected terms; golden vectors hold the original's."""

from lcm.context.assembly.lossless import RelevanceIndex, terms

TERMS = {
    "The a-10 x": ["the", "10"],
    "naïve Ärger": ["naive", "arger"],
    "東京都 is 水": ["is", "東京", "京都", "水"],
    "snake_case": ["snake", "case"],
    "한국어": ["한국", "국어"],
}


def test_terms_are_words_of_any_script_and_a_score_is_the_share_of_the_prompts() -> None:
    assert {text: terms(text, "corrected") for text in TERMS} == TERMS
    scores = RelevanceIndex(["cache cache deploy now", "other words", ""], "corrected").scores("Cache deploy cache")
    assert scores is not None
    assert scores.tolist() == [2 / 4 + 1 / 4, 0.0, 0.0]
    assert RelevanceIndex(["東京"], "original").scores("東京 ?!") is None
    assert RelevanceIndex(["東京"], "corrected").scores("東京") is not None
