"""What is particular to bm25s; the laws are in the conformance suite."""

import math
import random
from collections import defaultdict

import bm25s
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.text_index.bm25s import Bm25s


def bm25(documents: dict[str, list[str]], query: list[str], k1: float, b: float) -> dict[str, float]:
    """Lucene's formula, written down again."""
    mean = sum(map(len, documents.values())) / len(documents)
    scores: dict[str, float] = defaultdict(float)
    for term in query:
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
        query = rng.sample(words, 5)
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


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("k1", -1, "k1 must be >= 0, got -1"),
        ("k1", math.nan, "k1 must be >= 0, got nan"),
        ("k1", math.inf, "k1 must be >= 0, got inf"),
        ("b", 2, r"b must be in \[0, 1\], got 2"),
        ("b", math.nan, r"b must be in \[0, 1\], got nan"),
        ("stemmer", "klingon", "stemmer must be one of: .*english.*none.*, got 'klingon'"),
    ],
)
def test_settings_out_of_range_are_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Bm25s(**{field: value})


WORDS = st.lists(st.sampled_from([f"zo{number}k" for number in range(6)]), max_size=8).map(" ".join)


@given(st.lists(WORDS, min_size=1, max_size=8), WORDS, st.sampled_from([(1.2, 0.75), (0.0, 0.5), (2.0, 1.0)]))
def test_scores_are_the_librarys_bit_for_bit(texts: list[str], query: str, settings: tuple[float, float]) -> None:
    k1, b = settings
    numbers: dict[str, int] = {}
    numbered = [[numbers.setdefault(word, len(numbers)) for word in text.split()] for text in texts]
    asked = [numbers[word] for word in dict.fromkeys(query.split()) if word in numbers]
    index = Bm25s(k1=k1, b=b, stemmer="none").build()
    index.add([f"d{number}" for number in range(len(texts))], texts)
    if not asked:
        assert index.search([query], 9) == [([], [])]
        return
    library = bm25s.BM25(k1=k1, b=b, method="lucene", dtype="float64")
    library.index((numbered, dict(numbers)), show_progress=False)
    scores = library.get_scores_from_ids(asked)
    order = [number for number in sorted(range(len(texts)), key=lambda one: -scores[one]) if scores[number] > 0]
    assert index.search([query], 9) == [([f"d{number}" for number in order], [scores[number] for number in order])]


@given(st.lists(WORDS, min_size=1, max_size=8), st.sets(st.integers(0, 7)), WORDS)
def test_an_index_that_grew_and_shrank_is_one_made_anew(texts: list[str], gone: set[int], query: str) -> None:
    grown, anew = Bm25s().build(), Bm25s().build()
    for number, text in enumerate(texts):
        grown.add([f"d{number}"], [text])
        grown.search([query], 9)
    grown.remove([f"d{number}" for number in gone if number < len(texts)])
    kept = [number for number in range(len(texts)) if number not in gone]
    anew.add([f"d{number}" for number in kept], [texts[number] for number in kept])
    assert grown.search([query], 9) == anew.search([query], 9)
    grown.add(["new"], [query])
    anew.add(["new"], [query])
    allowed = (*(f"d{number}" for number in kept[:2]), "new", "unknown")
    for _ in range(2):
        assert grown.search([query], 9, allowed) == anew.search([query], 9, list(allowed))
