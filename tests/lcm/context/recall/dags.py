"""Stores with summaries in them: conversations of numbered words, folded at will."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from lcm.compaction.context_totals import summary_id
from lcm.context.answerer import Extractive
from lcm.context.recall.reader import Reader
from lcm.context.recall.recall import Recall
from lcm.records.conversation import Message, Part, Transcript
from lcm.records.summary import Summary
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from lcm.transcript.large_files import intercepted
from lcm.transcript.parts import decompose

TOKENS = Utf16Units()
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
MADE_AT = datetime(2026, 2, 1, tzinfo=UTC)


def recall(**settings: object) -> Recall:
    return Recall(TOKENS, answerer=Extractive(), **settings)  # type: ignore[arg-type]


def said(name: str, number: int, words: str) -> Message:
    at = START + timedelta(minutes=number)
    return Message(f"{name}:{number}", "user", words, "session", at, parts=(Part("text", words),))


def talk(store: Store, name: str, lines: Sequence[str]) -> None:
    messages = tuple(said(name, number, words) for number, words in enumerate(lines, start=1))
    store.ingest(Transcript(name, messages), TOKENS)


def holding(name: str, file: str, text: str, least_tokens: int, explored: str) -> Message:
    """A message with a file, which is intercepted from so many tokens on."""
    native = decompose({"role": "user", "content": f'Look: <file name="{file}">{text}</file>'})
    holder = Message(name, "user", native.content, "session", START, parts=native.parts, envelope=native.envelope)
    return intercepted(holder, least_tokens, TOKENS, lambda *_: explored)


def lent(configured: Recall, store: Store, conversations: Sequence[int] = (1,), **within: Any) -> Reader:
    """A reader within a grant."""
    return configured.grant_access(configured.on(store), conversations, lambda: START, **within)


def fold(store: Store, name: str, first: int, count: int, words: str) -> str:
    """Put a summary in the place of `count` context items from the `first` on, all messages or all of one depth."""
    items = store.context(name)[first : first + count]
    is_leaf = items[0].is_message
    depth = 0 if is_leaf else 1 + (items[0].depth or 0)
    times = [m.created_at for m in store.messages_by_id([i.item_id for i in items]).values()]
    made = Summary(
        summary_id(f"{name} {words} {items[0].item_id}", MADE_AT),
        name,
        "leaf" if is_leaf else "condensed",
        depth,
        words,
        TOKENS.count([words])[0],
        MADE_AT,
        earliest_at=min((at for at in times if at), default=None),
        latest_at=max((at for at in times if at), default=None),
        source_ids=tuple(item.item_id for item in items),
    )
    store.replace_range(name, items[0].ordinal, items[-1].ordinal, made)
    return made.summary_id


folds = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5)), max_size=8)
"""What to fold, in order: where, and how many items at most."""


def fold_all(store: Store, name: str, wanted: Sequence[tuple[int, int]]) -> list[str]:
    """Fold what can be; the ids in the order of making."""
    made = []
    for number, (at, most) in enumerate(wanted):
        items = store.context(name)
        at %= len(items)
        alike = 1
        while alike < most and at + alike < len(items) and items[at + alike].depth == items[at].depth:
            alike += 1
        made.append(fold(store, name, at, alike, f"{name}fold{number} words"))
    return made
