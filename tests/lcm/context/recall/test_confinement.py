"""Nothing from outside a grant comes through any path of recall: no words, no ids, no counts."""

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.context.recall.describe import DescribedSummary
from lcm.context.recall.reader import Reader
from lcm.context.recall.tools import Tools
from lcm.errors import GrantError, LcmError
from lcm.records.conversation import Message
from lcm.store.store import Store
from lcm.transcript.large_files import intercepted
from lcm.transcript.parts import decompose
from tests.lcm.context.recall.dags import START, TOKENS, fold_all, folds, recall, talk

NAMES = ("anna", "berta", "clara")
FILES: dict[str, str] = {}
"""Conversation to the id of its large file; the same in every store."""


def filled(wanted: dict[str, list[tuple[int, int]]]) -> tuple[Store, dict[str, list[str]]]:
    """Three conversations, each of words of its own beside words that all have; and their summaries."""
    store = Store()
    ids = {}
    for name in NAMES:
        talk(store, name, [f"{name}word{i} shared 会議{name} words" for i in range(6)])
        text = f"{name}secret of a large file"
        holding = decompose({"role": "user", "content": f'<file name="{name}.txt">{text}</file>'})
        holder = Message(
            f"{name}:file", "user", holding.content, "session", START, parts=holding.parts, envelope=holding.envelope
        )
        holder = intercepted(holder, 1, TOKENS, lambda *_, name=name: f"{name}explored")
        FILES[name] = holder.files[0].file_id
        store.append(name, [holder], TOKENS)
        ids[name] = fold_all(store, name, wanted[name])
    return store, ids


def attempts(reader: Reader, ids: dict[str, list[str]], numbers: int) -> list[Callable[[], object]]:
    """Every way to read anything."""
    everything = [one for made in ids.values() for one in made]
    modes = [("shared", "full_text"), ("会議", "full_text"), ("\\w+word\\d", "regex"), ("word", "full_text")]
    tried: list[Callable[[], object]] = [
        lambda p=p, m=m, c=c: reader.grep(p, mode=m, conversation=c)  # type: ignore[misc]
        for p, m in modes
        for c in (None, *NAMES, 1, 2, 3)
    ]
    tried += [lambda one=one: reader.describe(one) for one in [*everything, *FILES.values()]]  # type: ignore[misc]
    tried += [lambda one=one: reader.describe(one, content=True) for one in FILES.values()]  # type: ignore[misc]
    tried += [
        lambda one=one: reader.expand([one], depth=9, token_cap=10**6, has_messages=True)  # type: ignore[misc]
        for one in everything
    ]
    tried += [lambda: reader.expand(everything, depth=9, has_messages=True)]
    tried += [lambda n=n: reader.messages([n]) for n in range(1, numbers + 1)]  # type: ignore[misc]
    tools = Tools(recall(), reader, lambda: START, "anna")
    calls = [
        *(("lcm_grep", {"pattern": "shared", "mode": "full_text", "allConversations": True}),),
        *(("lcm_grep", {"pattern": "shared", "conversationId": n}) for n in (1, 2, 3)),
        *(("lcm_describe", {"id": one, "allConversations": True}) for one in everything),
        *(("lcm_expand", {"summaryIds": [one], "allConversations": True, "maxDepth": 9}) for one in everything),
        ("lcm_expand", {"query": "words", "allConversations": True}),
        ("lcm_expand_query", {"prompt": "words", "query": "words", "allConversations": True}),
    ]
    tried += [lambda name=name, given=given: tools.call(name, given).text for name, given in calls]  # type: ignore[misc]
    return tried


def told(attempt: Callable[[], object]) -> str:
    try:
        found = attempt()
    except GrantError as refusal:
        return f"refused: {refusal}"
    if isinstance(found, str):
        return found
    parts = found if isinstance(found, list) else [found]
    return json.dumps(
        [asdict(p) if hasattr(p, "__dataclass_fields__") else p for p in parts], default=str, ensure_ascii=False
    )


@given(st.fixed_dictionaries(dict.fromkeys(NAMES, folds)), st.data())
def test_a_grant_of_conversations_shows_nothing_of_the_others(
    wanted: dict[str, list[tuple[int, int]]], data: st.DataObject
) -> None:
    inside = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
    store, ids = filled(wanted)
    with store:
        configured = recall(max_expand_tokens=10**6, rules=data.draw(st.sampled_from(["corrected", "original"])))
        rows = [NAMES.index(name) + 1 for name in inside]
        asked = {one for made in ids.values() for one in made} | set(FILES.values())
        _, reader = configured.grant_access(configured.on(store), rows, lambda: START)
        for attempt in attempts(reader, ids, 21):
            text = told(attempt)
            for name in set(NAMES) - set(inside):
                if text.startswith(("refused: ", '{\n  "error"')):
                    assert not any(f"{name}{rest}" in text for rest in ("word", "fold", "secret", "explored"))
                    continue
                assert name not in text
                assert not any(one in text for one in asked & {*ids[name], FILES[name]})


@given(st.fixed_dictionaries(dict.fromkeys(NAMES, folds)))
def test_what_a_grant_sees_does_not_change_with_what_it_does_not_see(wanted: dict[str, list[tuple[int, int]]]) -> None:
    counts = []
    for others in ({}, {"berta": [(0, 2), (0, 2)], "clara": [(1, 4)]}):
        store, ids = filled({name: [] for name in NAMES} | {"anna": wanted["anna"]} | others)
        with store:
            configured = recall(max_expand_tokens=10**6, order="time")
            _, reader = configured.grant_access(configured.on(store), [1], lambda: START)
            tried = [partial(reader.grep, "words", mode="full_text"), partial(reader.grep, "shared")]
            counts.append([told(one) for one in (*tried, *(partial(reader.describe, one) for one in ids["anna"]))])
    assert counts[0] == counts[1]


def test_a_grant_of_summaries_shows_what_lies_beneath_them_alone() -> None:
    with Store() as store:
        talk(store, "anna", [f"word{i} shared" for i in range(4)])
        first, second = fold_all(store, "anna", [(0, 2), (1, 2)])
        (top,) = fold_all(store, "anna", [(0, 2)])
        configured = recall()
        _, reader = configured.grant_access(configured.on(store), [1], lambda: START, summary_ids=[first])
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


def test_messages_of_another_conversation_beneath_a_leaf_are_not_shown() -> None:
    """A store whose edges are wrong; nothing that writes makes them so."""
    with Store() as store:
        talk(store, "anna", ["anna speaks"])
        talk(store, "berta", ["berta whispers a secret"])
        (leaf,) = fold_all(store, "anna", [(0, 1)])
        store._connection.execute("INSERT INTO summary_messages VALUES (?, 2, 1)", (leaf,))
        configured = recall()
        _, reader = configured.grant_access(configured.on(store), [1], lambda: START)
        found = reader.expand([leaf], has_messages=True)
        assert [said.text for said in found.roots[0].messages] == ["anna speaks"]
        assert found.tokens == TOKENS.count(["anna speaks"])[0]
        owner = configured.on(store).expand([leaf], has_messages=True)
        assert [said.number for said in owner.roots[0].messages] == [1, 2]


def test_what_fits_is_marked_by_what_the_grant_has_left() -> None:
    with Store() as store:
        talk(store, "anna", ["one"])
        (leaf,) = fold_all(store, "anna", [(0, 1)])
        configured = recall(max_expand_tokens=100)
        _, reader = configured.grant_access(configured.on(store), [1], lambda: START)
        for wanted, budget in ((40, 40), (1000, 96)):  # a look at the summary, 15 characters, costs 4 tokens
            described = reader.describe(leaf, token_cap=wanted)
            assert isinstance(described, DescribedSummary)
            assert described.budget_tokens == budget


def test_an_unknown_item_is_refused_in_the_words_of_one_outside() -> None:
    store, ids = filled({name: [(0, 3)] for name in NAMES})
    with store:
        configured = recall()
        _, reader = configured.grant_access(configured.on(store), [1], lambda: START)
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
            grant, reader = configured.grant_access(configured.on(store), [1, 2, 3], lambda now=now: now[0])
            if ends == "revoked":
                configured.delegations.grants.revoke(grant.grant_id)
            elif ends == "expired":
                now[0] += timedelta(seconds=configured.grant_ttl_seconds)
            else:
                configured.delegations.grants.consume(grant.grant_id, grant.token_cap, START)
            for attempt in attempts(reader, ids, 3):
                text = told(attempt)
                assert "refused: " in text or '"error"' in text


def test_reading_is_paid_for() -> None:
    with Store() as store:
        talk(store, "anna", ["kettle " * 40, "kettle " * 40])
        configured = recall(max_expand_tokens=100)
        _, reader = configured.grant_access(configured.on(store), [1], lambda: START)
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
