"""Dreams as documents: of whom, since when, and who finds them."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.errors import StoreError
from lcm.memory.memory import Memory
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from lcm.writing.dream import DiaryEntry, Promotion, in_sight, promote, promotion
from tests.support.standing import standing_documents
from tests.support.workspaces import minute, system, transcript

NUMBERS = "{score=0.8 recall=3 unique=2}"
SCOPE = "user:ada"


def diary(*texts: str) -> str:
    return "## Dreams\n" + "".join(f"- {text} {NUMBERS}\n" for text in texts)


def kept(store: Store, text: str, at: int = 10, source: str = "diary.md", user_id: str = "ada") -> Promotion:
    return promote(store, Utf16Units(), text, source, user_id, SCOPE, minute(at))


GOATS, SWIMMING, KETTLE = "goats flew over the river", "goats swam under the river", "a kettle sang to me"


def standing(store: Store, at: int) -> list[str]:
    return standing_documents(store, at=minute(at))["text"].to_list()


def test_what_is_admitted_becomes_documents_without_sources() -> None:
    with Store() as store:
        made = kept(store, diary(GOATS, "too short") + "- a kettle sang to me {score=0.1}\n")
        assert made.rejected == 1  # the last is no entry at all
        (document,) = made.documents
        assert store.document(document.document_id) == document
    assert document.document_id == "dream:ada/diary.md#dream#000000"
    assert (document.kind, document.scope, document.conversation_id) == ("dream", SCOPE, "")
    assert (document.source_message_ids, document.created_at, document.tokens) == ((), minute(10), 7)  # 25 / 4
    assert document.metadata["score"] == 0.8


def test_a_diary_takes_the_place_of_what_it_said_before_and_of_nothing_else() -> None:
    with Store() as store:
        kept(store, diary(GOATS, KETTLE))
        kept(store, diary("the other diary stays"), source="other.md")
        kept(store, diary("the other dreamer stays"), user_id="bo")
        kept(store, diary("of a name that begins alike"), source="diary.md#dream#x")
        made = kept(store, diary(SWIMMING), at=20)
        assert [document.document_id for document in made.documents] == ["dream:ada/diary.md#dream#000002"]
        others = ["the other diary stays", "the other dreamer stays", "of a name that begins alike"]
        assert standing(store, 15) == [GOATS, KETTLE, *others]
        assert standing(store, 25) == [*others, SWIMMING]


def test_a_diary_of_nothing_or_the_same_again_changes_nothing() -> None:
    with Store() as store:
        kept(store, diary(GOATS))
        before = store.documents()
        for text, refused in ((diary("short"), 1), ("", 0), (diary(GOATS), 0)):
            assert kept(store, text, at=20) == Promotion((), (), refused)
        assert store.documents().equals(before)


def test_a_clock_that_went_back_ends_nothing_before_it_began() -> None:
    with Store() as store:
        kept(store, diary(GOATS), at=10)
        kept(store, diary(SWIMMING), at=5)
        assert standing(store, 7) == []
        assert standing(store, 10) == [SWIMMING]


def test_a_promotion_that_fails_changes_nothing() -> None:
    with Store() as store:
        (first,) = kept(store, diary(GOATS)).documents
        store.add_documents([replace(first, document_id="dream:ada/diary.md#dream#000002", kind="authored")])
        before = store.documents()
        with pytest.raises(StoreError, match="#000002"):
            kept(store, diary(SWIMMING, KETTLE), at=20)
        assert store.documents().equals(before)


def test_somebody_and_a_diary_must_be_named() -> None:
    for source, user_id, name in (("d.md", " ", "user_id"), ("\t", "ada", "source")):
        with pytest.raises(ValueError, match=f"^{name} must name .*, got a blank text"):
            promotion([], source, user_id, SCOPE, minute(0))


NAMES = st.text("a/:#%é 0", min_size=1, max_size=6).filter(str.strip)


@given(st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES))
def test_ids_of_two_users_or_diaries_never_meet(one: tuple[str, str], other: tuple[str, str]) -> None:
    entry = DiaryEntry(GOATS, 1.0, 2, 2)
    first, second = (promotion([entry], *names, SCOPE, minute(0)).documents[0].document_id for names in (one, other))
    assert (first == second) == ([name.strip() for name in one] == [name.strip() for name in other])


def dream(memory: Memory, text: str, at: int) -> Promotion:
    return memory.dream(text, "diary.md", "ada", minute(at), SCOPE)


def found(memory: Memory, text: str, at: int) -> list[str]:
    ranked = memory.search(text, minute(at))
    return ranked.filter(ranked["kind"] == "dream")["text"].to_list()


def test_a_live_memory_finds_new_dreams_and_the_old_ones_only_in_their_time(tmp_path: Path) -> None:
    with Memory.open(system(), tmp_path / "memory.db") as memory:
        memory.ingest(transcript())
        dream(memory, diary(GOATS), 10)
        dream(memory, diary(SWIMMING), 20)
        assert found(memory, "dreams of goats", 15) == [GOATS]
        assert found(memory, "dreams of goats", 25) == [SWIMMING]
        live = memory.search("dreams of goats", minute(25))
    with Memory.open(system(), tmp_path / "memory.db") as memory:
        assert memory.search("dreams of goats", minute(25)).equals(live)


def test_dreams_are_seen_by_who_asks_for_them_and_by_nobody_else() -> None:
    with Memory.open(system()) as memory:
        memory.ingest(transcript())
        said = memory.documents
        assert in_sight(said, "my dreams of goats").equals(said)
        dream(memory, diary(GOATS), 10)
        assert in_sight(memory.documents, "my dreams of goats")["kind"].to_list() == ["dream"]
        assert in_sight(memory.documents, "goats").equals(said)


def test_a_document_of_another_scope_is_made_anew() -> None:
    with Store() as store:
        kept(store, diary(GOATS))
        promote(store, Utf16Units(), diary(GOATS), "diary.md", "ada", "global", minute(20))
        assert standing_documents(store, at=minute(25))["scope"].to_list() == ["global"]
