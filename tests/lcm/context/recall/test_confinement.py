"""Nothing from outside a grant comes through any path of recall: no words, no ids, no counts."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, is_dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.context.recall.reader import DescribedSummary, Reader
from lcm.errors import GrantError, LcmError
from lcm.store.store import Store
from tests.lcm.context.recall.dags import START, TOKENS, fold_all, folds, holding, lent, recall, talk

NAMES = ("anna", "berta", "clara")
FILES: dict[str, str] = {}
"""Conversation to the id of its large file; the same in every store."""


def filled(wanted: dict[str, list[tuple[int, int]]]) -> tuple[Store, dict[str, list[str]]]:
    """Three conversations, each of words of its own beside words that all have; and their summaries."""
    store, ids = Store(), {}
    for name in NAMES:
        talk(store, name, [f"{name}word{i} shared 会議{name} words" for i in range(6)])
        holder = holding(f"{name}:file", f"{name}.txt", f"{name}secret of a large file", 1, f"{name}explored")
        FILES[name] = holder.files[0].file_id
        store.append(name, [holder], TOKENS)
        ids[name] = fold_all(store, name, wanted[name])
    return store, ids


def attempts(reader: Reader, ids: dict[str, list[str]], numbers: int) -> Iterator[Callable[[], object]]:
    """Every way to read anything."""
    everything = [one for made in ids.values() for one in made]
    modes = {"shared": "full_text", "会議": "full_text", "word": "full_text", "\\w+word\\d": "regex"}
    for pattern, mode in modes.items():
        for conversation in (None, *NAMES, 1, 2, 3):
            yield partial(reader.grep, pattern, mode=mode, conversation=conversation)
    for one in [*everything, *FILES.values()]:
        yield partial(reader.describe, one)
        yield partial(reader.describe, one, content=True)
    for some in [*([one] for one in everything), everything]:
        yield partial(reader.expand, some, depth=9, token_cap=10**6, has_messages=True)
    for number in range(1, numbers + 1):
        yield partial(reader.messages, [number])
    for where in (None, 1, 2, 3):
        yield partial(recall().expand_query, reader, "words", lambda: START, query="words", conversation=where)


def told(attempt: Callable[[], object]) -> str:
    try:
        found = attempt()
    except GrantError as refusal:
        return f"refused: {refusal}"
    if isinstance(found, str):
        return found
    parts = [asdict(p) if is_dataclass(p) else p for p in (found if isinstance(found, list) else [found])]  # type: ignore[arg-type]
    return json.dumps(parts, default=str, ensure_ascii=False)


@given(st.fixed_dictionaries(dict.fromkeys(NAMES, folds)), st.data())
def test_a_grant_of_conversations_shows_nothing_of_the_others(wanted: Any, data: st.DataObject) -> None:
    inside = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
    store, ids = filled(wanted)
    with store:
        configured = recall(max_expand_tokens=10**6, rules=data.draw(st.sampled_from(["corrected", "original"])))
        asked = {one for made in ids.values() for one in made} | set(FILES.values())
        reader = lent(configured, store, [NAMES.index(name) + 1 for name in inside])
        for attempt in attempts(reader, ids, 21):
            text = told(attempt)
            for name in set(NAMES) - set(inside):
                if text.startswith("refused: "):
                    assert not any(f"{name}{rest}" in text for rest in ("word", "fold", "secret", "explored"))
                    continue
                assert name not in text
                assert not any(one in text for one in asked & {*ids[name], FILES[name]})


@given(st.fixed_dictionaries(dict.fromkeys(NAMES, folds)))
def test_what_a_grant_sees_does_not_change_with_what_it_does_not_see(wanted: Any) -> None:
    seen = []
    for others in ({}, {"berta": [(0, 2), (0, 2)], "clara": [(1, 4)]}):
        store, ids = filled({name: [] for name in NAMES} | {"anna": wanted["anna"]} | others)
        with store:
            reader = lent(recall(max_expand_tokens=10**6, order="time"), store)
            tried = [partial(reader.grep, "words", mode="full_text"), partial(reader.grep, "shared")]
            seen.append([told(one) for one in (*tried, *(partial(reader.describe, one) for one in ids["anna"]))])
    assert seen[0] == seen[1]


def test_a_grant_of_summaries_shows_what_lies_beneath_them_alone(store: Store) -> None:
    talk(store, "anna", [f"word{i} shared" for i in range(4)])
    first, second = fold_all(store, "anna", [(0, 2), (1, 2)])
    (top,) = fold_all(store, "anna", [(0, 2)])
    reader = lent(recall(), store, summary_ids=[first])
    found = reader.grep("shared", mode="full_text")
    assert {hit.number for hit in found.messages} == {1, 2}
    described = reader.describe(first)
    assert described.derived_ids == ()  # type: ignore[union-attr]
    assert [said.number for said in reader.expand([first], has_messages=True).roots[0].messages] == [1, 2]
    for outside in (second, top):
        with pytest.raises(GrantError, match="does not cover"):
            reader.describe(outside)
        with pytest.raises(GrantError, match="does not cover"):
            reader.expand([outside])
    with pytest.raises(GrantError, match="does not cover 'msg#3'"):
        reader.messages([3])


def test_messages_of_another_conversation_beneath_a_leaf_are_not_shown(store: Store) -> None:
    """A store whose edges are wrong; nothing that writes makes them so."""
    talk(store, "anna", ["anna speaks"])
    talk(store, "berta", ["berta whispers a secret"])
    (leaf,) = fold_all(store, "anna", [(0, 1)])
    store._connection.execute("INSERT INTO summary_messages VALUES (?, 2, 1)", (leaf,))
    reader = lent(recall(), store)
    found = reader.expand([leaf], has_messages=True)
    assert [said.text for said in found.roots[0].messages] == ["anna speaks"]
    assert found.tokens == TOKENS.count(["anna speaks"])[0]
    owner = recall().on(store).expand([leaf], has_messages=True)
    assert [said.number for said in owner.roots[0].messages] == [1, 2]


def test_what_fits_is_marked_by_what_the_grant_has_left(store: Store) -> None:
    talk(store, "anna", ["one"])
    (leaf,) = fold_all(store, "anna", [(0, 1)])
    configured = recall(max_expand_tokens=100)
    reader = lent(configured, store)
    for wanted, budget in ((40, 40), (1000, 96)):  # a look at the summary, 15 characters, costs 4 tokens
        described = reader.describe(leaf, token_cap=wanted)
        assert isinstance(described, DescribedSummary)
        assert described.budget_tokens == budget


def test_an_unknown_item_is_refused_in_the_words_of_one_outside() -> None:
    store, ids = filled({name: [(0, 3)] for name in NAMES})
    with store:
        reader = lent(recall(), store)
        said = []
        for one in (ids["berta"][0], "sum_unknown", FILES["clara"]):
            with pytest.raises(GrantError) as refusal:
                reader.describe(one)
            said.append(str(refusal.value).replace(one, "ID"))
        assert len(set(said)) == 1
        with pytest.raises(GrantError, match="does not cover conversation"):
            reader.grep("shared", conversation="nobody")


def test_a_grant_that_has_ended_refuses_every_path() -> None:
    store, ids = filled({name: [(0, 3), (1, 2)] for name in NAMES})
    with store:
        for ends in ("revoked", "expired", "used up"):
            configured = recall()
            now = [START]
            reader = configured.grant_access(configured.on(store), [1, 2, 3], lambda now=now: now[0])
            if ends == "revoked":
                reader.grant.revoke()
            elif ends == "expired":
                now[0] += timedelta(seconds=configured.grant_ttl_seconds)
            else:
                reader.grant.take(reader.grant.token_cap)
            for attempt in attempts(reader, ids, 3):
                assert "refused: " in told(attempt)


def test_reading_is_paid_for(store: Store) -> None:
    talk(store, "anna", ["kettle " * 40, "kettle " * 40])
    configured = recall(max_expand_tokens=100)
    reader = lent(configured, store)
    found = reader.grep("[kettl ]+")
    assert len(found.messages) == 1
    assert "no tokens" in found.notes[-1]
    assert reader.remaining_tokens == 100 - TOKENS.count(["kettle " * 40])[0]
    with pytest.raises(LcmError, match="does not cover"):
        reader.messages([7])
    left = reader.remaining_tokens
    (said,) = reader.messages([1])
    assert said.is_clipped
    assert reader.remaining_tokens == left - said.tokens >= 0
