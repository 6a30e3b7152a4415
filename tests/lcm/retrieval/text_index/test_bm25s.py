"""What is particular to bm25s; the laws are in the conformance suite."""

import math
import random
from collections import defaultdict

import pytest

from lcm.retrieval.text_index import Bm25s
from tests.lcm.refusals import assert_refused


def bm25(documents: dict[str, list[str]], query: list[str], k1: float, b: float) -> dict[str, float]:
    """Lucene's formula, written down again."""
    mean = sum(map(len, documents.values())) / len(documents)
    scores: dict[str, float] = defaultdict(float)
    for term in set(query):
        holding = [i for i, terms in documents.items() if term in terms]
        idf = math.log(1 + (len(documents) - len(holding) + 0.5) / (len(holding) + 0.5))
        for i in holding:
            count, length = documents[i].count(term), len(documents[i])
            scores[i] += idf * count / (count + k1 * (1 - b + b * length / mean))
    return scores


@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0, 0.75), (2.0, 0), (0.9, 1)])
def test_scores_are_lucenes_bm25(k1: float, b: float) -> None:
    rng = random.Random(0)
    words = [f"zo{number}k" for number in range(40)]
    documents = {
        f"d{number}": rng.choices(words, weights=range(40, 0, -1), k=rng.randint(1, 30)) for number in range(80)
    } | {"empty": []}
    index = Bm25s(k1=k1, b=b).build()
    index.add(list(documents), [" ".join(terms) for terms in documents.values()])
    for _ in range(50):
        query = rng.choices(words, k=5)  # a word counts once
        ids, scores = index.search([" ".join(query)], 100)[0]
        assert dict(zip(ids, scores, strict=True)) == pytest.approx(bm25(documents, query, k1, b), abs=1e-9)


def test_cjk_runs_are_pairs_and_a_lone_character_is_itself() -> None:
    texts = {"a": "学习中文 goat", "b": "书 学习", "c": "中国"}
    terms = {"a": ["goat", "学习", "习中", "中文"], "b": ["书", "学习"], "c": ["中国"]}
    index = Bm25s().build()
    index.add(list(texts), list(texts.values()))
    for query, parts in (("学习中 goat", ["goat", "学习", "习中"]), ("书", ["书"]), ("学", [])):
        ids, scores = index.search([query], 9)[0]
        assert dict(zip(ids, scores, strict=True)) == pytest.approx(bm25(terms, parts, 1.2, 0.75), abs=1e-9)


def test_a_stemmer_joins_the_forms_of_a_word_and_none_does_not() -> None:
    for stemmer, expected in (("english", ["a", "b"]), ("none", ["a"]), ("german", ["a"])):
        index = Bm25s(stemmer=stemmer).build()
        index.add(list("abc"), ["running", "runs", "moss"])
        assert index.search(["running"], 9)[0][0] == expected


def test_settings_out_of_range_are_refused() -> None:
    assert_refused(Bm25s, "be >= 0", k1=[-1, math.nan, math.inf])
    assert_refused(Bm25s, "be in [0, 1]", b=[2, math.nan])
    with pytest.raises(ValueError, match=r"stemmer must be one of: .*english.*none.*, got 'klingon'"):
        Bm25s(stemmer="klingon")
