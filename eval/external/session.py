"""A session with an external memory: one workspace is told to it, message by message, and its queries are asked.

What it answers is a log, a frame: everything that is measured is read from that, so that it can be kept.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from eval.external.contract import (
    NOT_RUN,
    CallName,
    Connection,
    FaultError,
    Found,
    Told,
    Transport,
    message_told,
    read_found,
    read_told,
    read_took_ms,
    reset_arguments,
)
from eval.replay.extent import queries_by_extent
from eval.replay.per_turn import turns
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query

LOG_SCHEMA: dict[str, pl.DataType] = {
    "call": pl.String(),
    "query_id": pl.String(),
    "budget_tokens": pl.Int64(),
    "added": pl.Int64(),
    "texts": pl.List(pl.String()),
    "scores": pl.List(pl.Float64()),
    "source_ids": pl.List(pl.List(pl.String())),
    "surplus": pl.Int64(),
    "fault": pl.String(),
    "detail": pl.String(),
    "round_trip_ms": pl.Float64(),
    "took_ms": pl.Float64(),
}
"""A row a call: `added` messages had been added before it; of `search` and `context` what came back, `surplus` more
texts than were asked for and are left out, or the `fault` that came instead, in words `detail`; `source_ids` is null
where the memory named none. Of `add` the texts are the ids of the messages, of `reset` name, version and
notes told, of `compact` whether anything was folded, and why."""
NOISE = "external: lines that are no reply"


@dataclass(slots=True)
class Session:
    """One workspace of an external memory, from its reset to its end."""

    connection: Connection
    k: int
    add_messages: int
    is_per_turn: bool
    budgets: Sequence[int]
    settings: Mapping[str, Any]
    told: Told = field(default_factory=Told)
    rows: list[dict[str, Any]] = field(default_factory=list)
    added: int = 0
    ended_by: str = ""
    """Why nothing more is asked: the memory is gone, or lacks messages."""

    def play(self, workspace: str, transcripts: Sequence[Transcript], queries: Sequence[Query]) -> None:
        """Tell and ask everything, in the order of time: a query comes after what was said before it, and no more."""
        if (reply := self._called("reset", reset_arguments(workspace, self.settings), is_needed=True)) is not None:
            self.told = self._read(read_told, reply, is_needed=True) or Told()
            self.rows[-1]["texts"] = [self.told.name, self.told.version, *self.told.notes]
        before = (0,) * len(transcripts)
        for known, asked in queries_by_extent(transcripts, queries).items():
            for transcript, n, first in zip(transcripts, known, before, strict=True):
                self._add(transcript.conversation_id, transcript.messages[first:n])
            if known != before and not self.is_per_turn:
                self._compact()
            before = known
            for query in asked:
                self._search(query)
            for query in asked if "context" in self.told.offers else ():
                for budget in self.budgets:
                    self._context(query, budget)

    def _add(self, conversation_id: str, messages: Sequence[Message]) -> None:
        if not self.is_per_turn:
            self._add_together(conversation_id, messages)
            return
        for turn in turns(messages):
            self._add_together(conversation_id, turn)
            self._compact()

    def _add_together(self, conversation_id: str, messages: Sequence[Message]) -> None:
        told = [one for message in messages if (one := message_told(message, conversation_id)) is not None]
        for first in range(0, len(told), self.add_messages):
            part = told[first : first + self.add_messages]
            self._called("add", {"messages": part}, is_needed=True)
            if not self.ended_by:
                self.rows[-1]["texts"] = [one["id"] for one in part]
                self.added += len(part)

    def _compact(self) -> None:
        if "compact" not in self.told.offers:
            return
        reply = self._called("compact", {}, is_needed=True)
        if reply is not None and reply.get("compacted") is not None:
            done = "compacted" if reply["compacted"] else "nothing was folded"
            self.rows[-1]["texts"] = [done, *([str(reply["reason"])] if reply.get("reason") else [])]

    def _search(self, query: Query) -> None:
        k = self.k + len(query.shown_message_ids)  # what its asker sees is dropped from the answer
        asked = {
            "query": query.text,
            "k": k,
            "asked_at": query.asked_at.isoformat(),
            "scopes": None if query.scopes is None else list(query.scopes),
        }
        reply = self._called("search", asked, query_id=query.query_id)
        if reply is None or (found := self._read(read_found, reply)) is None:
            return
        self._note(found[:k], reply, surplus=max(0, len(found) - k))

    def _context(self, query: Query, budget_tokens: int) -> None:
        asked = {"budget_tokens": budget_tokens, "query": query.text, "asked_at": query.asked_at.isoformat()}
        reply = self._called("context", asked, query_id=query.query_id, budget_tokens=budget_tokens)
        if reply is not None and (found := self._read(read_found, reply)) is not None:
            self._note(found, reply, surplus=0)

    def _called(
        self, name: CallName, arguments: Mapping[str, Any], *, is_needed: bool = False, **about: Any
    ) -> Mapping[str, Any] | None:
        """The reply to a call, which has a row from now on; None where there is none.

        Args:
            is_needed: whether nothing that comes after can be measured without it.
        """
        self.rows.append({"call": name, "added": self.added, **about})
        if self.ended_by:
            self.rows[-1] |= {"fault": NOT_RUN, "detail": self.ended_by}
            return None
        started = time.perf_counter()
        try:
            return self.connection.call(name, arguments)
        except FaultError as fault:
            self._fail(fault, is_needed=is_needed)
            return None
        finally:
            self.rows[-1]["round_trip_ms"] = (time.perf_counter() - started) * 1000

    def _read(self, reader: Any, reply: Mapping[str, Any], *, is_needed: bool = False) -> Any:
        try:
            return reader(reply)
        except FaultError as fault:
            self._fail(fault, is_needed=is_needed)
            return None

    def _fail(self, fault: FaultError, *, is_needed: bool) -> None:
        self.rows[-1] |= {"fault": fault.kind, "detail": str(fault)}
        if fault.is_end or is_needed:
            self.ended_by = f"{self.rows[-1]['call']} {fault}"

    def _note(self, found: Sequence[Found], reply: Mapping[str, Any], surplus: int) -> None:
        self.rows[-1] |= {
            "texts": [one.text for one in found],
            "scores": [one.score for one in found],
            "source_ids": [None if one.source_ids is None else list(one.source_ids) for one in found],
            "surplus": surplus,
            "took_ms": read_took_ms(reply),
        }


def played(
    transport: Transport,
    workspace: str,
    transcripts: Sequence[Transcript],
    queries: Sequence[Query],
    *,
    k: int,
    add_messages: int,
    is_per_turn: bool,
    budgets: Sequence[int],
    settings: Mapping[str, Any],
) -> tuple[pl.DataFrame, Counter[str]]:
    """The log of a session, and how many lines were no reply."""
    with closing(begun(transport)) as connection:
        session = Session(connection, k, add_messages, is_per_turn, budgets, settings)
        session.play(workspace, transcripts, queries)
        noise = Counter({NOISE: connection.noise} if connection.noise else {})
    return pl.DataFrame(session.rows, schema=LOG_SCHEMA, orient="row"), noise


def begun(transport: Transport) -> Connection:
    """A memory at work; one that could not be reached answers each call with that fault."""
    try:
        return transport.open()
    except FaultError as fault:
        return _Absent(fault)


def asked_of_itself(transport: Transport, settings: Mapping[str, Any]) -> Told:
    """What a memory says of itself; nothing where it does not reply."""
    try:
        with closing(transport.open()) as connection:
            return read_told(connection.call("reset", reset_arguments("", settings)))
    except FaultError:
        return Told()


@dataclass(frozen=True, slots=True)
class _Absent:
    """A memory that could not be reached at all."""

    fault: FaultError
    noise: int = 0

    def call(self, name: CallName, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        raise self.fault

    def close(self) -> None:
        """Nothing was opened."""
