"""One relevance of several judges, and how far two agree."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eval.answering import agreement_of
from eval.judging.judgements import Judgement, JudgementFile, Kind, agreements, qrels_of


def judged(document: str, relevance: int | None, judge: str = "ada", kind: Kind = "human") -> Judgement:
    return Judgement("q", document, relevance, judge, kind, "skipped" if relevance is None else "judged")


@example([(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30))
def test_kappa_is_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    from sklearn.metrics import cohen_kappa_score  # not above: every worker would import it

    equal, kappa = agreement_of(pairs)
    assert equal == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))
    if len({grade for pair in pairs for grade in pair}) == 1:
        assert kappa is None
    else:
        assert kappa == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))


def test_only_what_both_judged_is_compared(tmp_path: Path) -> None:
    file = JudgementFile(tmp_path)
    file.add([judged("a", 2), judged("b", 0), judged("c", None), judged("b", 0, "bo"), judged("c", 1, "bo")])
    file.add([judged("d", 1, "eve")])
    (found,) = agreements(file)
    assert (found.judges, found.n, found.equal, found.kappa) == (("ada", "bo"), 1, 1.0, None)


def test_people_count_before_files_and_files_before_models_and_the_middle_of_people() -> None:
    said = [
        judged("a", 0, "gpt", "model"), judged("a", 1, "their", "file"), judged("a", 2),
        judged("b", 0, "gpt", "model"), judged("b", 1, "their", "file"),
        judged("c", 2, "gpt", "model"), judged("c", None),
        judged("d", 0, "ada"), judged("d", 2, "bo"), judged("e", 0), judged("e", 2, "bo"), judged("e", 1, "eve"),
    ]  # fmt: skip
    assert {document: grade for _, document, grade in qrels_of(said).rows()} == {"a": 2, "b": 1, "c": 2, "d": 0, "e": 1}
    assert [row[1] for row in qrels_of(said, ["model"]).rows()] == ["a", "b", "c"]
