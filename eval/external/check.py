"""A short look at an external memory before it is measured: a dozen messages are told, five questions asked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import polars as pl

from eval.dataset.dataset import QRELS_SCHEMA, Dataset
from eval.external.reading import LogReading, RecordedAnswers
from eval.external.session import NOT_RUN, Told, Transport, is_fault, played
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query

TALK, ELSEWHERE = "a talk", "elsewhere"
_SAID = (
    ("Ada", "I planted two lemon trees behind the greenhouse this morning."),
    ("Bo", "Lemon trees need a lot of sun, the south wall would be warmer."),
    ("Ada", "My brother Tom sells his sailing boat, he wants nine thousand for it."),
    ("Bo", "Nine thousand is cheap for a boat with a new engine."),
    ("Ada", "The dentist moved my appointment to the fourteenth of March."),
    ("Bo", "I am allergic to walnuts, so please leave them out of the cake."),
    ("Ada", "Our train to Lisbon leaves at six in the morning on Friday."),
    ("Bo", "I booked the hotel near the castle, it has a terrace."),
    ("Ada", "The password of the printer is written under its lid."),
    ("Bo", "We decided to paint the office green, not blue."),
    ("Ada", "The cat is called Pepper and sleeps in the piano."),
    ("Bo", "Please water the lemon trees on Sunday, I am away."),
)
_ASKED = (
    ("Where did Ada plant the lemon trees?", 0),
    ("How much does Tom want for his sailing boat?", 2),
    ("What is Bo allergic to?", 5),
    ("When does the train to Lisbon leave?", 6),
    ("What is the cat called?", 10),
)
_BEGAN = datetime(2026, 1, 5, 9, tzinfo=UTC)
_OF_ONE = len(_SAID) // 2
"""Messages of each of the two conversations, and of each `add`."""
K = 10
BUDGET_TOKENS = 1000


class Line(NamedTuple):
    """A line of what was found out."""

    what: str
    told: str
    took_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check of an external memory."""

    told: Told
    lines: Sequence[Line]
    faults: Sequence[str]
    """A line for each thing that went wrong. An evaluation of a memory with a fault has no numbers."""


def checked(transport: Transport, settings: Mapping[str, Any], similarity: float) -> Checked:
    """Play a short talk to a memory, and a message of another workspace to one that is new.

    From the similarity on a stretch of a text nearly repeats a message.
    """
    dataset = _dataset()
    (told, talk, log), (_, other, rest) = (
        _played(transport, settings, dataset, workspace, similarity) for workspace in (TALK, ELSEWHERE)
    )
    failed = [row for row in (*log, *rest) if row["fault"] not in (None, NOT_RUN)]
    faults = [f"{row['call']} {row['detail']}" for row in failed]
    if not talk.brought["source_message_ids"].list.len().sum():
        faults.append("no answer is of anything that was said")
    foreign, is_answered = int(other.asked["foreign"].sum()), other.asked["fault"].null_count() > 0
    known = f"still knows {foreign} texts of the first: it is not emptied" if foreign else "knows nothing of the first"
    last = Line("next workspace", known if is_answered else "gave no answer")
    return Checked(told, [*_lines(told, talk, log), last], list(dict.fromkeys(faults)))


def _played(
    transport: Transport, settings: Mapping[str, Any], dataset: Dataset, workspace: str, similarity: float
) -> tuple[Told, RecordedAnswers, list[dict[str, Any]]]:
    """Return what the memory says of itself, its answers, and rows of `LOG_SCHEMA`."""
    transcripts = [one for one in dataset.transcripts if one.workspace_id == workspace]
    queries = [one for one in dataset.queries if one.workspace_id == workspace]
    session = played(
        transport, workspace, transcripts, queries,
        k=K, add_messages=_OF_ONE, is_per_turn=False, budgets=(BUDGET_TOKENS,), settings=settings,
    )  # fmt: skip
    read = LogReading(session.log, workspace, dataset, K, similarity, session.noise)
    return session.told, read.answered(), session.log.rows(named=True)


def _lines(told: Told, talk: RecordedAnswers, log: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    yield _line(log, "reset", " ".join(filter(None, told[:2])) or "does not say its name")
    yield Line("offers", ", ".join(("add", "search", *told.offers)))
    for note in told.notes:
        yield Line("says", note)
    ignored = "does not say" if told.ignores is None else ", ".join(told.ignores) or "no setting"
    yield Line("ignores", ignored)
    added = [row for row in log if row["call"] == "add"]
    messages = sum(len(row["texts"] or ()) for row in added)
    yield _line(log, "add", f"{messages} of {len(_SAID)} messages, {_OF_ONE} a call")
    for reason in dict.fromkeys("; ".join(row["texts"] or ()) for row in log if row["call"] == "compact"):
        yield _line(log, "compact", reason or "done: it does not say whether anything was folded")
    most = max(talk.asked["given"], default=0)
    answered = talk.asked["fault"].null_count()
    yield _line(log, "search", f"{answered} of {len(_ASKED)} questions, {most} texts at most of {K} asked for")
    yield Line("finds", _of_ranks(talk))
    standing = talk.asked.select(pl.sum("named", "exact", "near", "none")).row(0, named=True)
    yield Line("texts", ", ".join(f"{n} {how}" for how, n in zip(_HOW, standing.values(), strict=True)))
    for name, times in talk.incidents.items():
        if not is_fault(name):
            yield Line("counted", f"{name.removeprefix('external: ')}: {times}")
    if contexts := talk.contexts.values():
        tokens = max(one.tokens for one in contexts)
        shown = max(len({name for item in one.items for name in item.source_message_ids}) for one in contexts)
        yield _line(log, "context", f"{tokens} tokens of {BUDGET_TOKENS}, with {shown} of {len(_SAID)} messages")


_HOW = ("named by it", "by their words", "nearly", "that could not be aligned")


def _line(log: Sequence[Mapping[str, Any]], call: str, told: str) -> Line:
    times = [row["round_trip_ms"] for row in log if row["call"] == call and row["round_trip_ms"] is not None]
    return Line(call, told, sum(times) / len(times) if times else None)


def _of_ranks(talk: RecordedAnswers) -> str:
    """At which rank the message stood that answers each question."""
    held = talk.answers.join(talk.brought.select("document_id", "source_message_ids"), on="document_id")
    ranks = {
        (row["query_id"], name): row["rank"] for row in held.sort("rank", descending=True).iter_rows(named=True)
        for name in row["source_message_ids"]
    }  # fmt: skip
    places = [ranks.get((f"q{i}", _id(place))) for i, (_, place) in enumerate(_ASKED)]
    return f"what answers the questions at rank {', '.join('-' if one is None else str(one) for one in places)}"


def _id(place: int) -> str:
    return f"said-{place}"


def _dataset() -> Dataset:
    """Two conversations of a workspace, and a message of another, which is asked what the first one knows."""
    said = [
        Message(_id(i), "assistant" if i % 2 else "user", text, f"day {i // _OF_ONE}", _at(i), author=author)
        for i, (author, text) in enumerate(_SAID)
    ]
    other = Message("other", "user", "The bakery on the corner opens at seven.", "a day", _at(0), author="Cy")
    transcripts = (
        Transcript("first", tuple(said[:_OF_ONE]), TALK),
        Transcript("second", tuple(said[_OF_ONE:]), TALK),
        Transcript("other", (other,), ELSEWHERE),
    )
    asked = [Query(f"q{i}", text, _at(2 * len(_SAID)), TALK) for i, (text, _) in enumerate(_ASKED)]
    asked.append(Query("elsewhere", _SAID[0][1], _at(2 * len(_SAID)), ELSEWHERE))
    qrels = pl.DataFrame([(f"q{i}", _id(place), 1) for i, (_, place) in enumerate(_ASKED)], QRELS_SCHEMA, orient="row")
    return Dataset("check", "check", "", transcripts, tuple(asked), qrels)


def _at(hours: int) -> datetime:
    return _BEGAN + timedelta(hours=6 * hours)
