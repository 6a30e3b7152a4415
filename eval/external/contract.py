"""The contract with an external memory: its calls, their replies, and what goes wrong with one.

A memory is `reset` for a workspace, then messages are `add`ed and queries `search`ed; it may offer `compact` and
`context`. Each call has named arguments, and its reply is a map, both of JSON. docs/external.md tells them all.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, get_args

from lcm.encoding import printable, well_formed
from lcm.errors import LcmError
from lcm.records.conversation import Message, Part
from lcm.transcript.message_tokens import images_in
from lcm.transcript.passages import SAID
from lcm.writing.extraction.said import words_of

CallName = Literal["reset", "add", "search", "compact", "context"]
Offer = Literal["compact", "context"]
"""What a memory may do besides."""
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
    """What the reply to `reset` says.

    Raises:
        FaultError: if it is no such reply.
    """
    name, version, offers = (reply.get(key) for key in ("name", "version", "offers"))
    if offers is not None and (not isinstance(offers, list) or not set(map(str, offers)) <= {"compact", "context"}):
        raise _wrong(f"offers must be a list of compact, context, got {offers!r:.80}")
    ignores, notes = _lines(reply, "ignores", "paths of settings"), _lines(reply, "notes", "texts")
    return Told(_name(name, "name"), _name(version, "version"), tuple(offers or ()), ignores, notes or ())


def reset_arguments(workspace: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `reset`; a memory that is given no settings hears of none."""
    return {"workspace": workspace, **({"settings": dict(settings)} if settings else {})}


def read_found(reply: Mapping[str, Any]) -> list[Found]:
    """The texts of a reply to `search` or `context`, in its order.

    Raises:
        FaultError: if it is no such reply.
    """
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
