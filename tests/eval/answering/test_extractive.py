"""An answer in a sentence of what was shown: worked cases."""

import pytest

from eval.answering import Excerpt, Extractive

EXCERPTS = [
    Excerpt("Ada: The kettle broke on Monday. We bought a red one in Perth."),
    Excerpt("Where is the kettle? The goats are near the river."),
    Excerpt("The invoice came to 40 kroner."),
]


def test_the_nearest_sentence_answers_and_a_question_only_where_nothing_else_does() -> None:
    answerer = Extractive()
    assert answerer.answer("When did the kettle break, or who broke the kettle?", EXCERPTS) == (
        "Ada: The kettle broke on Monday."
    )
    assert answerer.answer("How much was the invoice?", EXCERPTS) == "The invoice came to 40 kroner."
    assert answerer.answer("where is the kettle", EXCERPTS).endswith("broke on Monday.")
    assert answerer.answer("where is the kettle", EXCERPTS[1:2]) == "Where is the kettle?"


def test_nothing_is_said_where_nothing_speaks_of_enough_of_the_question() -> None:
    assert Extractive().answer("What colour was the submarine?", EXCERPTS) == ""
    assert Extractive().answer("How much was the invoice?", []) == ""
    half = "submarine invoice"
    assert Extractive(least_covered=0.5).answer(half, EXCERPTS) == "The invoice came to 40 kroner."
    assert Extractive(least_covered=0.51).answer(half, EXCERPTS) == ""


def test_what_is_ranked_lower_is_held_back() -> None:
    """Of two sentences that hold as many words the shorter is nearer, until its rank counts."""
    texts = ["Ada saw a goat and a sheep.", "A goat."]
    ranked = [Excerpt(text, rank=rank) for rank, text in enumerate(texts, start=1)]
    assert Extractive(rank_discount=0).answer("goat", ranked) == "A goat."
    assert Extractive(rank_discount=1).answer("goat", ranked) == "Ada saw a goat and a sheep."
    assert Extractive(rank_discount=1).answer("goat", [Excerpt(text) for text in texts]) == "A goat."
    for setting, value in (("least_covered", 1.5), ("rank_discount", -1.0)):
        with pytest.raises(ValueError, match=setting):
            Extractive(**{setting: value})


def test_the_option_is_chosen_whose_own_words_are_known() -> None:
    options = {"a": "You went to the harbour with goats", "b": "You went to the river with goats", "c": "You went home"}
    assert Extractive().choose("", EXCERPTS, options) == "b"
    assert Extractive().choose("", EXCERPTS, dict(reversed(options.items()))) == "b"
    for excerpts, unknown in (
        ([], {"a": "jazz", "b": "blues"}),
        (EXCERPTS, {"a": "jazz", "b": "blues"}),
        (EXCERPTS, {}),
    ):
        assert Extractive().choose("", excerpts, unknown) == ""
