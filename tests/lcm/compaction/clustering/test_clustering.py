from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.compaction.clustering.cluster_partition import partition
from lcm.compaction.clustering.clustering import Clustering
from lcm.compaction.guidance.none import NoGuidance
from lcm.compaction.guidance.protected import ProtectedGuidance
from lcm.compaction.guidance.scanner import ByteScanner
from lcm.compaction.lockstep import run
from lcm.compaction.summarizer.centroid import Centroid
from lcm.compaction.summarizer.routed import Routed
from lcm.compaction.window import StoredWindow
from lcm.errors import AuthError, ModelError
from lcm.protocols.compaction import Guidance, Summarizer
from lcm.protocols.models import Vectors
from lcm.records.conversation import Message
from lcm.records.summary import GuidanceShard, SummaryRequest, SummaryResult
from lcm.retrieval.embedder.hashing import Hashing
from lcm.store.doctor import scan
from lcm.store.guidance import read_undocumented_shards
from lcm.store.lineage import messages_beneath
from lcm.store.store import Store
from lcm.token_estimator.utf16_units import Utf16Units
from tests.lcm.compaction.contexts import NOW, Stub, conversation, message

FEW = settings(max_examples=25, deadline=None)
EMBEDDER = Hashing()
TALK = [f"turn {number}: the parser reads file {number % 7} and the weather is fine again" for number in range(60)]


class Marked:
    """Protects what begins with an exclamation mark."""

    def shards(
        self, messages: Sequence[Message], conversation_id: str, now: datetime, *, incidents: Counter[str]
    ) -> list[GuidanceShard | None]:
        return [
            GuidanceShard(one.message_id, conversation_id, one.content, now, "words", 0.5, "session_turn", 3)
            if one.content.startswith("!")
            else None
            for one in messages
        ]


class Silent(Hashing):
    """An embedder whose model is gone."""

    def embed(self, texts: Sequence[str], kind: Any) -> Vectors:
        raise ModelError("gone")


def clustering(summarizer: Summarizer | None = None, guidance: Guidance | None = None, **fields: Any) -> Clustering:
    return Clustering(summarizer or Centroid(EMBEDDER), guidance or NoGuidance(), Utf16Units(), EMBEDDER, **fields)


def compacted(
    compaction: Clustering,
    store: Store,
    window: StoredWindow | None = None,
    incidents: Counter[str] | None = None,
    **how: Any,
) -> Any:
    incidents = Counter() if incidents is None else incidents
    work = compaction.compact(window or StoredWindow(store, "c"), NOW, **how, incidents=incidents)
    return run(work, compaction.summarizer, incidents=incidents)


def shards_of(store: Store) -> list[str]:
    with store.reading() as connection:
        return [shard.message_id for shard in read_undocumented_shards(connection)]


def require_clean(store: Store) -> None:
    assert [check for check in scan(store._connection) if check.status != "pass"] == []


@given(count=st.integers(0, 500), size=st.integers(1, 60))
def test_clusters_are_neighbours_cover_all_and_differ_by_one_at_most(count: int, size: int) -> None:
    clusters = partition(count, size)
    assert [place for cluster in clusters for place in cluster] == list(range(count))
    assert len(clusters) == -(-count // size)
    assert all(place * len(clusters) // count == i for i, cluster in enumerate(clusters) for place in cluster)
    sizes = {len(cluster) for cluster in clusters}
    assert not sizes or max(sizes) - min(sizes) <= 1


WORDS = st.lists(
    st.builds(
        lambda mark, word, times: mark + word * times,
        st.sampled_from(["", "", "!"]),
        st.sampled_from(["word ", "茶", "parser reads "]),
        st.integers(0, 25),
    ),
    max_size=40,
)
SETTINGS = st.fixed_dictionaries(
    {
        "target_cluster_size": st.integers(1, 9),
        "min_turns": st.integers(0, 6),
        "tail_budget_tokens": st.integers(0, 90),
        "rules": st.sampled_from(["corrected", "original", "1.4.4"]),
        "prior_context_tokens": st.integers(0, 60),
    }
)
NONSENSE = st.sampled_from(["centroid", "echo", "empty", "short", "failing", "longer"])


def summarizer(name: str) -> Summarizer:
    if name == "centroid":
        return Centroid(EMBEDDER)
    if name == "failing":
        return Stub(lambda _: "", ModelError("the model is gone"))
    answers = {"echo": lambda r: r.text, "empty": lambda _: "", "short": lambda _: "s", "longer": lambda r: r.text * 2}
    return Stub(answers[name])


@FEW
@given(words=WORDS, numbers=SETTINGS, who=NONSENSE)
def test_nothing_is_lost_and_a_second_run_changes_nothing(words: list[str], numbers: dict[str, Any], who: str) -> None:
    compaction = clustering(summarizer(who), Marked(), **numbers)
    store = conversation(["begin", *words])
    raw, tokens = store.messages("c"), {one.item_id: one.tokens for one in store.context("c")}
    window = StoredWindow(store, "c")
    planned = [[entry.item_id for entry in cluster] for cluster in compaction.clusters(window)]
    tail = [one.message_id for one in raw][len(raw) - numbers["min_turns"] :] if numbers["min_turns"] else []
    report = compacted(compaction, store)
    assert store.messages("c") == raw
    context = store.context("c")
    standing = [entry.item_id for entry in context if entry.is_message]
    summaries = store.summaries("c")
    assert set(tail) <= set(standing)
    below = [one for summary in summaries for one in summary.source_ids]
    kept = shards_of(store)
    assert sorted([*standing, *below, *kept]) == sorted(one.message_id for one in raw), "each is reached once"
    assert kept == [] or all(raw[[m.message_id for m in raw].index(one)].content.startswith("!") for one in kept)
    for summary in summaries:
        assert summary.source_ids
        assert 0 <= summary.confidence <= 1
        with store.reading() as connection:
            assert messages_beneath(connection, [summary.summary_id]) == list(summary.source_ids)
        cluster = next((one for one in planned if set(summary.source_ids) <= set(one)), None)
        if cluster is not None:
            assert summary.token_count < sum(tokens[one] for one in cluster)
    assert report.tokens_after == sum(entry.tokens for entry in context) <= report.tokens_before
    require_clean(store)
    again = compacted(replace(compaction), store)
    assert (again.is_compacted, store.context("c"), shards_of(store)) == (False, context, kept)


@settings(max_examples=10, deadline=None)
@given(words=WORDS, numbers=SETTINGS)
def test_equal_histories_give_equal_summaries_and_a_staged_run_gives_the_same(
    words: list[str], numbers: dict[str, Any]
) -> None:
    compaction = clustering(None, Marked(), **numbers)
    plain, staged = conversation(["begin", *words]), conversation(["begin", *words])
    before = staged.context("c")
    compacted(compaction, plain)
    window = StoredWindow(staged, "c")
    with window.staged():
        run(compaction.compact(window, NOW, incidents=Counter()), compaction.summarizer, incidents=Counter())
    assert list(window.entries) == before, "what is not applied is forgotten"
    with window.staged():
        run(compaction.compact(window, NOW, incidents=Counter()), compaction.summarizer, incidents=Counter())
        assert staged.summaries() == []
        window.apply()
    assert staged.summaries() == plain.summaries()
    assert [one.item_id for one in staged.context("c")] == [one.item_id for one in plain.context("c")]
    assert list(window.entries) == staged.context("c")
    assert shards_of(staged) == shards_of(plain)


def test_shards_and_summary_are_written_together_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    store = conversation(["!never push on friday", *TALK[:20]])
    before = store.context("c")

    def torn(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "replace_range", torn)
    with pytest.raises(KeyboardInterrupt):
        compacted(clustering(guidance=Marked()), store)
    assert (store.context("c"), shards_of(store), store.summaries()) == (before, [], [])
    monkeypatch.undo()
    compacted(clustering(guidance=Marked()), store)
    assert (shards_of(store), len(store.summaries())) == (["c-m1"], 1)


def test_a_model_failure_keeps_the_cluster_and_its_guidance() -> None:
    store = conversation(["!never push on friday", *TALK[:20]])
    before = store.context("c")
    report = compacted(clustering(Stub(lambda _: "", ModelError("the model is gone")), Marked()), store)
    assert (report.reason, report.failure, store.context("c")) == ("the model is gone", "the model is gone", before)


def test_a_failing_abstractive_summarizer_lets_the_turns_words_stand_in() -> None:
    routed = Routed(Centroid(EMBEDDER), Stub(lambda _: "", ModelError("gone")), threshold=0.0)
    store = conversation(TALK[:24])
    incidents = Counter[str]()
    assert compacted(clustering(routed), store, incidents=incidents).is_compacted
    assert {one.method for one in store.summaries()} == {"extractive"}
    assert incidents == {"abstractive gave no summary: extractive stood in": 1}


def test_a_run_of_guidance_alone_leaves_shards_and_no_summary() -> None:
    store = conversation(["!never push", "!always test", *TALK[:4]])
    compaction = clustering(guidance=Marked(), target_cluster_size=2, min_turns=4, tail_budget_tokens=1)
    compacted(compaction, store)
    assert (shards_of(store), store.summaries(), len(store.context("c"))) == (["c-m1", "c-m2"], [], 4)


def test_turns_without_words_are_covered_and_never_chosen() -> None:
    said = [text for turn in TALK[:6] for text in ("", turn, " \n")]
    store = conversation(said)
    incidents = Counter[str]()
    assert compacted(clustering(min_turns=0), store, incidents=incidents).reason == "compacted"
    [summary] = store.summaries()
    assert [text for text in TALK[:6] if text in summary.content] and not incidents
    assert len(summary.source_ids) == len(said) == 18
    assert len([text for text in TALK[:6] if text in summary.content]) == 3  # ceil(6 * 0.4), of those with words


def test_a_cluster_without_words_is_counted_once_and_warned_of_never(caplog: pytest.LogCaptureFixture) -> None:
    store = conversation(["", "...", "", *TALK[:4]])
    compaction, window, incidents = clustering(tail_budget_tokens=1), StoredWindow(store, "c"), Counter[str]()
    for _ in range(3):
        report = compacted(compaction, store, window, incidents)
        assert (report.reason, report.failure) == ("nothing to compact", "")
        assert incidents == {"cluster without words: left as it is": 1}
    store.append("c", [message(50, "")], Utf16Units())  # the cluster grows by a turn of the tail
    assert [len(one) for one in compaction.clusters(StoredWindow(store, "c"))] == [4]
    assert compacted(clustering(Stub(lambda _: "")), conversation(["", "...", *TALK[:4]])).failure == ""
    assert caplog.records == []


def test_failing_clusters_of_a_conversation_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    compaction = clustering(Stub(lambda _: "", ModelError("the model is gone")), target_cluster_size=5)
    store = conversation(TALK[:24])
    window = StoredWindow(store, "c")
    assert [compacted(compaction, store, window).failure for _ in range(2)] == ["the model is gone"] * 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert len(store.compactions().filter(event="failure")) == 2 * 4  # each is noted


def test_the_first_failure_is_the_reports_and_the_others_are_noted() -> None:
    class Failing:
        count = 0

        def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
            self.count += 1
            return [SummaryResult("", 0.0, "failing", failure=ModelError(f"failure {self.count}"))] * len(requests)

    store = conversation(TALK[:24])
    report = compacted(clustering(Failing(), target_cluster_size=5, min_turns=0), store)
    noted = store.compactions().filter(event="failure")["detail"].to_list()
    assert noted == [f"failure {number}" for number in (2, 4, 6, 8, 10)]  # each cluster is asked for twice
    assert (report.failure, report.reason) == ("failure 2", "failure 2")


def test_after_refused_credentials_no_other_cluster_is_tried() -> None:
    refusing = Stub(lambda _: "", AuthError("key refused"))
    report = compacted(clustering(refusing, target_cluster_size=5, min_turns=0), conversation(TALK[:24]))
    assert (report.reason, report.has_failed_auth) == ("provider auth failure", True)
    assert len(refusing.requests) == 1


def test_a_cluster_of_which_nothing_is_less_is_not_asked_for_again() -> None:
    longer = Stub(lambda request: request.text * 2)
    compaction, store = clustering(longer), conversation(TALK[:24])
    window = StoredWindow(store, "c")
    compacted(compaction, store, window)
    asked = len(longer.requests)
    assert asked
    assert compacted(compaction, store, window).reason == "nothing to compact"
    assert len(longer.requests) == asked
    compacted(compaction, store)  # a new window does not know yet
    assert len(longer.requests) == 2 * asked


def test_what_guidance_survives_is_counted_with_what_compaction_does() -> None:
    guidance = ProtectedGuidance(ByteScanner(), booster_embedder=Silent())
    compaction, incidents = clustering(guidance=guidance, tail_budget_tokens=1), Counter[str]()
    compacted(compaction, conversation(["we should consider the weather", *TALK[:8]]), incidents=incidents)
    assert set(incidents) == {"guidance prototype not embedded"}


def test_a_single_message_is_declined() -> None:
    store = conversation(TALK[:6])
    report = compacted(clustering(target_cluster_size=1, min_turns=1, tail_budget_tokens=1), store)
    assert (report.is_compacted, report.reason) == (False, "nothing to compact")


def alternating() -> Store:
    store = Store(opened_at=NOW)
    said = [message(i, text, "assistant" if i % 2 else "user") for i, text in enumerate(TALK)]
    store.append("c", said, Utf16Units())
    return store


def test_the_original_tail_swallows_a_dialogue_that_the_corrected_one_compacts() -> None:
    found = {
        rules: len(clustering(rules=rules).clusters(StoredWindow(alternating(), "c")))
        for rules in ("corrected", "original", "1.4.4")
    }
    assert found == {"corrected": 3, "original": 3, "1.4.4": 0}


def test_a_turn_compacts_from_the_budget_of_a_session_on() -> None:
    store = conversation(TALK)
    waiting = sum(entry.tokens for run_ in clustering()._runs(StoredWindow(store, "c")) for entry in run_)
    for budget, is_due in ((waiting + 1, False), (0, False), (waiting, True)):
        compaction = clustering(session_token_budget=budget)
        report = run(
            compaction.after_turn(StoredWindow(store, "c"), NOW, incidents=Counter()),
            compaction.summarizer,
            incidents=Counter(),
        )
        assert (report.is_compacted, report.reason) == ((True, "compacted") if is_due else (False, "below threshold"))
    compaction = clustering(session_token_budget=1)
    assert not run(
        compaction.after_turn(StoredWindow(store, "c"), NOW, incidents=Counter()),
        compaction.summarizer,
        incidents=Counter(),
    ).is_compacted


def test_a_single_message_does_not_start_a_run_whatever_it_costs() -> None:
    store = conversation(["a very long turn " * 200, *TALK[:4]])
    compaction = clustering(session_token_budget=1, tail_budget_tokens=0)
    assert [len(one) for one in compaction._runs(StoredWindow(store, "c"))] == [1]
    report = run(
        compaction.after_turn(StoredWindow(store, "c"), NOW, incidents=Counter()),
        compaction.summarizer,
        incidents=Counter(),
    )
    assert (report.reason, report.rounds) == ("below threshold", 0)
