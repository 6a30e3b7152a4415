"""What becomes of the candidates of one extraction."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.errors import ModelError
from lcm.protocols.models import Vectors
from lcm.protocols.writing import Assessment, Deduplication
from lcm.records.conversation import Message
from lcm.records.document import ACTIONS, MEMORY_CATEGORIES, Candidate, Document
from lcm.writing.admission.amac import AdmitAll, Amac, BatchUtility
from lcm.writing.admission.intake import DocumentAnnotated, DocumentCreated, DocumentEnded, Intake, IntakeResult
from lcm.writing.deduplication import KeepAll, LineMerge, ModelJudge, NearestDocuments, RuleJudge, TwinsOnly
from tests.lcm.refusals import assert_refused
from tests.lcm.writing.admission.tables import (
    TOWARDS,
    UNEMBEDDABLE,
    Table,
    around,
    at_cosine,
    candidate,
    document,
    embed,
)
from tests.support.language_models import Replying
from tests.support.workspaces import minute

NOW = minute(60)


def deciding(decision: str, label: str | None = None) -> NearestDocuments:
    """Deduplication that always decides so about the nearest document."""
    reply = json.dumps({"decision": decision, "match_index": 1, "context_label": label})
    return NearestDocuments(ModelJudge(Replying(reply)), LineMerge())


def take(deduplication: Deduplication, one: Candidate, table: Table, vector: Vectors | None = TOWARDS) -> IntakeResult:
    (taken,) = Intake(AdmitAll(), deduplication).take_in([one], [vector], [NOW], around(table), incidents=Counter())
    return taken


def known(category: str, **values: Any) -> Table:
    return Table().holding((document("old", "Editor: vim", category, **values), 0.9))


def take_all(
    candidates: Sequence[Candidate], deduplication: Deduplication, table: Table, *said: str, admission: Any = None
) -> list[IntakeResult]:
    """What becomes of the candidates, all with one vector and of one instant."""
    count = len(candidates)
    return Intake(admission or AdmitAll(), deduplication).take_in(
        candidates, [TOWARDS] * count, [NOW] * count, around(table, *said), incidents=Counter()
    )


@pytest.mark.parametrize("action", ["merge", "supersede"])
def test_a_document_of_another_scope_is_not_taken_from_its_readers(action: str) -> None:
    taken = take(deciding(action), candidate("Editor: emacs", "preferences"), known("preferences", scope="user:ada"))
    (created,) = taken.changes
    assert (taken.decision.action, taken.decision.matched_id) == ("create", "old")
    assert taken.decision.reason.endswith("the document is of another scope")
    assert (created.document.scope, created.document.supersedes) == ("global", None)


def test_a_merge_is_a_new_document_in_the_place_of_the_old_one() -> None:
    old = {
        "importance": 0.9,
        "confidence": 0.7,
        "valid_until": minute(99),
        "temporal_type": "dynamic",
        "scope": "user:ada",
        "access_count": 4,
        "last_accessed_at": minute(9),
        "decay_tier": "core",
        "metadata": {"support_info": {"confirmations": 2, "contradictions": 1}, "mark": 1},
    }
    table = known("entities", **old)
    newer = replace(candidate("Editor: emacs", "preferences"), scope="user:ada")
    taken = take(deciding("merge", "work"), newer, table)
    created, ended = taken.changes
    assert isinstance(created, DocumentCreated)
    assert ended == DocumentEnded("old", NOW)
    version = created.document
    assert version.text == "Editor: emacs\nEditor: vim"
    assert version.source_message_ids == ("source of old", "m0")
    assert (version.created_at, version.valid_from, version.supersedes) == (minute(0), NOW, "old")
    assert (version.category, version.confidence, version.decay_tier) == ("preferences", 0.8, "working")
    kept = ("importance", "valid_until", "temporal_type", "scope", "access_count", "last_accessed_at")
    assert {name: getattr(version, name) for name in kept} == {name: old[name] for name in kept}
    assert version.metadata["fact_key"] == "entities:editor"
    assert version.metadata["mark"] == 1
    assert version.metadata["support_info"]["slices"][-1]["context"] == "work"
    assert version.metadata["support_info"]["total_observations"] == 4
    assert (created.vector == embed(["Editor: emacs\nEditor: vim"])).all()
    assert (taken.decision.action, taken.decision.matched_id) == ("merge", "old")
    assert taken.decision.document_id == version.document_id


def test_a_merge_that_cannot_be_made_creates() -> None:
    taken = take(replace(deciding("merge"), merging=None), candidate("Editor: emacs", "preferences"), known("entities"))
    assert [type(change) for change in taken.changes] == [DocumentCreated]
    assert (taken.decision.action, taken.decision.matched_id) == ("create", None)
    assert "it could not be merged into old" in taken.decision.reason


def test_what_supersedes_has_the_fact_key_and_the_old_one_ends() -> None:
    table = known("preferences", metadata={"fact_key": "preferences:the editor"})
    created, ended = take(deciding("supersede"), candidate("Editor: emacs", "preferences"), table).changes
    assert isinstance(created, DocumentCreated)
    assert ended == DocumentEnded("old", NOW)
    assert (created.document.supersedes, created.document.valid_from) == ("old", NOW)
    assert created.document.metadata == {"fact_key": "preferences:the editor"}


def test_what_contextualizes_stands_beside_and_holds_for_good() -> None:
    one = replace(candidate("Editor: emacs", "events"), valid_until=minute(90), temporal_type="dynamic")
    (created,) = take(deciding("contextualize", "work"), one, known("events")).changes
    assert isinstance(created, DocumentCreated)
    assert created.document.metadata == {
        "relations": [{"type": "contextualizes", "targetId": "old"}],
        "contexts": ["work"],
    }
    assert (created.document.valid_until, created.document.temporal_type) == (None, "static")
    assert created.document.last_accessed_at == NOW


@pytest.mark.parametrize(("label", "action"), [("general", "supersede"), (None, "contradict"), ("work", "contradict")])
def test_what_contradicts_a_replaceable_truth_in_general_supersedes_it(label: str | None, action: str) -> None:
    taken = take(deciding("contradict", label), candidate("Editor: emacs", "entities"), known("entities"))
    assert (taken.decision.action, taken.decision.matched_id) == (action, "old")


def test_a_twin_is_told_by_its_text_alone_and_only_the_first_is_taken_in() -> None:
    same = [candidate("aaaa", content="x", source="m0"), candidate("aaaa", content="completely else", source="m1")]
    vectors = [at_cosine(1.0), at_cosine(0.0)]
    for deduplication, again in ((TwinsOnly(), same), (KeepAll(), [same[0]] * 2)):  # or by the document that it makes
        first, second = Intake(AdmitAll(), deduplication).take_in(
            again, vectors, [NOW, NOW], around(Table(), "a", "b"), incidents=Counter()
        )
        assert first.decision.action == "create"
        assert second.changes == ()
        assert (second.decision.action, second.decision.matched_id) == ("duplicate", first.decision.document_id)


def test_candidates_see_what_became_of_those_before_them() -> None:
    said = ["Editor: vim", "Editor: vim, and nano", "Editor: emacs"]
    candidates = [candidate(text, "preferences", source=f"m{i}", content=text) for i, text in enumerate(said)]
    table = Table()
    taken = take_all(candidates, NearestDocuments(RuleJudge(), LineMerge(), batch_threshold=1.0), table, *said)
    assert [one.decision.action for one in taken] == ["create", "merge", "supersede"]
    assert taken[2].decision.matched_id == taken[1].decision.document_id
    assert [d.text for d in table.documents.values() if d.invalidated_at is None] == ["Editor: emacs"]


def test_one_that_fails_stops_no_other() -> None:
    candidates = [candidate(f"Editor: {UNEMBEDDABLE}", "preferences"), candidate("Editor: vi", "preferences")]
    failed, merged = take_all(candidates, replace(deciding("merge"), batch_threshold=1.0), known("preferences"))
    assert (failed.decision.action, failed.decision.reason, failed.changes) == ("fail", "no embedding", ())
    assert merged.decision.matched_id == "old"


def test_twins_that_cannot_be_embedded_are_not_looked_for(caplog: pytest.LogCaptureFixture) -> None:
    candidates = [candidate(UNEMBEDDABLE, content="x", source=f"m{i}") for i in range(2)]
    taken = take_all(candidates, TwinsOnly(), Table(), "a", "b")
    assert [one.decision.action for one in taken] == ["create", "create"]
    assert "no twins are looked for among 2 candidates: no embedding" in caplog.text


def test_what_is_refused_changes_nothing_and_the_audit_is_kept_whatever_is_decided() -> None:
    (taken,) = take_all([candidate("x")], KeepAll(), Table(), admission=Amac(reject_threshold=1.0, admit_threshold=1.0))
    assert (taken.decision.action, taken.changes) == ("reject", ())
    assert taken.decision.score is not None
    assert set(taken.decision.features) == {"utility", "confidence", "novelty", "recency", "type_prior"}
    assert taken.decision.audit["admission"]["decision"] == "reject"
    for decision in ("create", "supersede", "support"):
        one = candidate("Editor: emacs", "preferences")
        (taken,) = take_all([one], deciding(decision), known("preferences"), admission=Amac())
        assert taken.decision.action == decision
        assert taken.decision.audit["admission"]["decision"] == "pass_to_dedup"


def test_admission_may_look_at_all_candidates_that_are_no_twins_at_once() -> None:
    model = Replying('{"results": [{"index": 1, "utility": 1}, {"index": 2, "utility": 0.2}]}')
    gate = Amac(utility_veto=0.2, utility=BatchUtility(model))
    said = [candidate("Editor: emacs", "preferences"), candidate("Editor: emacs", "preferences", source="m1")]
    taken = Intake(gate, TwinsOnly()).take_in(
        [*said, candidate("unlike", "preferences")],
        [TOWARDS, TOWARDS, at_cosine(0)],
        [NOW] * 3,
        around(Table()),
        incidents=Counter(),
    )
    assert [one.decision.action for one in taken] == ["create", "duplicate", "reject"]
    assert len(model.asked) == 1


@dataclass
class Hearing:
    """Admission that keeps what it heard."""

    heard: list[tuple[list[str], datetime]] = field(default_factory=list)

    def assess(
        self, candidate: Candidate, vector: Any, neighbours: Any, messages: Sequence[Message], now: datetime, **_: Any
    ) -> Assessment:
        self.heard.append(([message.message_id for message in messages], now))
        return Assessment(True, "heard")


def test_admission_hears_the_conversation_up_to_the_candidate() -> None:
    admission = Hearing()
    candidates = [candidate("a", source="m1"), replace(candidate("b"), source_message_ids=("m0", "m2"))]
    times = [minute(1), minute(2)]
    Intake(admission, KeepAll()).take_in(
        candidates, [TOWARDS] * 2, times, around(Table(), *"abcd"), incidents=Counter()
    )
    assert admission.heard == [(["m0", "m1"], minute(1)), (["m0", "m1", "m2"], minute(2))]


@pytest.mark.parametrize(
    ("action", "label", "changes"),
    [
        ("create", None, [DocumentCreated, DocumentEnded]),
        ("merge", None, [DocumentCreated, DocumentEnded]),
        ("supersede", None, [DocumentCreated, DocumentEnded]),
        ("contextualize", "work", [DocumentCreated, DocumentEnded]),
        ("contradict", "work", [DocumentAnnotated, DocumentCreated, DocumentEnded]),
        ("support", None, [DocumentAnnotated]),
        ("skip", None, []),
    ],
)
def test_what_is_made_of_a_candidate_takes_the_place_that_it_names_and_no_other(action, label, changes):
    gone, call = document("gone", "look", "preferences", invalidated_at=NOW), document("call", "look at", "preferences")
    table = known("preferences").holding((gone, 0.95), (call, 0.99))
    later = replace(candidate("look at it: vim", "preferences"), supersedes=("gone", "call", "unknown"))
    taken = take(deciding(action, label), later, table)
    assert [type(change) for change in taken.changes] == changes
    assert taken.decision.matched_id in (None, "old")  # never compared with what it repeats
    made = [change.document.supersedes for change in taken.changes if isinstance(change, DocumentCreated)]
    ended = [change.document_id for change in taken.changes if isinstance(change, DocumentEnded)]
    assert made == ended == ["call"] * len(made)


def test_a_confidence_out_of_range_is_refused() -> None:
    assert_refused(partial(Intake, AdmitAll(), KeepAll()), "be in [0, 1]", merged_confidence=[-0.1, 1.1, float("nan")])


@dataclass
class Scripted:
    """A model whose replies were written before; then it fails."""

    replies: list[str]

    def reply(self, system: str, prompt: str, is_usable: object = None) -> str:
        if not self.replies:
            raise ModelError("nothing more to say")
        return self.replies.pop()


DECISIONS = st.fixed_dictionaries(
    {"decision": st.sampled_from(ACTIONS[:7]), "match_index": st.integers(0, 4)},
    optional={"context_label": st.sampled_from(["general", "work"])},
)
CANDIDATES = st.lists(
    st.tuples(
        st.sampled_from(["Editor: vim", "Editor: emacs", "tea", f"tea: {UNEMBEDDABLE}", "I like tea from Lipton"]),
        st.sampled_from([*MEMORY_CATEGORIES, "other"]),
        st.sampled_from(["", "more about it"]),
        st.sampled_from([None, 1.0, 0.99, 0.8, 0.6, -1.0]),
    ),
    max_size=12,
)


@given(
    drawn=CANDIDATES,
    replies=st.lists(DECISIONS.map(json.dumps) | st.just("?"), max_size=20),
    threshold=st.sampled_from([0.0, 0.5, 0.7]),
    by=st.sampled_from(["model", "rule", "twins", "off"]),
)
def test_nothing_is_lost(drawn: list[Any], replies: list[str], threshold: float, by: str) -> None:
    deduplication: Deduplication = {
        "model": NearestDocuments(ModelJudge(Scripted(list(replies))), LineMerge()),
        "rule": NearestDocuments(RuleJudge(), LineMerge(), batch_threshold=0.999),
        "twins": TwinsOnly(),
        "off": KeepAll(),
    }[by]
    admission = Amac(reject_threshold=threshold, admit_threshold=1.0) if threshold else AdmitAll()
    candidates = [candidate(text, category, content, f"m{i}") for i, (text, category, content, _) in enumerate(drawn)]
    vectors = [None if cosine is None else at_cosine(cosine) for *_, cosine in drawn]
    table = Table()
    times = [minute(i) for i in range(len(drawn))]
    taken = Intake(admission, deduplication).take_in(
        candidates, vectors, times, around(table, *(text for text, *_ in drawn)), incidents=Counter()
    )

    assert [one.decision.candidate for one in taken] == candidates
    assert [one.decision.decided_at for one in taken] == times
    for one in taken:
        created = [change.document for change in one.changes if isinstance(change, DocumentCreated)]
        assert [found.document_id for found in created] == [i for i in [one.decision.document_id] if i is not None]
        assert bool(created) == (one.decision.action in ("create", "merge", "supersede", "contextualize", "contradict"))
        for made in created:
            assert set(one.decision.candidate.source_message_ids) <= set(made.source_message_ids)
            assert one.decision.candidate.text in made.text
        ended = [change.document_id for change in one.changes if isinstance(change, DocumentEnded)]
        assert ended == [made.supersedes for made in created if made.supersedes is not None]
        if one.decision.matched_id is not None:
            assert one.decision.matched_id in table.documents
    _check_histories(table.documents)


def _check_histories(documents: dict[str, Document]) -> None:
    followers = Counter(found.supersedes for found in documents.values() if found.supersedes is not None)
    ended = {found.document_id for found in documents.values() if found.invalidated_at is not None}
    assert set(followers) == ended
    assert set(followers.values()) <= {1}
    for found in documents.values():
        if found.supersedes is not None:
            assert found.valid_from == documents[found.supersedes].invalidated_at
