"""Haystacks: pooled, and with distractors among what is judged; no judgement changes."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.dataset.dataset import QUOTATIONS_SCHEMA, SESSION_QRELS_SCHEMA, Dataset
from eval.dataset.sample import Sample
from eval.measures.retention import Retention
from eval.measures.retrieval import Retrieval
from eval.replay.haystack import POOLED
from eval.replay.workspace_replay import Bulk, PerTurn
from lcm.errors import DatasetError, LcmError
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from tests.eval.tiny import tiny
from tests.support.experiments import outcome
from tests.support.workspaces import minute, system

WORDS = ("red", "green", "blue", "gold", "grey")


def talk(workspace: str, start: int, length: int, conversation: str = "talk", prefix: str = "") -> Transcript:
    """Messages m0, m1 ... a minute apart, four to a session: ids that other workspaces use as well."""
    messages = tuple(
        Message(f"{prefix}m{i}", "user", f"{workspace} {WORDS[i % 5]} {i}", f"s{i // 4}", minute(start + i))
        for i in range(length)
    )
    return Transcript(f"{conversation} of {workspace}", messages, workspace_id=workspace)


def dataset(shape: Mapping[str, tuple[int, int]]) -> Dataset:
    """Workspace -> when its conversation begins and how long it is; each message is asked for when all is said."""
    talks = {workspace: talk(workspace, start, length) for workspace, (start, length) in shape.items()}
    queries = [
        (Query(f"{workspace}/{message.message_id}", message.content, one.messages[-1].created_at, workspace), message)
        for workspace, one in talks.items()
        for message in one.messages
    ]
    judged, by_session = (
        [(q.query_id, getattr(m, one), 1) for q, m in queries] for one in ("message_id", "session_id")
    )
    sessions = pl.DataFrame(by_session, schema=SESSION_QRELS_SCHEMA, orient="row")
    asked = (query for query, _ in queries)
    return tiny(talks.values(), asked, judged, protocol="unit=message", session_qrels=sessions)


def seeing_evidence(data: Dataset) -> Dataset:
    evidence = data.evidence()
    return replace(data, queries=tuple(replace(q, shown_message_ids=tuple(evidence[q.query_id])) for q in data.queries))


def others(conversations: int = 4, length: int = 30) -> dict[str, Dataset]:
    talks = tuple(talk(f"other {i}", 10_000, length) for i in range(conversations))
    return {"others": replace(dataset({}), name="others", transcripts=talks)}


def words_of(laid: Dataset) -> dict[str, dict[str, tuple[str, datetime]]]:
    """Workspace -> message id -> its words, and when it is known to have been said."""
    found: dict[str, dict[str, tuple[str, datetime]]] = {}
    for one in laid.transcripts:
        of_place = found.setdefault(one.workspace_id, {})
        for message, at in zip(one.messages, one.instants(), strict=True):
            assert message.message_id not in of_place
            of_place[message.message_id] = message.content, at
    return found


SHAPES = st.dictionaries(st.sampled_from("abcd"), st.tuples(st.integers(0, 60), st.integers(1, 25)), min_size=1)
WAYS = st.sampled_from(("own", "pooled"))


@given(SHAPES, WAYS, st.integers(0, 120), st.integers(0, 3))
@settings(max_examples=40)
def test_every_query_keeps_its_evidence_and_distractors_are_judged_by_nobody_and_dated_among_the_others(
    shape: dict[str, tuple[int, int]], haystack: str, distractors: int, seed: int
) -> None:
    plain = seeing_evidence(dataset(shape))
    laid = Bulk(haystack, distractors, seed).laid_out(plain, others)
    said, before = words_of(laid), words_of(plain)
    queries, evidence = {query.query_id: query for query in laid.queries}, laid.evidence()
    session_of = {(t.workspace_id, m.message_id): m.session_id for t in laid.transcripts for m in t.messages}
    sessions = {query_id: session for query_id, session, _ in laid.session_qrels.iter_rows()}
    assert list(queries) == [query.query_id for query in plain.queries]
    judged = set()
    for query in plain.queries:
        now, (relevant,) = queries[query.query_id], evidence[query.query_id]
        assert (now.asked_at, now.text, now.category) == (query.asked_at, query.text, query.category)
        assert laid.origin(now) == query.workspace_id
        words, at = said[now.workspace_id][relevant]
        assert words == query.text, "the very message that was judged"
        assert now.shown_message_ids == (relevant,)
        assert at <= now.asked_at
        assert session_of[now.workspace_id, relevant] == sessions[query.query_id]
        judged.add((now.workspace_id, relevant))
    is_pooled = haystack == "pooled" and laid is not plain
    sizes = {POOLED: sum(map(len, before.values()))} if is_pooled else {one: len(of) for one, of in before.items()}
    assert {place: len(found) for place, found in said.items()} == {n: size + distractors for n, size in sizes.items()}

    judged |= {(queries[query_id].workspace_id, session) for query_id, session in sessions.items()}
    instants_of = {one: {at for _, at in found.values()} for one, found in before.items()}
    own = {words for found in before.values() for words, _ in found.values()}
    for one in laid.transcripts:
        if one.messages[0].content not in own:
            assert not judged & {
                (one.workspace_id, name) for m in one.messages for name in (m.message_id, m.session_id)
            }
            times = [message.created_at for message in one.messages]
            assert times == sorted(times)
            hosts = instants_of.values() if haystack == "pooled" else [instants_of[one.workspace_id]]
            assert any(set(times) <= host for host in hosts), "the times of one conversation"


def test_corrected_and_quoted_evidence_is_laid_out_like_the_recorded() -> None:
    data = dataset({"a": (0, 3), "b": (5, 3)})
    quotations = data.qrels.select("query_id", "message_id", evidence=pl.lit(1), quotation=pl.lit("as it says"))
    laid = Bulk(haystack="pooled").laid_out(
        replace(data, repaired_qrels=data.qrels, quotations=quotations.select(list(QUOTATIONS_SCHEMA))), others
    )
    assert laid.repaired_qrels is not None
    assert laid.repaired_qrels.equals(laid.qrels)
    assert laid.quotations["message_id"].equals(laid.qrels["message_id"])


def test_equal_settings_give_equal_haystacks_and_more_distractors_hold_the_fewer() -> None:
    plain = dataset({"a": (0, 20), "b": (10, 20)})

    def laid(distractors: int, seed: int = 0) -> Dataset:
        return Bulk("pooled", distractors, seed).laid_out(plain, others)

    assert laid(70).transcripts == laid(70).transcripts
    assert laid(70).digest == laid(70).digest
    assert laid(70).transcripts != laid(70, seed=1).transcripts
    digests = [laid(70).digest, laid(70, seed=1).digest, laid(71).digest, laid(0).digest, plain.digest]
    assert len(set(digests)) == len(digests)
    whole = {m.content for one in laid(100).transcripts for m in one.messages}
    assert {m.content for one in laid(70).transcripts for m in one.messages} <= whole
    assert all(replay.laid_out(plain, others) is plain for replay in (Bulk(), PerTurn(), Bulk(seed=7)))


def test_the_protocol_and_the_flags_tell_of_the_haystack() -> None:
    laid = Bulk("pooled", 30).laid_out(dataset({"a": (0, 20), "b": (10, 20)}), others)
    assert "haystack=pooled distractors=30 seed=0 from=[others unit=message]" in laid.protocol
    found = outcome(laid, system(), {"retrieval": Retrieval()})
    assert found.flags[0] == "all 2 workspaces are searched as one (replay.haystack=pooled)"
    assert found.flags[1].startswith("30 messages of each haystack are distractors (others unit=message)")
    assert found.counts["workspaces"] == 1
    assert found.counts["messages"] == 70
    assert 20 < found.counts["messages_a_query"] <= 70


def test_too_few_messages_and_a_second_layout_are_refused() -> None:
    plain = dataset({"a": (0, 5)})
    with pytest.raises(DatasetError, match=r"replay.distractors=121: .* holds 120 messages .*distractors.transcripts"):
        Bulk(distractors=121).laid_out(plain, others)
    with pytest.raises(DatasetError, match="holds 0 messages"):  # what is judged is no distractor
        Bulk(distractors=1).laid_out(plain, lambda: {"itself": plain})
    laid = Bulk(distractors=3).laid_out(plain, others)
    assert Bulk(distractors=3).laid_out(laid, others) is laid
    with pytest.raises(LcmError, match=r"laid into haystacks by haystack=own distractors=3 .* haystack=pooled"):
        Bulk("pooled").laid_out(laid, others)


def test_the_sample_pooled_is_answered_from_all_of_it_and_keeps_its_contexts() -> None:
    """What ranking finds changes; a context is that of the query's own conversation, as it was."""
    measures = {"retrieval": Retrieval(), "retention": Retention(budgets=[1000])}
    plain = Sample().load()
    own, pooled, turns = (
        outcome(replay.laid_out(plain, dict), system(), measures, replay=replay)
        for replay in (Bulk(), Bulk("pooled"), PerTurn("pooled"))
    )
    retained = [one.values.filter(measure="retained@1000").sort("query_id") for one in (own, pooled, turns)]
    assert retained[0].equals(retained[1])
    assert retained[0].equals(retained[2])
    assert pooled.values.sort("query_id", "measure").equals(turns.values.sort("query_id", "measure"))
    assert set(pooled.values["query_id"]) == set(own.values["query_id"])
    in_all, in_own = (one.means.filter(group="all", measure="recall@10")["value"][0] for one in (pooled, own))
    assert 0 < in_all <= in_own


def test_a_new_id_is_none_that_another_message_bears() -> None:
    """The second workspace's m0 becomes m0@b; what the third calls so already becomes another."""
    parts = dataset({"a": (0, 2), "b": (0, 2), "c": (0, 2)})

    def renamed(one: Transcript) -> Transcript:
        end = "@b" if one.workspace_id == "c" else ""
        messages = tuple(replace(message, message_id=message.message_id + end) for message in one.messages)
        return replace(one, conversation_id=f"talk{end}", messages=messages)

    end = pl.when(pl.col("query_id").str.starts_with("c/")).then(pl.lit("@b")).otherwise(pl.lit(""))
    qrels = parts.qrels.with_columns(message_id=pl.col("message_id") + end)
    whole = replace(parts, transcripts=tuple(map(renamed, parts.transcripts)), qrels=qrels)
    laid = Bulk(haystack="pooled").laid_out(whole, dict)
    words = {message.message_id: message.content for one in laid.transcripts for message in one.messages}
    assert len(words) == 6
    assert len({one.conversation_id for one in laid.transcripts}) == 3
    asked = {query.query_id: query.text for query in laid.queries}
    assert all(words[message] == asked[query] for query, message, _ in laid.qrels.iter_rows())
