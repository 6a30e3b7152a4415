from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.compaction.clustering import Clustering
from lcm.compaction.guidance.protected import NoGuidance
from lcm.compaction.summarizer.extractive import Centroid
from lcm.compaction.window import StoredWindow
from lcm.errors import ModelError
from lcm.protocols.compaction import Guidance, Summarizer
from lcm.records.summary import CompactionReport, SummaryRequest, SummaryResult
from lcm.retrieval.embedder.hashing import Hashing
from lcm.store.doctor import scan
from lcm.store.documents import read_undocumented_shards
from lcm.store.store import Store
from lcm.store.summaries import messages_beneath
from lcm.token_estimator import Utf16Units
from tests.lcm.compaction import contexts
from tests.lcm.compaction.contexts import NOW, Marked, Stub, after_turn, conversation, message

EMBEDDER = Hashing()
TALK = [f"turn {number}: the parser reads file {number % 7} and the weather is fine again" for number in range(60)]


def clustering(summarizer: Summarizer | None = None, guidance: Guidance | None = None, **fields: Any) -> Clustering:
    return Clustering(summarizer or Centroid(EMBEDDER), guidance or NoGuidance(), Utf16Units(), EMBEDDER, **fields)


def compacted(compaction: Clustering, store: Store, *more: Any) -> CompactionReport:
    return contexts.compacted(store, compaction, *more)


def shards_of(store: Store) -> list[str]:
    with store.reading() as connection:
        return [shard.message_id for shard in read_undocumented_shards(connection)]


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


NONSENSE: dict[str, Callable[[SummaryRequest], str]] = {
    "echo": lambda request: request.text,
    "empty": lambda _: "",
    "short": lambda _: "s",
    "longer": lambda request: request.text * 2,
}


def summarizer(name: str) -> Summarizer:
    if name in NONSENSE:
        return Stub(NONSENSE[name])
    return Centroid(EMBEDDER) if name == "centroid" else Stub(lambda _: "", ModelError("the model is gone"))


@given(words=WORDS, numbers=SETTINGS, who=st.sampled_from(["centroid", "failing", *NONSENSE]))
def test_nothing_is_lost_and_a_second_run_changes_nothing(words: list[str], numbers: dict[str, Any], who: str) -> None:
    compaction, store = clustering(summarizer(who), Marked(), **numbers), conversation(["begin", *words])
    raw, tokens = store.messages("c"), {one.item_id: one.tokens for one in store.context("c")}
    planned = [[entry.item_id for entry in one] for one in compaction.clusters(StoredWindow(store, "c"))]
    names = [one.message_id for one in raw]
    report = compacted(compaction, store)
    assert store.messages("c") == raw
    context, summaries, kept = store.context("c"), store.summaries("c"), shards_of(store)
    standing = [entry.item_id for entry in context if entry.is_message]
    assert set(names[max(0, len(raw) - numbers["min_turns"]) :]) <= set(standing)
    below = [one for summary in summaries for one in summary.source_ids]
    assert sorted([*standing, *below, *kept]) == sorted(names), "each is reached once"
    assert all(raw[names.index(one)].content.startswith("!") for one in kept)
    for summary in summaries:
        assert summary.source_ids
        assert 0 <= summary.confidence <= 1
        with store.reading() as connection:
            assert messages_beneath(connection, [summary.summary_id]) == list(summary.source_ids)
        cluster = next((one for one in planned if set(summary.source_ids) <= set(one)), None)
        assert cluster is None or summary.token_count < sum(tokens[one] for one in cluster)
    assert report.tokens_after == sum(entry.tokens for entry in context) <= report.tokens_before
    assert [check for check in scan(store._connection) if check.status != "pass"] == []
    again = compacted(replace(compaction), store)
    assert (again.is_compacted, store.context("c"), shards_of(store)) == (False, context, kept)


@settings(max_examples=10)
@given(words=WORDS, numbers=SETTINGS)
def test_a_staged_run_gives_the_same_and_is_forgotten_where_it_is_not_applied(words, numbers):
    compaction = clustering(None, Marked(), **numbers)
    plain, staged = conversation(["begin", *words]), conversation(["begin", *words])
    before, window = staged.context("c"), StoredWindow(staged, "c")
    compacted(compaction, plain)
    with window.staged():
        compacted(compaction, staged, window)
    assert list(window.entries) == before
    with window.staged():
        compacted(compaction, staged, window)
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


def test_a_run_of_guidance_alone_leaves_shards_and_no_summary_and_a_single_message_stays() -> None:
    store = conversation(["!never push", "!always test", *TALK[:4]])
    compaction = clustering(guidance=Marked(), target_cluster_size=2, min_turns=4, tail_budget_tokens=1)
    compacted(compaction, store)
    assert (shards_of(store), store.summaries(), len(store.context("c"))) == (["c-m1", "c-m2"], [], 4)
    single = clustering(target_cluster_size=1, min_turns=1, tail_budget_tokens=1)
    assert compacted(single, conversation(TALK[:6])).reason == "nothing to compact"


def test_turns_without_words_are_covered_and_never_chosen() -> None:
    said = [text for turn in TALK[:6] for text in ("", turn, " \n")]
    store, incidents = conversation(said), Counter[str]()
    assert compacted(clustering(min_turns=0), store, None, incidents).reason == "compacted"
    [summary] = store.summaries()
    assert len(summary.source_ids) == len(said) == 18
    assert len([text for text in TALK[:6] if text in summary.content]) == 3  # ceil(6 * 0.4), of those with words
    assert not incidents


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
    compaction = clustering(Stub(lambda _: "", ModelError("gone")), target_cluster_size=5)
    store = conversation(TALK[:24])
    window = StoredWindow(store, "c")
    assert [compacted(compaction, store, window).failure for _ in range(2)] == ["gone"] * 2
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


def test_the_original_tail_swallows_a_dialogue_that_the_corrected_one_compacts() -> None:
    store = Store(opened_at=NOW)
    said = [message(i, text, "assistant" if i % 2 else "user") for i, text in enumerate(TALK)]
    store.append("c", said, Utf16Units())
    rules = ("corrected", "original", "1.4.4")
    assert [len(clustering(rules=one).clusters(StoredWindow(store, "c"))) for one in rules] == [3, 3, 0]


def test_a_turn_compacts_from_the_budget_of_a_session_on() -> None:
    store = conversation(TALK)
    waiting = sum(entry.tokens for run_ in clustering().clusters(StoredWindow(store, "c")) for entry in run_)
    reasons = [
        after_turn(clustering(session_token_budget=budget), StoredWindow(store, "c")).reason
        for budget in (waiting + 1, 0, waiting, 1)
    ]
    assert reasons == ["below threshold", "below threshold", "compacted", "below threshold"]


def test_a_single_message_does_not_start_a_run_whatever_it_costs() -> None:
    store = conversation(["a very long turn " * 200, *TALK[:4]])
    compaction = clustering(session_token_budget=1, tail_budget_tokens=0)
    assert len(compaction._waiting(StoredWindow(store, "c"))) == 1
    report = after_turn(compaction, StoredWindow(store, "c"))
    assert (report.reason, report.rounds) == ("below threshold", 0)
