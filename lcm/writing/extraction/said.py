"""Documents of what was said, in its own words: one a message, one a window of messages, one a step of an agent.

The steps are a call of tools with the results that answer it, or passages of them; and two turns of talk are an
exchange."""

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lcm.checks import check_range
from lcm.clock import EPOCH
from lcm.protocols.writing import Annotation
from lcm.records.conversation import ROLES, Message, Role
from lcm.records.document import EXCHANGE_SPEAKER, Candidate
from lcm.transcript.parts import tool_calls
from lcm.transcript.passages import PASSAGE_KINDS, SAID, PassageKind, passages, text_of
from lcm.writing.annotation import NoAnnotation
from lcm.writing.new_document import document_id


def check_roles(roles: Sequence[Role]) -> None:
    """Raises: ValueError: if none is named, or one that there is not."""
    unknown = sorted(set(roles) - set(ROLES))
    if unknown or not roles:
        raise ValueError(f"roles must be some of {', '.join(ROLES)}, got {list(roles)!r}")


def words_of(message: Message, *, author_prefix: bool, kinds: Sequence[PassageKind]) -> str:
    """What the message says, behind `Author: ` where the transcript names one; empty where it says nothing of these
    kinds."""
    words = text_of(message, kinds)
    return f"{message.author}: {words}" if words and author_prefix and message.author else words


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Every message of the named roles that has words becomes one document."""

    roles: Sequence[Role] = ("user", "assistant", "tool")
    author_prefix: bool = True
    """Begin each message with `Author: ` where the transcript names one."""
    passages: Sequence[PassageKind] = SAID
    """What of a message its document says: its words, calls of tools with their arguments, results that the words leave
    out, reasoning, files, others."""
    annotation: Annotation = field(default_factory=NoAnnotation)
    """Category, importance, temporal type and expiry, by all words of the document so far, as said with its last
    message; a message of an unknown time counts as said at EPOCH."""

    def __post_init__(self) -> None:
        check_roles(self.roles)
        unknown = sorted(set(self.passages) - set(PASSAGE_KINDS))
        if unknown or not self.passages:
            raise ValueError(f"passages must be some of {', '.join(PASSAGE_KINDS)}, got {list(self.passages)!r}")

    def extract(self, messages: Sequence[Message], known: int = 0, *, incidents: Counter[str]) -> list[Candidate]:
        said = [(message, self.words(message)) for message in messages[known:]]
        return self.annotated([(Candidate(words, (message.message_id,)), message) for message, words in said if words])

    def words(self, message: Message) -> str:
        """What the message says; empty where it says nothing of these passages, or its role is not named."""
        if message.role not in self.roles:
            return ""
        return words_of(message, author_prefix=self.author_prefix, kinds=self.passages)

    def annotated(self, made: Sequence[tuple[Candidate, Message]]) -> list[Candidate]:
        """Candidates, each with the message that it was said with."""
        instants = [message.created_at or EPOCH for _, message in made]
        return self.annotation.annotate([candidate for candidate, _ in made], instants)


@dataclass(frozen=True, slots=True)
class Window(Verbatim):
    """A window that slides over each session: every message with words ends one document of up to `size` messages.

    Messages of other roles and those without words are passed over and not counted. Extracting a conversation piece
    by piece gives the same documents as all at once.
    """

    size: int = 3
    """Messages a document at most; 1 = each message alone."""

    def __post_init__(self) -> None:
        Verbatim.__post_init__(self)
        check_range(self, "size", ge=1)

    def extract(self, messages: Sequence[Message], known: int = 0, *, incidents: Counter[str]) -> list[Candidate]:
        made = []
        recent: dict[str, deque[tuple[str, str]]] = {}
        for position, message in enumerate(messages):
            if words := self.words(message):
                window = recent.setdefault(message.session_id, deque(maxlen=self.size))
                window.append((message.message_id, words))
                if position >= known:
                    ids, texts = zip(*window, strict=True)
                    made.append((Candidate("\n".join(texts), ids, "window"), message))
        return self.annotated(made)


_SEAM = re.compile(r"\s*$|#{1,6} |```|@@ |diff |(?:async )?def |class |func(?:tion)? |\[tool ")
"""A line before which something new begins: it is blank, or heads a section, a file's difference, a definition."""

_STOP = re.compile("[。！？]")
"""Ends a sentence where no space follows."""


def cut(text: str, size: int, first_size: int | None = None) -> list[str]:
    """A text as passages of at most `size` characters, the first of at most `first_size`.

    Lines stand together until the next would be too much; then the cut is made before the last line of the second half
    that begins something new, if there is one. A line that is longer than a passage is cut behind a sentence of Chinese
    or Japanese, else between words, one without spaces anywhere. Nothing but whitespace at the cuts is left out. The
    first passage is empty where no line fits.
    """
    found: list[str] = []
    here: list[str] = []
    length = 0  # of these lines, with a line end behind each
    room = size if first_size is None else first_size
    for line in _lines(text, size):
        while here and length + len(line) > room:
            at = _last_seam(here)
            found.append("\n".join(here[:at]))
            here, room = here[at:], size
            length = sum(map(len, here)) + len(here)
        if not here and len(line) > room:
            found.append("")
            room = size
        here.append(line)
        length += len(line) + 1
    found.append("\n".join(here))
    return [passage.strip("\n") for passage in found]


def _lines(text: str, size: int) -> Iterator[str]:
    for line in text.split("\n"):
        rest = line.rstrip()
        while len(rest) > size:
            stops = [stop.end() for stop in _STOP.finditer(rest, size // 2, size)]
            at = stops[-1] if stops else rest.rfind(" ", size // 2, size + 1)
            at = size if at < 0 else at
            yield rest[:at]
            rest = rest[at:].lstrip(" ")
        yield rest


def _last_seam(lines: list[str]) -> int:
    """How many of the lines stand before the last seam of their second half; all, where there is none."""
    for at in range(len(lines) - 1, len(lines) // 2, -1):
        if _SEAM.match(lines[at]):
            return at
    return len(lines)


_MOST_RESULTS = 32
"""A step's messages of results; a further one is a document of its own. Each makes the step's document anew, so the
text of a call that thousands answer would grow with their square."""

_BLOCK = 32
"""An exchange lies within so many messages of the conversation, counted from its start: which turns pair up can be told
from there, and a conversation that grows need not be read anew."""

_HEAD = 120
"""Characters of the call that a passage begins with."""


@dataclass(frozen=True, slots=True)
class Steps(Verbatim):
    """A document holds one step: the message that calls tools, its words too, and behind it each message that brings
    results of these calls, whole and in the order of coming. Any other message is a document of its own: a user's turn,
    words of the assistant without a call, a result whose call is not there.

    A result belongs to the latest call of its session that has its `tool_call_id`; one without an id to the session's
    latest call; one of several ids to the first of them that is known. A call is a document as soon as it is made. Each
    result then makes a document of all of the step so far, in the place of the one before it: what is asked in between
    sees no more than there was, and extracting a conversation piece by piece gives the same documents as all at once.
    Messages of other roles and those without words are passed over.

    With `passage_characters`, what is longer is cut into passages of so many characters, at line ends where something
    new begins; each is a document, of the first message of its step and of those whose words it says. From the second
    on, a passage of a step begins with the step's first call, shortened, which tells where its words come from. Another
    result goes on where the last passage has room.

    With `exchange_characters`, two turns of user and assistant that follow each other in their session, and together
    say no more than that, are one document of kind `exchange`, in the place of the first one's: "yes" means nothing
    without what it answers. A turn is in one exchange, the earliest; turns that call tools, bring results or name an
    author are in none.
    """

    passage_characters: int | None = None
    """The most that one document says, but for the call that it begins with; None = steps stay whole."""
    exchange_characters: int | None = None
    """The most that two turns of an exchange say together, no more than a passage; None = every turn stands alone."""

    def __post_init__(self) -> None:
        Verbatim.__post_init__(self)
        check_range(self, "passage_characters", ge=_HEAD, or_null=True, is_whole=True)
        check_range(self, "exchange_characters", ge=1, or_null=True, is_whole=True)

    def extract(self, messages: Sequence[Message], known: int = 0, *, incidents: Counter[str]) -> list[Candidate]:
        made = []
        steps: dict[tuple[str, str], _Step] = {}
        unanswered: dict[str, _Turn] = {}
        for place in range(self._read_from(messages, known), len(messages)):
            message = messages[place]
            step = next((steps[key] for key in _answered(message) if key in steps), None)
            if step is None or step.is_full:
                step = _Step("step" if tool_calls(message) else "message")
            steps |= dict.fromkeys(_opened(message), step)
            if words := self.words(message):
                if not step.messages:
                    step.first_id, step.head = message.message_id, self._head(message)
                turn = _Turn(place, message, words, step)
                before = unanswered.pop(message.session_id, None)
                if before and self._is_exchange(before, turn):
                    grown = [_exchange(before, turn)]
                else:
                    grown = step.grown(message.message_id, words, self.passage_characters)
                    unanswered[message.session_id] = turn
                if place >= known:
                    made += [(candidate, message) for candidate in grown]
        return self.annotated(made)

    def _read_from(self, messages: Sequence[Message], known: int) -> int:
        """The place from which steps and exchanges of the messages after the first `known` can be told."""
        needed = _first_needed(messages, known)
        return needed if self.exchange_characters is None else min(needed, known - known % _BLOCK)

    def _is_exchange(self, before: "_Turn", reply: "_Turn") -> bool:
        most = self.exchange_characters
        return (
            most is not None
            and {before.message.role, reply.message.role} == {"user", "assistant"}
            and before.is_talk
            and reply.is_talk
            and before.place // _BLOCK == reply.place // _BLOCK
            and len(before.words) + len(reply.words) <= min(most, self.passage_characters or most)
        )

    def _head(self, message: Message) -> str:
        """What a step's passages begin with, so that each tells where it comes from: its first call, shortened; empty
        where nothing is cut or the message calls nothing."""
        if self.passage_characters is None or "calls" not in self.passages or not tool_calls(message):
            return ""
        calls = (said.text for said in passages(message) if said.kind == "calls")
        call = next(calls, "").partition("\n")[0]
        return call if len(call) <= _HEAD else f"{call[: _HEAD - 1]}…"


@dataclass(slots=True)
class _Step:
    """What one document after another says: each in the place of the one before while this has room, then beside."""

    kind: str
    first_id: str = ""
    """Of the first message whose words it says."""
    head: str = ""
    messages: int = 0
    text: str = ""
    """Of the last passage, as far as it goes."""
    message_ids: tuple[str, ...] = ()
    """Of the last passage: the step's first message, and those whose words it says."""
    document_ids: tuple[str, ...] = ()
    """Of the candidates made of the last passage so far."""
    made: set[str] = field(default_factory=set)
    """Ids of all candidates made so far: a passage that says the same once more is no other document."""

    @property
    def is_full(self) -> bool:
        return self.messages > _MOST_RESULTS

    def grown(self, message_id: str, words: str, size: int | None) -> list[Candidate]:
        """The candidates that one more message makes or changes."""
        self.messages += 1
        if size is None:
            passages = [words]
        else:
            passages = cut(words, size, max(0, size - len(self.text) - 1) if self.text else size)
        found = []
        for number, passage in enumerate(passages):
            if number or not self.text:
                self.text, self.message_ids, self.document_ids = self._begun(passage, number), (self.first_id,), ()
            elif passage:
                self.text += f"\n{passage}"
            if not passage:
                continue
            self.message_ids = tuple(dict.fromkeys((*self.message_ids, message_id)))
            candidate = Candidate(self.text, self.message_ids, self.kind, supersedes=self.document_ids)
            made = document_id(candidate)
            self.document_ids += (made,)
            if made not in self.made:
                found.append(candidate)
            self.made.add(made)
        return found

    def _begun(self, passage: str, number: int) -> str:
        return f"{self.head}\n{passage}" if self.head and (number or self.messages > 1) else passage


@dataclass(frozen=True, slots=True)
class _Turn:
    """A message in its place, and the document that is made of it alone."""

    place: int
    message: Message
    words: str
    step: _Step

    @property
    def is_talk(self) -> bool:
        """Whether it calls no tools, brings no results and names no author."""
        return not (self.message.author or tool_calls(self.message) or _answered(self.message))


def _exchange(before: _Turn, reply: _Turn) -> Candidate:
    turns = (before, reply)
    return Candidate(
        "\n".join(f"[{turn.message.role}] {_unforged(turn.words)}" for turn in turns),
        tuple(turn.message.message_id for turn in turns),
        "exchange",
        supersedes=before.step.document_ids,
    )


def _unforged(words: str) -> str:
    """Words none of whose lines passes for another's turn of an exchange."""
    return EXCHANGE_SPEAKER.sub(r" \g<0>", words)


def _first_needed(messages: Sequence[Message], known: int) -> int:
    """The place from which the steps of the messages after the first `known` can be told: of the earliest call that one
    of them answers. A conversation that grows is not read from its start for each message, nor for a result whose call
    is not there."""
    needed = known
    waiting: set[tuple[str, str]] = set()
    for place in reversed(range(len(messages))):
        message = messages[place]
        if place < known:
            if not waiting:
                break
            if message.session_id not in {session_id for session_id, _ in waiting}:
                continue
        if found := waiting.intersection(_opened(message)):
            needed = min(needed, place)
            waiting -= found
        answered = _answered(message)
        if place >= known or len(answered) > 1:  # of several, the earliest call that is there takes it
            waiting.update(answered)
    return needed


def _opened(message: Message) -> list[tuple[str, str]]:
    """What names the calls of a message in its session: the ids of them, and "", which is the latest call's."""
    if not tool_calls(message):
        return []
    ids = [part.tool_call_id for part in message.parts if part.part_type == "tool" and part.tool_call_id]
    return [(message.session_id, call_id) for call_id in (*ids, "")]


def _answered(message: Message) -> list[tuple[str, str]]:
    """What names the calls that a message answers, in order: none where it brings no results."""
    if message.role == "assistant" or not (
        message.role == "tool" or any(part.part_type == "tool" for part in message.parts)
    ):
        return []
    ids = [part.tool_call_id for part in message.parts if part.tool_call_id]
    return [(message.session_id, call_id) for call_id in dict.fromkeys(ids or [""])]
