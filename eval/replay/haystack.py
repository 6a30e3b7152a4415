"""Haystacks: which conversations are searched together, and how much else lies among them.

A haystack of a few hundred messages is soon found through. Two things make it larger and leave every judgement as it
is: all conversations of a dataset in one workspace, and distractors, messages of other transcripts that nobody judged.
Nothing that is judged changes: not its words, not its time, not when it is asked for.
"""

import hashlib
import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
from typing import ClassVar, Literal, TypeVar, get_args

import polars as pl

from eval.dataset.dataset import Dataset, Layout
from lcm.checks import check_choice, check_range
from lcm.errors import DatasetError, LcmError
from lcm.records.conversation import Transcript
from lcm.records.query import Query

HaystackKind = Literal["own", "pooled"]
POOLED = "pooled"
"""The workspace in which everything lies."""

_Name = TypeVar("_Name", bound=str | None)
_Member = tuple[str, Transcript]
"""A transcript, and the workspace or the distractors that it comes from."""


@dataclass(frozen=True, slots=True)
class Haystack:
    """What every replay has: how a dataset is laid into haystacks before it is replayed."""

    haystack: HaystackKind = "own"
    """`own`: each workspace by itself, as the dataset has it; `pooled`: all conversations in one."""
    distractors: int = 0
    """Messages of other transcripts in each haystack."""
    seed: int = 0
    """Of which transcripts are taken as distractors, and of when they are dated."""
    unused_where: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "seed": {"distractors": 0},
        "${distractors}": {"distractors": 0},
    }
    """Setting, or what stands elsewhere in the configuration -> the values of settings that leave it without effect."""
    is_per_turn = False
    """Whether compaction looks after every turn."""

    def __post_init__(self) -> None:
        check_choice(self, haystack=get_args(HaystackKind))
        check_range(self, "distractors", "seed", ge=0, is_whole=True)

    def laid_out(self, dataset: Dataset, others: Callable[[], Mapping[str, Dataset]]) -> Dataset:
        """The dataset in its haystacks; as it is, where each workspace stays by itself and nothing is added.

        Laws: every query has its evidence, and sees it if it did before; no query sees more of the future; judgements
        name the same messages; equal settings give equal haystacks, and more distractors those of fewer besides, but
        for the last transcript of these, which is cut. Refused is one that is laid out otherwise already.

        Args:
            others: gives the datasets that distractors are taken from, by the name that each has in the configuration;
                asked only where there are to be any.
        """
        settings: dict[str, str | int] = {
            "haystack": self.haystack, "distractors": self.distractors, "seed": self.seed,
        }  # fmt: skip
        if dataset.layout is not None:
            if dataset.layout.settings != settings:
                raise LcmError(
                    f"the dataset was laid into haystacks by {_worded(dataset.layout.settings)} and cannot be by "
                    f"{_worded(settings)} too: search and compare over one replay.haystack"
                )
            return dataset
        if self.haystack == "own" and not self.distractors:
            return dataset
        sources = others() if self.distractors else {}
        added = _distractors(dataset, sources, self.distractors, self.seed)
        haystacks: dict[str, list[_Member]] = {}
        for one in dataset.transcripts:
            place = POOLED if self.haystack == "pooled" else one.workspace_id
            haystacks.setdefault(place, []).append((one.workspace_id, one))
        names = _NewNames()
        transcripts = []
        for place, members in haystacks.items():
            dated = _dated(added, [own for _, own in members], random.Random(f"{self.seed} {place}"))  # noqa: S311
            transcripts += [names.of(place, source, one) for source, one in (*members, *dated)]
        queries = tuple(
            replace(
                query,
                workspace_id=POOLED if self.haystack == "pooled" else query.workspace_id,
                conversation_id=names.new("conversation", query.workspace_id, query.conversation_id),
                session_id=names.new("session", query.workspace_id, query.session_id),
                shown_message_ids=tuple(
                    names.new("message", query.workspace_id, one) for one in query.shown_message_ids
                ),
            )
            for query in dataset.queries
        )
        workspaces = {query.query_id: query.workspace_id for query in dataset.queries}
        conversations: dict[str, list[str]] = {}
        for one in dataset.transcripts:
            named = names.new("conversation", one.workspace_id, one.conversation_id)
            conversations.setdefault(one.workspace_id, []).append(named)
        seen = _seen(transcripts, queries)
        taken = [f"from=[{'; '.join(_names(sources))}]"] if sources else []
        protocol = " ".join([dataset.protocol, _worded(settings), *taken])
        repaired = dataset.repaired_qrels
        digests = [dataset.digest, protocol, *(source.digest for source in sources.values())]
        return replace(
            dataset,
            protocol=protocol,
            digest=hashlib.sha256("\n".join(digests).encode()).hexdigest(),
            transcripts=tuple(transcripts),
            queries=queries,
            qrels=names.renamed(dataset.qrels, "message", workspaces),
            repaired_qrels=None if repaired is None else names.renamed(repaired, "message", workspaces),
            session_qrels=names.renamed(dataset.session_qrels, "session", workspaces),
            quotations=names.renamed(dataset.quotations, "message", workspaces),
            layout=Layout(
                settings=settings,
                workspace_of_query=workspaces,
                conversations=conversations,
                messages_a_query=round(sum(seen) / len(seen)) if seen else 0,
                told=tuple(self._told(dataset, sources, seen)),
            ),
        )

    def _told(self, dataset: Dataset, sources: Mapping[str, Dataset], seen: Sequence[int]) -> Iterator[str]:
        if self.haystack == "pooled":
            yield f"all {len(dataset.workspaces)} workspaces are searched as one (replay.haystack=pooled)"
        if self.distractors:
            yield (
                f"{self.distractors:,} messages of each haystack are distractors ({', '.join(_names(sources))}), dated "
                "among the others and judged by nobody: what one of them answers counts as wrong"
            )
        if seen:
            yield (
                f"{round(sum(seen) / len(seen)):,} messages stood on average when a query was asked, and "
                f"{min(seen):,} at least: what was said later is not seen"
            )


class _NewNames:
    """Ids of haystacks into which several workspaces were put: whoever used an id first keeps it."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str, str], str | None] = {}
        """Place, kind and id -> from where the first that bears it comes; None = it was given here."""
        self._new: dict[tuple[str, str, str | None], str] = {}
        """Kind, where it comes from and id -> what it is called now, if it is called otherwise."""

    def of(self, place: str, source: str, transcript: Transcript) -> Transcript:
        """The transcript in its haystack, under ids that nothing else there bears."""
        known = len(self._new)
        conversation = self._named(place, "conversation", source, transcript.conversation_id)
        for message in transcript.messages:
            self._named(place, "message", source, message.message_id)
            self._named(place, "session", source, message.session_id)
        messages = transcript.messages
        if known < len(self._new) or any(("session", source, one.session_id) in self._new for one in messages):
            messages = tuple(
                replace(
                    one,
                    message_id=self.new("message", source, one.message_id),
                    session_id=self.new("session", source, one.session_id),
                )
                for one in messages
            )
        return replace(transcript, conversation_id=conversation, messages=messages, workspace_id=place)

    def new(self, kind: str, source: str, name: _Name) -> _Name | str:
        return self._new.get((kind, source, name), name)

    def renamed(self, qrels: pl.DataFrame, kind: str, workspaces: Mapping[str, str]) -> pl.DataFrame:
        """Judgements of messages or sessions, under the new ids of these."""
        if not any(one == kind for one, _, _ in self._new):
            return qrels
        ids = [
            self.new(kind, workspaces[query_id], name)
            for query_id, name in qrels.select("query_id", f"{kind}_id").iter_rows()
        ]
        return qrels.with_columns(pl.Series(f"{kind}_id", ids, pl.String))

    def _named(self, place: str, kind: str, source: str, name: str) -> str:
        first = self._first.setdefault((place, kind, name), source)
        if first == source:
            return name
        if (kind, source, name) not in self._new:
            new = f"{name}@{source}"
            while (place, kind, new) in self._first:
                new += f"@{source}"
            self._new[kind, source, name] = new
        self._first.setdefault((place, kind, self._new[kind, source, name]), None)
        return self._new[kind, source, name]


def _distractors(dataset: Dataset, sources: Mapping[str, Dataset], wanted: int, seed: int) -> list[_Member]:
    """Transcripts that hold so many messages together, drawn from those that the dataset does not hold itself; the
    last one is cut."""
    if not wanted:
        return []
    own = {one.conversation_id for one in dataset.transcripts}
    said = {(message.message_id, message.content) for one in dataset.transcripts for message in one.messages}
    offered = [
        (f"{name}.{one.workspace_id}", one)
        for name, source in sources.items()
        for one in source.transcripts
        if one.messages
        and one.conversation_id not in own
        and said.isdisjoint((message.message_id, message.content) for message in one.messages)
    ]
    held = sum(len(one.messages) for _, one in offered)
    if held < wanted:
        raise DatasetError(
            f"replay.distractors={wanted}: what distractors names holds {held} messages besides the dataset's own; "
            "name more, distractors.transcripts.paths=[FOLDER] or +dataset@distractors.beam=beam, or lower it"
        )
    random.Random(seed).shuffle(offered)  # noqa: S311
    taken = []
    for source, one in offered:
        taken.append((source, one if len(one.messages) <= wanted else transcript_until(one, wanted)))
        wanted -= len(taken[-1][1].messages)
        if not wanted:
            break
    return taken


def _dated(added: Sequence[_Member], own: Sequence[Transcript], rng: random.Random) -> Iterator[_Member]:
    """Distractors at times of the conversations among which they lie.

    Each takes those of one of them, drawn by its length: of n messages the i-th was said with that conversation's
    message at the same share of its course. So whoever is asked within a conversation has seen as much of its
    distractors as of itself.
    """
    hosts = [times for one in own if (times := one.instants())]
    ends = list(accumulate(map(len, hosts)))
    for source, one in added if hosts else ():
        times = hosts[bisect_right(ends, rng.randrange(ends[-1]))]
        count = len(one.messages)
        messages = tuple(
            replace(message, created_at=times[i * len(times) // count]) for i, message in enumerate(one.messages)
        )
        yield source, replace(one, messages=messages)


def _seen(transcripts: Sequence[Transcript], queries: Sequence[Query]) -> list[int]:
    """How many messages of its haystack stood when each query was asked."""
    said: dict[str, list[datetime]] = {query.workspace_id: [] for query in queries}
    for one in transcripts:
        if one.workspace_id in said:
            said[one.workspace_id] += one.instants()
    for times in said.values():
        times.sort()
    return [bisect_right(said[query.workspace_id], query.asked_at) for query in queries]


def _names(sources: Mapping[str, Dataset]) -> Iterable[str]:
    return dict.fromkeys(f"{source.name} {source.protocol}".strip() for source in sources.values())


def _worded(settings: Mapping[str, str | int]) -> str:
    shown = settings if settings["distractors"] else {"haystack": settings["haystack"]}
    return " ".join(f"{name}={value}" for name, value in shown.items())


def transcript_until(transcript: Transcript, n: int) -> Transcript:
    """Its first n messages, and the events that stand before the next."""
    if n >= len(transcript.messages):
        return transcript
    events = tuple(event for event in transcript.events if event.after <= n)
    return replace(transcript, messages=transcript.messages[:n], events=events)
