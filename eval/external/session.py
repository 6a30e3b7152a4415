"""A session with an external memory: one workspace is told to it, message by message, and its queries are asked.

The contract: a memory is `reset` for a workspace, then messages are `add`ed and queries `search`ed; it may offer
`compact` and `context`. Each call has named arguments, and its reply is a map, both of JSON (docs/external.md). What a
memory answers is a log, a frame: everything that is measured is read from that, so that it can be kept.
"""

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, get_args

import polars as pl

from eval.replay.workspace_replay import growth, turns
from lcm.checks import check_range
from lcm.encoding import printable, well_formed
from lcm.errors import LcmError
from lcm.protocols.contract import Contract
from lcm.records.conversation import Message, Part, Transcript
from lcm.records.query import Query
from lcm.transcript.message_tokens import images_in
from lcm.transcript.passages import SAID
from lcm.writing.extraction.said import words_of

CallName = Literal["reset", "add", "search", "compact", "context"]
Offer = Literal["compact", "context"]
FaultKind = Literal["timed out", "crashed", "error", "wrong reply", "reply too large"]
NOT_RUN = "not run"
"""The fault of what came after the end of its session."""
ROLES = ("user", "assistant", "tool")
"""Of the messages that are added: those that our own extraction makes documents of."""
_LONGEST_NAME = 200


def incident(call: str, fault: str) -> str:
    """The name under which a fault is counted."""
    return f"external: {call} {fault}"


def is_fault(name: str) -> bool:
    """Whether an incident of this name is a fault: what was asked again might be answered."""
    return name.startswith("external: ") and name.endswith(tuple(f" {one}" for one in (*get_args(FaultKind), NOT_RUN)))


class FaultError(LcmError):
    """A call that was not answered as the contract says."""

    def __init__(self, kind: FaultKind, detail: str, *, is_end: bool) -> None:
        super().__init__(_line(f"{kind}: {detail}"))
        self.kind = kind
        self.is_end = is_end
        """Whether nothing more can be asked over this connection."""


class Connection(Protocol):
    """A memory at work, for one workspace at a time.

    Laws: a call takes no longer than its time limit, its reply no more than its size limit; after a fault that is an
    end every further call is a fault; `close` leaves nothing running that `open` started.
    """

    @property
    def noise(self) -> int:
        """How many lines came that are no reply to anything."""
        ...

    def call(self, name: CallName, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The reply.

        Raises:
            FaultError: if there is none.
        """
        ...

    def close(self) -> None: ...


class Transport(Protocol):
    """An `external` choice: how the calls reach a memory."""

    @property
    def modules(self) -> Sequence[str]:
        """Modules of the user's whose source the answers depend on."""
        ...

    def open(self) -> Connection:
        """Begin; nothing is waited for yet.

        Raises:
            LcmError: if the user has not allowed it, or it names nothing that could answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class NoExternal:
    """No external memory: nothing is reached."""

    contract = Contract(is_off=True)

    @property
    def modules(self) -> Sequence[str]:
        return ()

    def open(self) -> Connection:
        raise LcmError(
            "external=none reaches no memory: choose external=stdio, object, http or mcp, as in docs/external.md"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What every `external` choice says: how long a call may take, and how large its reply may be."""

    timeout_s: float = 60.0
    """For each call."""
    start_s: float = 120.0
    """For the first call of a workspace, while the memory starts."""
    reply_mib: float = 16.0
    """A reply may be no larger."""

    def __post_init__(self) -> None:
        check_range(self, "timeout_s", "start_s", "reply_mib", gt=0)

    @property
    def modules(self) -> Sequence[str]:
        """As of `Transport`: none."""
        return ()

    @property
    def most_bytes(self) -> int:
        """Of a reply."""
        return int(self.reply_mib * 2**20)


class Told(NamedTuple):
    """What a memory says of itself when it is reset."""

    name: str = ""
    version: str = ""
    offers: tuple[Offer, ...] = ()
    ignores: tuple[str, ...] | None = None
    """The paths of settings that it was told and does not take up; None: it does not say."""
    notes: tuple[str, ...] = ()
    """What a reader of its numbers must know."""


@dataclass(frozen=True, slots=True)
class Found:
    """A text that a memory returned."""

    text: str
    score: float | None = None
    source_ids: tuple[str, ...] | None = None
    """The ids of the messages that it says the text is of; None: it does not say."""


def message_told(message: Message, conversation_id: str) -> dict[str, Any] | None:
    """A message as it is added; None where it has no words, or is the system's."""
    words = words_of(message, author_prefix=False, kinds=SAID)
    if message.role not in ROLES or not words:
        return None
    return {
        "id": message.message_id,
        "role": message.role,
        "content": words,
        "author": message.author,
        "created_at": None if message.created_at is None else message.created_at.isoformat(),
        "session_id": message.session_id,
        "conversation_id": conversation_id,
        **({"parts": parts} if (parts := [one for part in message.parts for one in _media(part)]) else {}),
    }


def _media(part: Part) -> Iterator[dict[str, Any]]:
    """A part that is a picture or another file, as it was recorded."""
    raw = part.metadata.get("raw")
    if isinstance(raw, Mapping) and (part.part_type == "file" or images_in(raw)):
        yield {"type": "file", "text": part.text or "", **raw}


def read_told(reply: Mapping[str, Any]) -> Told:
    """What the reply to `reset` says; FaultError where it is no such reply."""
    name, version, offers = (reply.get(key) for key in ("name", "version", "offers"))
    if offers is not None and (not isinstance(offers, list) or not set(map(str, offers)) <= {"compact", "context"}):
        raise _wrong(f"offers must be a list of compact, context, got {offers!r:.80}")
    ignores, notes = _lines(reply, "ignores", "paths of settings"), _lines(reply, "notes", "texts")
    return Told(_name(name, "name"), _name(version, "version"), tuple(offers or ()), ignores, notes or ())


def reset_arguments(workspace: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `reset`; a memory that is given no settings hears of none."""
    return {"workspace": workspace, **({"settings": dict(settings)} if settings else {})}


def read_found(reply: Mapping[str, Any]) -> list[Found]:
    """The texts of a reply to `search` or `context`, in its order; FaultError where it is no such reply."""
    results = reply.get("results")
    if not isinstance(results, list):
        raise _wrong(f"results must be a list, got {results!r:.80}")
    return [_found(result) for result in results]


def read_took_ms(reply: Mapping[str, Any]) -> float | None:
    """How long the memory itself says it took; None where it does not, or says what cannot be."""
    took: Any = reply.get("took_ms")
    known = _finite(took) if isinstance(took, int | float) and not isinstance(took, bool) else None
    return None if known is None or known < 0 else known


def _found(result: Any) -> Found:
    if not isinstance(result, dict) or not isinstance(result.get("text"), str):
        raise _wrong(f"each of results must be a map with a text, got {result!r:.80}")
    score, ids = result.get("score"), result.get("source_ids")
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
        raise _wrong(f"score must be a number or null, got {score!r:.80}")
    if ids is not None and not (isinstance(ids, list) and all(isinstance(one, str) for one in ids)):
        raise _wrong(f"source_ids must be a list of ids or null, got {ids!r:.80}")
    known = None if score is None else _finite(score)
    return Found(well_formed(result["text"]), known, None if ids is None else tuple(map(well_formed, ids)))


def _finite(number: float) -> float | None:
    """A number of JSON, which may have more digits than any float."""
    try:
        return float(number) if math.isfinite(number) else None
    except OverflowError:
        return None


def _lines(reply: Mapping[str, Any], key: str, of_what: str) -> tuple[str, ...] | None:
    """A list of texts, each on a line; None where there is none."""
    found = reply.get(key)
    if found is None:
        return None
    if not (isinstance(found, list) and all(isinstance(one, str) for one in found)):
        raise _wrong(f"{key} must be a list of {of_what}, got {found!r:.80}")
    return tuple(map(_line, found))


def _name(value: Any, key: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str | int | float) or len(str(value)) > _LONGEST_NAME:
        raise _wrong(f"{key} must be a short text, got {value!r:.80}")
    return _line(str(value))


def _line(text: str) -> str:
    """What a memory says of itself, as it may stand in a note."""
    return printable(" ".join(text.split()))


def _wrong(detail: str) -> FaultError:
    return FaultError("wrong reply", detail, is_end=False)


_TEXT, _WHOLE, _NUMBER = pl.String(), pl.Int64(), pl.Float64()
LOG_SCHEMA: dict[str, pl.DataType] = {
    "call": _TEXT,
    "query_id": _TEXT,
    "budget_tokens": _WHOLE,
    "added": _WHOLE,
    "texts": pl.List(_TEXT),
    "scores": pl.List(_NUMBER),
    "source_ids": pl.List(pl.List(_TEXT)),
    "surplus": _WHOLE,
    "fault": _TEXT,
    "detail": _TEXT,
    "round_trip_ms": _NUMBER,
    "took_ms": _NUMBER,
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

    @property
    def log(self) -> pl.DataFrame:
        """Rows of `LOG_SCHEMA`."""
        return pl.DataFrame(self.rows, schema=LOG_SCHEMA, orient="row")

    @property
    def noise(self) -> Counter[str]:
        """How many lines were no reply, by the name under which that is counted."""
        return Counter({NOISE: self.connection.noise} if self.connection.noise else {})

    def play(self, workspace: str, transcripts: Sequence[Transcript], queries: Sequence[Query]) -> None:
        """Tell and ask everything, in the order of time: a query comes after what was said before it, and no more."""
        if (reply := self._called("reset", reset_arguments(workspace, self.settings), is_needed=True)) is not None:
            self.told = self._read(read_told, reply, is_needed=True) or Told()
            self.rows[-1]["texts"] = [self.told.name, self.told.version, *self.told.notes]
        for grown, asked in growth(transcripts, queries):
            for transcript, known in grown:
                self._add(transcript.conversation_id, transcript.messages[known:])
            if grown and not self.is_per_turn:
                self._compact()
            for query in asked:
                self._search(query)
            for query in asked if "context" in self.told.offers else ():
                for budget in self.budgets:
                    self._context(query, budget)

    def _add(self, conversation_id: str, messages: Sequence[Message]) -> None:
        for together in turns(messages) if self.is_per_turn else [messages]:
            told = [one for message in together if (one := message_told(message, conversation_id)) is not None]
            for first in range(0, len(told), self.add_messages):
                part = told[first : first + self.add_messages]
                self._called("add", {"messages": part}, is_needed=True)
                if not self.ended_by:
                    self.rows[-1]["texts"] = [one["id"] for one in part]
                    self.added += len(part)
            if self.is_per_turn:
                self._compact()

    def _compact(self) -> None:
        if "compact" not in self.told.offers:
            return
        reply = self._called("compact", {}, is_needed=True)
        if reply is not None and reply.get("compacted") is not None:
            done = "compacted" if reply["compacted"] else "nothing was folded"
            self.rows[-1]["texts"] = [done, *([str(reply["reason"])] if reply.get("reason") else [])]

    def _search(self, query: Query) -> None:
        k = self.k + len(query.shown_message_ids)  # what its asker sees is dropped from the answer
        scopes = None if query.scopes is None else list(query.scopes)
        self._ask("search", query, {"query": query.text, "k": k, "scopes": scopes}, k)

    def _context(self, query: Query, budget_tokens: int) -> None:
        asked = {"query": query.text, "budget_tokens": budget_tokens}
        self._ask("context", query, asked, None, budget_tokens=budget_tokens)

    def _ask(self, name: CallName, query: Query, asked: Mapping[str, Any], most: int | None, **about: Any) -> None:
        """Note the texts that a query is answered with, as far as they were asked for."""
        asked = {**asked, "asked_at": query.asked_at.isoformat()}
        reply = self._called(name, asked, query_id=query.query_id, **about)
        if reply is None or (found := self._read(read_found, reply)) is None:
            return
        kept: Sequence[Found] = found[:most]
        self.rows[-1] |= {
            "texts": [one.text for one in kept],
            "scores": [one.score for one in kept],
            "source_ids": [None if one.source_ids is None else list(one.source_ids) for one in kept],
            "surplus": len(found) - len(kept),
            "took_ms": read_took_ms(reply),
        }

    def _called(
        self, name: CallName, arguments: Mapping[str, Any], *, is_needed: bool = False, **about: Any
    ) -> Mapping[str, Any] | None:
        """The reply to a call, which has a row from now on; None where there is none. What `is_needed` ends the session
        where it fails: nothing that comes after can be measured without it."""
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
) -> Session:
    """A session from its beginning to its end; a memory that cannot be reached answers each call with that fault."""
    try:
        connection = transport.open()
    except FaultError as fault:
        connection = _Absent(fault)
    with closing(connection):
        session = Session(connection, k, add_messages, is_per_turn, budgets, settings)
        session.play(workspace, transcripts, queries)
    return session


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
