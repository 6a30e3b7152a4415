"""The laws of `Compaction`, over every YAML of its group, random contexts and settings, and nonsense summarizers."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any, get_args

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcm.compaction.clustering import Clustering
from lcm.compaction.lossless.lossless import Lossless
from lcm.compaction.window import StoredWindow
from lcm.compaction.work import NoCompaction, in_lockstep, run
from lcm.protocols.contract import contract_of
from lcm.records.conversation import Message
from lcm.records.rules import VersionedRules
from lcm.records.summary import CompactionReport, SummaryRequest
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from pipelines.config import building
from tests.lcm.compaction.contexts import NOW, Stub, message
from tests.support.composing import composed
from tests.support.richest import once_a_class

CHOICES = once_a_class("compaction")
TOKENS = Utf16Units()
MANY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20, deadline=None)

ANSWERS: dict[str, Callable[[SummaryRequest], str]] = {
    "short": lambda request: "s",
    "head": lambda request: request.text[:40],
    "echo": lambda request: request.text,
    "longer": lambda request: request.text * 2 + "!",
    "empty": lambda request: "",
    "blank": lambda request: " \n\t\ufeff",
    "marked": lambda request: "\n[Truncated from 3 tokens]",
    "continued": lambda request: f"{request.previous or ''}|{len(request.text)}|{'x' * 90}",
    "long": lambda request: "s" * 1200,
    "half a pair": lambda request: "\ud83d" * 50,
    "tight": lambda request: "t" if request.is_aggressive else request.text,
}
TEXTS = st.builds(
    lambda word, times: word * times,
    st.sampled_from(["word ", "茶", "😀", "\n", "file_00000000000000aa "]),
    st.integers(0, 90),
)
CONVERSATIONS = st.lists(TEXTS, max_size=40)
SETTINGS = st.fixed_dictionaries(
    {
        "budget_tokens": st.integers(1, 1500),
        "context_threshold": st.floats(0, 1),
        "fresh_tail_count": st.integers(0, 6),
        "leaf_chunk_tokens": st.integers(60, 300),
        "min_leaf_tokens": st.integers(0, 60),
        "leaf_min_fanout": st.integers(1, 5),
        "condensed_min_fanout": st.integers(1, 4),
        "incremental_max_depth": st.integers(-1, 2),
        "leaf_target_tokens": st.integers(1, 80),
        "condensed_target_tokens": st.integers(1, 60),
        "summary_max_overage_factor": st.floats(1, 3),
        "hot_spot_share": st.sampled_from([0.0, 0.1, 0.5]),
        "hot_spot_heat": st.integers(1, 3),
    }
)
RULES = st.sampled_from([{"rules": rules} for rules in get_args(VersionedRules)])
HOW = st.sampled_from([{}, {"is_forced": True}, {"target_tokens": 40}])
WHO = st.sampled_from(sorted(ANSWERS))


@pytest.fixture(params=CHOICES)
def choice(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@cache
def as_written(choice: str) -> Any:
    return building.build(composed([f"compaction={choice}", "embedder=hashing"]), "compaction")


def built(choice: str, answer: str, changes: dict[str, Any]) -> Lossless | Clustering | NoCompaction:
    """A choice with a stub and other numbers; it ignores those that it does not have, and some go by other names."""
    compaction = as_written(choice)
    numbers = {"summarizer": Stub(ANSWERS[answer]), "token_estimator": TOKENS, **changes}
    if isinstance(compaction, Lossless) and changes.get("rules") == "1.4.4":
        del numbers["rules"]
    if isinstance(compaction, Clustering) and "fresh_tail_count" in changes:
        numbers |= {
            "min_turns": changes["fresh_tail_count"],
            "target_cluster_size": changes["leaf_min_fanout"] * 3,
            "tail_budget_tokens": changes["leaf_target_tokens"],
            "session_token_budget": changes["leaf_chunk_tokens"],
        }
    known = {each.name for each in fields(compaction) if each.init}
    return replace(compaction, **{name: value for name, value in numbers.items() if name in known})  # type: ignore[no-any-return]


def said(number: int, text: str, conversation: str = "c") -> Message:
    """Some messages answer others: by the rules of 1.4.4 these come along with the newest."""
    return message(number, text, "assistant" if text.startswith("file_") else "user", conversation)


def stored(words: Sequence[str], names: Sequence[str] = ("c",)) -> Store:
    store = Store(opened_at=NOW)
    for name in names:
        # The wording differs from the words, as that of tool calls does: some messages cost tokens and say nothing.
        messages = [said(i, text, name) for i, text in enumerate(["begin", *words], 1)]
        store.append(name, messages, TOKENS, lambda one: one.content.strip() or "w" * 60)
    return store


def compacted(
    compaction: Lossless | Clustering | NoCompaction,
    store: Store,
    how: dict[str, Any],
    window: StoredWindow | None = None,
) -> CompactionReport:
    window = StoredWindow(store, "c") if window is None else window
    work = compaction.compact(window, NOW, **how, incidents=Counter())
    return run(work, compaction.summarizer, incidents=Counter())


def turned(compaction: Lossless | Clustering | NoCompaction, window: StoredWindow) -> CompactionReport:
    return run(compaction.after_turn(window, NOW, incidents=Counter()), compaction.summarizer, incidents=Counter())


def live(compaction: Lossless | Clustering | NoCompaction, words: Sequence[str]) -> Store:
    """A conversation that was compacted after each of its turns."""
    store = stored(())
    window = StoredWindow(store, "c")
    for number, text in enumerate(words, 2):
        store.append("c", [said(number, text)], TOKENS)
        window.follow()
        report = turned(compaction, window)
        assert report.tokens_after == sum(entry.tokens for entry in store.context("c")) == window.tokens
    assert list(window.entries) == store.context("c")
    return store


def require_whole(store: Store) -> None:
    """Every message is reached once from the context, in order, over edges that lead down a level at a time."""
    seqs = {one.message_id: seq for seq, one in enumerate(store.messages("c"), 1)}
    summaries = {one.summary_id: one for one in store.summaries("c")}
    reached: dict[str, list[int]] = {}
    for summary in sorted(summaries.values(), key=lambda one: one.depth):
        below = [summaries[one] for one in summary.source_ids] if summary.depth else []
        assert all(one.depth == summary.depth - 1 for one in below)
        reached[summary.summary_id] = (
            [seq for one in below for seq in reached[one.summary_id]]
            if summary.depth
            else [seqs[one] for one in summary.source_ids]
        )
        covered = reached[summary.summary_id]
        assert covered == list(range(covered[0], covered[-1] + 1))
        assert summary.source_message_token_count == sum(token_counts(store)[seq] for seq in covered)
    context = store.context("c")
    found = [
        seq for entry in context for seq in ([seqs[entry.item_id]] if entry.is_message else reached[entry.item_id])
    ]
    assert found == list(seqs.values())


def token_counts(store: Store) -> dict[int, int]:
    return dict(store.message_frame().select("seq", "tokens").rows())


@MANY
@given(words=CONVERSATIONS, numbers=SETTINGS, rules=RULES, who=WHO, how=HOW, is_live=st.booleans())
def test_nothing_is_lost_and_the_fresh_tail_is_untouched(
    choice: str, words: list[str], numbers: dict[str, Any], rules: dict[str, Any], who: str, how: Any, is_live: bool
) -> None:
    compaction = built(choice, who, numbers | rules)
    before = stored(words).messages()
    store = live(compaction, words) if is_live else stored(words)
    raw = store.messages()
    if not is_live:
        compacted(compaction, store, how)
    assert [replace(one, created_at=None) for one in raw] == [replace(one, created_at=None) for one in before]
    assert store.messages() == raw
    require_whole(store)
    tail = (
        [one.message_id for one in raw][len(raw) - numbers["fresh_tail_count"] :] if numbers["fresh_tail_count"] else []
    )
    kept = [entry.item_id for entry in store.context("c") if entry.is_message]
    assert set(tail) <= set(kept) or len(raw) < numbers["fresh_tail_count"]


def grown(store: Store) -> int:
    """How many passes made the context no smaller."""
    made = store.compactions().filter(~pl.col("event").is_in(["failure", "refusal", "quality"]))
    return len(made.filter(pl.col("tokens_after") >= pl.col("tokens_before")))


def has_outgrown(compaction: Lossless | Clustering | NoCompaction, store: Store) -> bool:
    """Say whether a summary was no smaller than its source: lossless-claw stops there, and goes on the next time."""
    return isinstance(compaction, Lossless) and compaction.rules != "corrected" and grown(store) > 0


@MANY
@given(words=CONVERSATIONS, numbers=SETTINGS, rules=RULES, who=WHO, how=HOW)
def test_compacting_twice_changes_nothing(
    choice: str, words: list[str], numbers: dict[str, Any], rules: dict[str, Any], who: str, how: Any
) -> None:
    compaction = built(choice, who, numbers | rules)
    store = stored(words)
    window = StoredWindow(store, "c")  # of one memory: what was tried in vain is not tried again
    first = compacted(compaction, store, how, window)
    context, asked = store.context("c"), len(getattr(compaction.summarizer, "requests", []))
    if first.tokens_after == how.get("target_tokens") or has_outgrown(compaction, store):
        return  # a context as large as its target is still compacted, as in the original
    again = compacted(compaction, store, how, window)
    assert not again.is_compacted
    assert store.context("c") == context
    assert len(getattr(compaction.summarizer, "requests", [])) == asked
    state = store.messages("c"), store.summaries("c"), context
    assert not compacted(compaction, store, how, StoredWindow(store, "c")).is_compacted  # another memory asks again
    assert (store.messages("c"), store.summaries("c"), store.context("c")) == state


def settled(compaction: Lossless | Clustering | NoCompaction, store: Store, most: int) -> None:
    """Let turns pass without a word until one changes nothing; require that no later one asks or changes anything."""
    window = StoredWindow(store, "c")
    for _ in range(most):
        if not turned(compaction, window).is_compacted:
            break
        if has_outgrown(compaction, store):
            return
    else:
        raise AssertionError(f"still compacting after {most} turns in which nothing was said")
    context, asked = store.context("c"), len(getattr(compaction.summarizer, "requests", []))
    assert not turned(compaction, window).is_compacted
    assert store.context("c") == context
    assert len(getattr(compaction.summarizer, "requests", [])) == asked


@MANY
@given(words=CONVERSATIONS, numbers=SETTINGS, rules=RULES, who=WHO)
def test_turns_in_which_nothing_is_said_come_to_rest(
    choice: str, words: list[str], numbers: dict[str, Any], rules: dict[str, Any], who: str
) -> None:
    # A turn makes one leaf: as many as there are messages, then condensed ones, each for two items at least.
    settled(built(choice, who, numbers | rules), stored(words), 2 * len(words) + 3)


@MANY
@given(words=CONVERSATIONS, numbers=SETTINGS, rules=RULES, who=WHO, how=HOW)
def test_a_run_makes_progress_or_stops(
    choice: str, words: list[str], numbers: dict[str, Any], rules: dict[str, Any], who: str, how: Any
) -> None:
    compaction = built(choice, who, numbers | rules)
    store = stored(words)
    report = compacted(compaction, store, how)
    sweeps = max(report.rounds, 1)
    assert grown(store) <= (
        2 * sweeps if isinstance(compaction, Lossless) and compaction.rules != "corrected" else 0
    ), "a phase ends where nothing is saved"
    # Condensing one summary at a time makes as many as there are tokens to save; each is asked for twice at most.
    most = 2 * 2 * (len(words) + 1) + 2 * len(report.summary_ids) + 2 * sweeps
    assert len(getattr(compaction.summarizer, "requests", [])) <= most
    assert report.tokens_after == sum(entry.tokens for entry in store.context("c"))
    assert report.is_compacted == bool(report.summary_ids)


@settings(MANY, max_examples=8)
@given(words=CONVERSATIONS, numbers=SETTINGS, rules=RULES, who=WHO, width=st.integers(1, 5), how=HOW)
def test_side_by_side_is_as_one_by_one(
    choice: str, words: list[str], numbers: dict[str, Any], rules: dict[str, Any], who: str, width: int, how: Any
) -> None:
    names = ["a", "b", "c", "d"]
    outcomes = []
    for together in (True, False):
        store = stored(words, names)
        compaction = built(choice, who, numbers | rules)
        works = [compaction.compact(StoredWindow(store, name), NOW, **how, incidents=Counter()) for name in names]
        reports = (
            list(in_lockstep(works, compaction.summarizer, width, incidents=Counter()))
            if together
            else [run(work, compaction.summarizer, incidents=Counter()) for work in works]
        )
        shapes = [[(entry.depth, entry.tokens) for entry in store.context(name)] for name in names]
        contents = [sorted(one.content for one in store.summaries(name)) for name in names]
        outcomes.append(([(one.reason, one.tokens_after, one.rounds) for one in reports], shapes, contents))
    assert outcomes[0] == outcomes[1]


def test_no_compaction_asks_nobody_and_says_so() -> None:
    compaction = built("none", "short", {})
    store = stored(["word " * 400] * 20)
    report = compacted(compaction, store, {"is_forced": True})
    assert (contract_of(compaction).is_off, report.reason, report.is_compacted) == (True, "compaction is off", False)
    assert report.tokens_before == report.tokens_after > 0
    assert turned(compaction, StoredWindow(store, "c")).reason == "compaction is off"
    (answer,) = compaction.summarizer.summarize([SummaryRequest("words", 5)], incidents=Counter())
    assert (answer.text, str(answer.failure)) == ("", "compaction is off")


def test_what_the_original_starves_the_corrected_choice_condenses() -> None:
    depths = {}
    for choice in ("lossless_claw", "lossless"):
        store = stored(["word " * 400] * 60)
        numbers = {
            "fresh_tail_count": 2,
            "leaf_chunk_tokens": 2000,
            "condensed_target_tokens": 100,
            "min_leaf_tokens": 0,
        }
        compaction = built(choice, "short", numbers | {"leaf_min_fanout": 8, "summary_max_overage_factor": 3.0})
        compaction.summarizer.answer = lambda request: f"{len(request.text)}" + "s" * 1200  # type: ignore[attr-defined]
        compacted(compaction, store, {"is_forced": True})
        depths[choice] = max(one.depth for one in store.summaries())
    assert depths["lossless_claw"] == 0, "eight leaves of 300 tokens do not fit into 2,000"
    assert depths["lossless"] >= 1
