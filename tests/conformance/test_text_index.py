"""The laws of `TextIndex`, over every YAML of its group."""

import random
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

import pytest
from hydra.utils import instantiate
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from lcm.errors import StoreError
from lcm.protocols.retrieval import TextIndex, TextIndexChoice
from lcm.retrieval.text_index import Filtered
from lcm.retrieval.vector_index.exact import Exact

CONF = Path(__file__).parents[2] / "conf" / "text_index"
CHOICES: dict[str, TextIndexChoice] = {
    path.stem: instantiate(OmegaConf.load(path), _convert_="all") for path in sorted(CONF.glob("*.yaml"))
}
DOCUMENTS = {
    "kettle": "The kettle in the blue kitchen is broken",
    "goats": "My sister keeps three goats near the river. Goats!",
    "meeting": "来週の火曜日に東京で会議があります",
    "learning": "我们在学习中文，每天学习",
    "mixed": "GPT-4 hilft beim 学习 von Café-Namen",
    "tea": "Ada prefers green tea, never coffee",
    "empty": "",
    "marks": "?!... 😀",
}


@pytest.fixture(params=CHOICES)
def choice(request: pytest.FixtureRequest) -> TextIndexChoice:
    return CHOICES[request.param]


@pytest.fixture
def index(choice: TextIndexChoice) -> TextIndex:
    return filled(choice, DOCUMENTS)


def filled(choice: TextIndexChoice, documents: dict[str, str]) -> TextIndex:
    index = choice.build()
    index.add(list(documents), list(documents.values()))
    return index


def invented(count: int, seed: int = 0) -> dict[str, str]:
    """Documents of words that no stemmer changes, common and rare."""
    rng = random.Random(seed)
    words = [f"zo{min(int(rng.paretovariate(0.5)), 500)}k" for _ in range(2000)]
    return {f"d{number}": " ".join(rng.choices(words, k=rng.randint(1, 40))) for number in range(count)}


def found(index: TextIndex, query: str) -> set[str]:
    return set(index.search([query], 100)[0][0])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("kettle", {"kettle"}),
        ("KITCHENS", {"kettle"}),
        ("goat tea", {"goats", "tea"}),
        ("cafe", {"mixed"}),
        ("CAFÉ", {"mixed"}),
        ("ｇｐｔ", {"mixed"}),
        ("東京", {"meeting"}),
        ("会議があります", {"meeting"}),
        ("学习", {"learning", "mixed"}),
        ("我们在", {"learning"}),
        ("学习 goats", {"learning", "mixed", "goats"}),
        ("elephant", set()),
        ("大象", set()),
        ("", set()),
        ("?! 😀", set()),
    ],
)
def test_a_query_finds_the_documents_that_share_a_word(index: TextIndex, query: str, expected: set[str]) -> None:
    assert found(index, query) == expected


def test_stop_words_do_not_count_beside_other_words(index: TextIndex) -> None:
    assert found(index, "is the tea in there") == {"tea"}
    assert found(index, "the 学习") == {"learning", "mixed"}


def test_stop_words_count_alone_where_documents_keep_theirs(choice: TextIndexChoice) -> None:
    keeps_none = isinstance(choice, Filtered)
    assert found(filled(choice, DOCUMENTS), "is the") == (set() if keeps_none else {"kettle", "goats"})


def test_scores_are_positive_and_descend_and_ids_do_not_repeat(choice: TextIndexChoice) -> None:
    index = filled(choice, invented(300))
    for query in invented(40, seed=1).values():
        ids, scores = index.search([query], 300)[0]
        assert len(ids) == len(set(ids)) == len(scores) > 0
        assert scores == sorted(scores, reverse=True)
        assert scores[-1] > 0


def test_more_of_a_rare_word_in_a_short_text_ranks_higher(choice: TextIndexChoice) -> None:
    index = filled(
        choice,
        {"long": "goat cart moss fern reed pond lake", "short": "goat", "twice": "goat goat", "other": "cart"}
        | {f"rest{number}": "moss fern" for number in range(6)},
    )
    assert index.search(["goat"], 9)[0][0] == ["twice", "short", "long"]


def test_a_query_is_answered_alike_alone_and_in_any_batch(choice: TextIndexChoice) -> None:
    index = filled(choice, invented(300) | DOCUMENTS)
    queries = [*invented(60, seed=1).values(), "学习 goats", "", "kettle 东"]
    for allowed in (None, [f"d{number}" for number in range(0, 300, 3)]):
        together = index.search(queries, 25, allowed)
        assert [index.search([query], 25, allowed)[0] for query in queries] == together
        assert index.search(queries[7:9], 25, allowed) == together[7:9]


def test_ties_come_in_the_order_of_adding(choice: TextIndexChoice) -> None:
    index = filled(choice, dict.fromkeys(("c", "a", "b"), "blue kettle 学习中文"))
    for query in ("kettle", "学习中文", "kettle 学习中文"):
        assert index.search([query], 9)[0][0] == ["c", "a", "b"]
        assert index.search([query], 2)[0][0] == ["c", "a"]
    index.remove(["c"])
    index.add(["c"], ["blue kettle 学习中文"])
    assert index.search(["kettle"], 9)[0][0] == ["a", "b", "c"]


def test_allowed_keeps_the_scores_and_is_heeded_before_k(choice: TextIndexChoice) -> None:
    documents = invented(200) | DOCUMENTS
    index = filled(choice, documents)
    for query in [*invented(20, seed=1).values(), "学习 goats kettle"]:
        ids, scores = index.search([query], 1000)[0]
        whole = list(zip(ids, scores, strict=True))
        allowed = sorted(ids[1::3])
        expected = [pair for pair in whole if pair[0] in allowed]
        for k in (1, 1000):
            kept, kept_scores = index.search([query], k, [*allowed, "unknown", *allowed])[0]
            assert list(zip(kept, kept_scores, strict=True)) == expected[:k]
    assert index.search(["kettle"], 5, []) == [([], [])]
    assert index.search(["kettle"], 5, ["unknown"]) == [([], [])]
    assert index.search(["kettle"], 5)[0][0] == ["kettle"]


def test_k_may_exceed_the_size_or_be_zero(index: TextIndex) -> None:
    assert index.search(["kettle", "学习"], 0) == [([], []), ([], [])]
    assert len(index.search(["学习 kettle goats tea"], 10_000)[0][0]) == 5
    with pytest.raises(ValueError, match="k must be >= 0, got -1"):
        index.search(["kettle"], -1)


def test_an_empty_index_an_empty_batch_and_wordless_documents_give_nothing(choice: TextIndexChoice) -> None:
    index = choice.build()
    assert index.search(["kettle", "", "学习", "学"], 5) == [([], [])] * 4
    assert index.search([], 5) == []
    index.add([], [])
    assert len(index) == 0
    index.add(["nothing", "marks"], ["", "?!"])
    assert index.search(["kettle", "", "学习", "学"], 5) == [([], [])] * 4
    assert len(index) == 2


def test_removing_an_unknown_id_names_it_and_removes_nothing(index: TextIndex) -> None:
    with pytest.raises(ValueError, match="cannot remove what is not in the index: 'x', 'y'"):
        index.remove(["kettle", "y", "x"])
    assert found(index, "kettle") == {"kettle"}


@pytest.mark.parametrize("ids", [["new", "kettle"], ["new", "new"]])
def test_adding_an_id_twice_is_refused_and_adds_nothing(index: TextIndex, ids: list[str]) -> None:
    with pytest.raises(ValueError, match=f"cannot add an id twice, remove it first: {ids[1]!r}"):
        index.add(ids, ["elephant", "elephant"])
    assert len(index) == len(DOCUMENTS)
    assert found(index, "elephant") == set()


def test_ids_and_texts_must_be_equally_many(index: TextIndex) -> None:
    with pytest.raises(ValueError, match="as many texts as ids, got 1 texts and 2 ids"):
        index.add(["a", "b"], ["text"])


@pytest.mark.parametrize(
    "query",
    [
        *('"', '""', "'", "kettle AND", "NOT", "NEAR(", "NEAR(a b, 2)", "(", ")", "*", "kettle*", "^kettle", "-kettle"),
        *("text:kettle", "{text}:kettle", "a:b", "+", "%", "_", "\\", ";--", "\0", "ket\0tle", "\ud800", "😀", "é", "́"),
    ],
)
def test_a_query_is_text_whatever_signs_it_holds(index: TextIndex, query: str) -> None:
    assert found(index, f"{query} goats") >= {"goats"}
    index.search([query], 5)


@pytest.mark.parametrize("name", CHOICES)
@given(st.lists(st.text(max_size=40), max_size=6), st.text(max_size=40))
def test_no_text_breaks_an_index(name: str, texts: list[str], query: str) -> None:
    index = CHOICES[name].build()
    ids = [f"d{number}" for number in range(len(texts))]
    index.add(ids, texts)
    ids_found, scores = index.search([query], 10)[0]
    assert set(ids_found) <= set(ids)
    assert all(score > 0 for score in scores)
    index.remove(ids)
    assert len(index) == 0


WORDS = st.lists(st.sampled_from(["goat", "tea", "kettle", "moss", "学习", "学习中文", "fern"]), max_size=6).map(
    " ".join
)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 9), WORDS),
        st.tuples(st.just("remove"), st.integers(0, 9), st.just("")),
    ),
    max_size=25,
)


@pytest.mark.parametrize("name", CHOICES)
@given(CHANGES, WORDS, st.integers(0, 6), st.none() | st.lists(st.integers(0, 12)))
def test_any_changes_leave_what_a_fresh_index_would_hold(
    name: str, changes: list[tuple[str, int, str]], query: str, k: int, allowed: list[int] | None
) -> None:
    index = CHOICES[name].build()
    kept: dict[str, str] = {}
    for change, number, text in changes:
        document_id = f"d{number}"
        if document_id in kept:
            index.remove([document_id])
            del kept[document_id]
        if change == "add":
            index.add([document_id], [text])
            kept[document_id] = text
        if number % 3 == 0:
            index.search([query], k, [document_id, "d1"])  # another filter, of which nothing must stay
    visible = None if allowed is None else [f"d{number}" for number in allowed]
    ids, scores = index.search([query], k, visible)[0]
    assert [(ids, scores)] == filled(CHOICES[name], kept).search([query], k, visible)
    assert len(index) == len(kept)
    sharing = {i for i, text in kept.items() if set(query.split()) & set(text.split())}
    if "学" not in query:
        assert set(ids) <= sharing
        assert len(ids) == min(k, len(sharing if visible is None else sharing & set(visible)))


@pytest.mark.parametrize(
    "query",
    [
        " ".join(f"w{number}" for number in range(17_000)),
        "".join(map(chr, range(0x4E00, 0x9F00))) * 2,
        " ".join(map(chr, range(0x4E00, 0x9F00))),
        '"' * 100_000,
        "x" * 100_000,
    ],
    ids=["words", "cjk", "cjk_characters", "quotes", "one_word"],
)
def test_a_query_of_100_kilobytes_is_answered(index: TextIndex, query: str) -> None:
    start = time.perf_counter()
    assert "goats" in found(index, query + " goats")
    assert time.perf_counter() - start < 5


def test_an_index_may_be_used_from_another_thread(index: TextIndex) -> None:
    answers: list[set[str]] = []
    threads = [threading.Thread(target=lambda: answers.append(found(index, "kettle 学习"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [{"kettle", "learning", "mixed"}] * 4


def test_an_index_is_silent(choice: TextIndexChoice, capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index = filled(choice, DOCUMENTS)
        index.search(["kettle", "", "elephant"], 3)
        index.remove(["kettle"])
        index.search(["kettle"], 3)
    assert capfd.readouterr() == ("", "")


def test_an_unknown_list_of_stop_words_is_refused(choice: TextIndexChoice) -> None:
    with pytest.raises(ValueError, match="unknown stop_words 'klingon'; choose one of: english, lucene, none"):
        type(choice)(stop_words="klingon")


@pytest.mark.parametrize("name", CHOICES)
def test_a_filter_that_is_given_again_holds_after_the_index_has_changed(name: str) -> None:
    index, allowed = CHOICES[name].build(), ("a", "b", "c")
    index.add(["a", "x"], ["tea one", "tea two"])
    assert index.search(["tea"], 5, allowed)[0][0] == ["a"]
    index.add(["b"], ["tea three"])
    assert sorted(index.search(["tea"], 5, allowed)[0][0]) == ["a", "b"]
    index.remove(["a"])
    index.add(["c"], ["tea four"])
    assert sorted(index.search(["tea"], 5, allowed)[0][0]) == ["b", "c"]
    assert sorted(index.search(["tea"], 5, ("x",))[0][0]) == ["x"]
    assert sorted(index.search(["tea"], 5, allowed)[0][0]) == ["b", "c"]


def test_a_saved_index_answers_and_grows_as_the_one_that_was_saved(choice: TextIndexChoice, tmp_path: Path) -> None:
    documents = invented(300, seed=1) | DOCUMENTS
    index, read = filled(choice, documents), filled(choice, {"other": "what was there before"})
    index.remove(["d3", "d299", "goats"])
    index.search(["zo1k"], 3, allowed=("d1", "d2"))
    index.save(tmp_path / "words")
    read.load(tmp_path / "words")
    asked = [*(f"zo{number}k zo{2 * number}k" for number in range(40)), *DOCUMENTS.values(), "before"]
    assert read.search(asked, 500) == index.search(asked, 500)
    for one in (index, read):
        one.add(["d3", "new"], ["zo1k zo2k", "a word never heard, 東京, zo2k"])
        one.remove(["d4"])
    assert read.search([*asked, "heard"], 500) == index.search([*asked, "heard"], 500)
    assert read.search(asked, 500, allowed=["d3", "d5"]) == index.search(asked, 500, allowed=["d3", "d5"])
    assert len(read) == len(index) == len(documents) - 2


def test_an_empty_index_is_saved_too(choice: TextIndexChoice, tmp_path: Path) -> None:
    choice.build().save(tmp_path / "words")
    read = filled(choice, DOCUMENTS)
    read.load(tmp_path / "words")
    assert len(read) == 0
    assert read.search(["kettle"], 3) == [([], [])]


def test_a_file_that_is_torn_or_of_another_index_is_refused(choice: TextIndexChoice, tmp_path: Path) -> None:
    path, index = tmp_path / "words", filled(choice, DOCUMENTS)
    with pytest.raises(StoreError, match="cannot read the index file"):
        index.load(path)
    before = index.search(["kettle"], 3)
    index.save(path)
    whole = path.read_bytes()
    for torn in (whole[:-1], b"", whole[:99] + bytes([whole[99] ^ 1]) + whole[100:]):
        path.write_bytes(torn)
        with pytest.raises(StoreError, match="is damaged or no index file"):
            index.load(path)
    Exact().build(2, incidents=Counter()).save(path)
    with pytest.raises(StoreError, match="was written with"):
        index.load(path)
    assert index.search(["kettle"], 3) == before
