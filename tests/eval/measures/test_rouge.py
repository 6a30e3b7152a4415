import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from eval.measures.memory import ROUGE, ROUGE_MEASURES, rouge


def test_f1_and_recall_by_hand() -> None:
    # Words: 3 of 4 and 3 of 5; pairs: "the cat" alone, 1 of 3 and 1 of 4; in order: the cat mat.
    (row,) = rouge(["the cat ate mat"], [["the cat on the mat"]]).rows(named=True)
    assert row["rouge1"] == pytest.approx(2 * (3 / 4) * (3 / 5) / (3 / 4 + 3 / 5))
    assert row["rouge1_recall"] == pytest.approx(3 / 5)
    assert row["rouge2"] == pytest.approx(2 * (1 / 3) * (1 / 4) / (1 / 3 + 1 / 4))
    assert row["rouge2_recall"] == pytest.approx(1 / 4)
    assert row["rougeL"] == pytest.approx(2 * (3 / 4) * (3 / 5) / (3 / 4 + 3 / 5))


def test_characters_of_cjk_and_words_of_any_script_count() -> None:
    frame = rouge(["我爱北京", "Ünï мир"], [["我爱上海"], ["мир ünï"]])
    assert frame["rouge1"].to_list() == [2 / 4, 1.0]
    assert frame["rouge2"].to_list() == [pytest.approx(1 / 3), 0.0]


def test_of_several_references_each_measure_takes_its_best() -> None:
    one, other = "a b c d", "d c b a e"
    both = rouge(["a b x"], [[one, other]])
    each = rouge(["a b x", "a b x"], [[one], [other]])
    assert both.row(0) == each.row(0)
    assert both["rouge1"].item() > each["rouge1"][1] > 0


@given(st.lists(st.tuples(st.text(st.characters(max_codepoint=127)), st.text(st.characters(max_codepoint=127)))))
def test_on_ascii_the_library_alone_says_the_same(pairs: list[tuple[str, str]]) -> None:
    scorer = RougeScorer(list(ROUGE))
    frame = rouge([text for text, _ in pairs], [[reference] for _, reference in pairs])
    assert frame.columns == list(ROUGE_MEASURES)
    for row, (text, reference) in zip(frame.iter_rows(named=True), pairs, strict=True):
        theirs = scorer.score(reference, text)
        assert [row[name] for name in ROUGE] == [theirs[name].fmeasure for name in ROUGE]


def test_texts_without_words_and_of_no_number() -> None:
    assert rouge(["", "a"], [["a"], ["…"]]).equals(pl.DataFrame([[0.0] * 6] * 2, schema=ROUGE_MEASURES, orient="row"))
    assert rouge([], []).shape == (0, 6)


def test_every_text_needs_a_reference() -> None:
    with pytest.raises(ValueError, match="got 1 texts and 0 rows"):
        rouge(["a"], [])
    with pytest.raises(ValueError, match=r"none for the texts \[1\]"):
        rouge(["a", "b"], [["a"], []])
    with pytest.raises(ValueError, match=r"none for the texts \[0\]"):
        rouge(["a"], ["a"])
