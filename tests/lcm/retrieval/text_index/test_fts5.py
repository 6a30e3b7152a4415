"""What is particular to FTS5; the laws are in the conformance suite."""

import math
import random
from collections import defaultdict

import pytest

from lcm.retrieval.text_index import Fts5

K1, B = 1.2, 0.75


def bm25(documents: dict[str, list[str]], query: list[str]) -> dict[str, float]:
    """FTS5's formula, written down again: its IDF is floored at 1e-6."""
    mean = sum(map(len, documents.values())) / len(documents)
    scores: dict[str, float] = defaultdict(float)
    for term in query:
        holding = [i for i, terms in documents.items() if term in terms]
        idf = max(math.log((len(documents) - len(holding) + 0.5) / (len(holding) + 0.5)), 1e-6)
        for i in holding:
            count, length = documents[i].count(term), len(documents[i])
            scores[i] += idf * count * (K1 + 1) / (count + K1 * (1 - B + B * length / mean))
    return scores


def test_word_scores_are_fts5s_bm25() -> None:
    rng = random.Random(0)
    words = [f"zo{number}k" for number in range(40)]
    documents = {
        f"d{number}": rng.choices(words, weights=range(40, 0, -1), k=rng.randint(1, 30)) for number in range(80)
    }
    index = Fts5().build()
    index.add(list(documents), [" ".join(terms) for terms in documents.values()])
    for _ in range(50):
        query = rng.sample(words, 5)
        ids, scores = index.search([" ".join(query)], 100)[0]
        assert dict(zip(ids, scores, strict=True)) == pytest.approx(bm25(documents, query), abs=1e-9)


@pytest.mark.parametrize("query", ["学习中文", "天学习", "学习", "学", "中文 学", "们在学习中"])
def test_cjk_scores_are_bm25_over_trigrams_or_over_the_texts_of_a_short_run(query: str) -> None:
    texts = {"a": "我们在学习中文 每天学习", "b": "学习", "c": "中文书", "d": "今天天气很好", "e": "他们在家里学习中文"}
    index = Fts5().build()
    index.add([*texts, "no cjk"], [*texts.values(), "plain words"])
    expected: dict[str, float] = defaultdict(float)
    trigrams = {i: [text[n : n + 3] for n in range(len(text) - 2)] for i, text in texts.items()}
    mean = sum(map(len, trigrams.values())) / len(trigrams)
    for run in query.split():
        if len(run) >= 3:
            parts = bm25(trigrams, [run[n : n + 3] for n in range(len(run) - 2)])
        else:
            holding = [i for i, text in texts.items() if run in text]
            idf = max(math.log((5 - len(holding) + 0.5) / (len(holding) + 0.5)), 1e-6)
            counts = {i: texts[i].count(run) for i in holding}
            lengths = {i: len(trigrams[i]) / mean for i in holding}
            parts = {i: idf * n * (K1 + 1) / (n + K1 * (1 - B + B * lengths[i])) for i, n in counts.items()}
        for i, score in parts.items():
            expected[i] += score
    ids, scores = index.search([query], 9)[0]
    assert dict(zip(ids, scores, strict=True)) == pytest.approx(expected, abs=1e-9)


def test_scores_of_words_and_of_cjk_are_added() -> None:
    index = Fts5().build()
    index.add(["both", "word", "run", "x", "y"], ["goat 学习中文", "goat", "学习中文", "x 你好世界", "y 你好吗"])
    (word_ids, words), (run_ids, runs), (ids, scores) = index.search(["goat", "学习中文", "goat 学习中文"], 9)
    parts = dict(zip(word_ids, words, strict=True)), dict(zip(run_ids, runs, strict=True))
    assert ids[0] == "both"
    assert dict(zip(ids, scores, strict=True)) == {i: parts[0].get(i, 0) + parts[1].get(i, 0) for i in ids}
    assert index.search(["goat 学习中文"], 1)[0] == (ids[:1], scores[:1])


def test_without_a_list_stop_words_count() -> None:
    for stop_words, expected in (("none", ["a", "b"]), ("english", ["a"])):
        index = Fts5(stop_words).build()
        index.add(list("abcde"), ["the goat", "the moss", "fern", "reed", "pond"])
        assert index.search(["the goat"], 9)[0][0] == expected


def test_ties_among_different_runs_keep_the_order_of_adding_not_of_the_query() -> None:
    index = Fts5().build()
    index.add(["first", "second", *"vwxyz"], ["中文", "学文", *["山河"] * 5])
    for query in ("学 中", "中 学"):
        ids, scores = index.search([query], 9)[0]
        assert ids == ["first", "second"]
        assert scores[0] == scores[1]
