"""Recall as a configuration describes it: grep, describe, expand, and questions answered by somebody who reads.

A question is handed to an answerer, who reads within a grant; the grant ends with it, whatever happens.

Source: lossless-claw 0.6.3.
"""

import logging
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal, Protocol

from lcm.checks import check_choice, check_range
from lcm.context.recall.grants import Clock, Grant
from lcm.context.recall.grep import Grep, ReadingSettings, Scope
from lcm.context.recall.reader import DescribedSummary, Reader
from lcm.errors import GrantError, LcmError, StoreError
from lcm.records.rules import LosslessRules
from lcm.records.summary import Summary
from lcm.store.search import Order
from lcm.store.store import Store
from lcm.store.summaries import deepest, leaves_of

Action = Literal["answer_directly", "expand_shallow", "delegate_traversal"]
Intent = Literal["query_probe", "explicit_expand"]
Risk = Literal["low", "moderate", "high"]

_DEFAULT_DEPTH, _MAX_DEPTH = 3, 10
_DIRECT_DEPTH, _DIRECT_CANDIDATES = 2, 1
_MODERATE_RISK, _HIGH_RISK = 0.35, 0.7
_SUMMARY_TOKENS = 220
_MESSAGES_FACTOR, _DEPTH_GROWTH, _LONG_TIME_FACTOR, _HOPS_FACTOR = 1.9, 0.65, 1.35, 1.25
_HOPS_DEPTH, _HOPS_CANDIDATES = 3, 5
_LONG_TIME_YEARS = 2
_LARGEST_CAP = 2**53 - 1

_LONG_TIME = re.compile(
    r"\b(?:last|past)\s+(?:month|quarter|year)s?\b"
    r"|\b(?:over|across|throughout)\s+(?:time|months|quarters|years)\b"
    r"|\b(?:timeline|chronology|history|long[-\s]?term)\b"
    r"|\bbetween\s+[^.]{0,40}\s+and\s+[^.]{0,40}\b",
    re.IGNORECASE,
)
_HOPS = re.compile(
    r"\broot\s+cause\b|\bcausal\s+chain\b|\bchain\s+of\s+events\b"
    r"|\bmulti[-\s]?(?:hop|step)\b|\bcross[-\s]?summary\b|\bhow\s+did\b.+\blead\s+to\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:19|20)\d{2}\b")
_SHALLOW = 1
_log = logging.getLogger(__name__)
_GRACE_SECONDS = 30.0
"""How much longer than the answer may take a grant lasts."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question for an answerer, with the summaries and messages to begin at."""

    prompt: str
    summary_ids: tuple[str, ...]
    """Where to begin: named by the asker, or found."""
    messages: tuple[int, ...] = ()
    """Integer keys of messages that are in no summary, and speak of it."""
    needs_messages: bool = False
    """The summaries were found by what their messages say."""
    max_tokens: int = 2000
    """Of the answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answerer's text, with the summaries and messages that it cites."""

    text: str
    cited_ids: tuple[str, ...]
    """The summaries that it rests on."""
    cited_messages: tuple[int, ...] = ()
    """The messages that it rests on, by their integer keys."""
    expanded_summaries: int = 0
    """How many summaries were read for it."""
    source_tokens: int = 0
    """How many tokens were read for it."""
    is_truncated: bool = False
    """Not everything could be read, or the answer was cut."""


class Answerer(Protocol):
    """Laws: reads through its reader alone; at most `max_tokens`; cites nothing that it was not shown."""

    def answer(self, question: Question, reader: Reader) -> Answer:
        """Answer a question.

        Raises:
            LcmError: if there is no answer to be had: the grant has ended, or a model gives none.
        """
        ...


def begun(question: Question, reader: Reader) -> Iterator[tuple[str, Summary | None]]:
    """The summaries to begin at, read within half of what a grant has left; None of those whose words do not fit."""
    kept_back = reader.remaining_tokens // 2
    for summary_id in question.summary_ids:
        described = None
        if reader.remaining_tokens > kept_back:
            try:
                described = reader.describe(summary_id)
            except GrantError as refusal:
                _log.info("%s is read without its own words: %s", summary_id, refusal)
        yield summary_id, described.summary if isinstance(described, DescribedSummary) else None


@dataclass(frozen=True, slots=True)
class RoutingDecision:
    """How a request is answered (at once, expanded or delegated), and the figures that decided it."""

    action: Action
    depth: int
    candidates: int
    estimated_tokens: int
    token_cap: int
    risk_ratio: float
    risk: Risk
    is_over_long_time: bool
    is_in_several_hops: bool
    is_simple_probe: bool


def route(
    intent: Intent,
    candidates: int,
    token_cap: float,
    *,
    query: str = "",
    depth: int | None = None,
    has_messages: bool = False,
) -> RoutingDecision:
    """Decide.

    Args:
        intent: a question by its words, or an expansion of named summaries.
        candidates: summaries that may be expanded.
        token_cap: of the whole result; infinity = none.
        query: the words.
        depth: as asked for, clamped to 1-10; None = 3.
        has_messages: raw messages are wanted too.
    """
    depth = _DEFAULT_DEPTH if depth is None else min(max(depth, 1), _MAX_DEPTH)
    candidates = max(0, candidates)
    cap = max(1, int(token_cap)) if math.isfinite(token_cap) else _LARGEST_CAP
    long_time = is_over_long_time(query)
    hops = depth >= _HOPS_DEPTH or candidates >= _HOPS_CANDIDATES or _HOPS.search(query) is not None
    each = _SUMMARY_TOKENS * (_MESSAGES_FACTOR if has_messages else 1) * (1 + (depth - 1) * _DEPTH_GROWTH)
    each = each * (_LONG_TIME_FACTOR if long_time else 1) * (_HOPS_FACTOR if hops else 1)
    estimate = math.ceil(each * candidates)
    ratio = estimate / cap
    risk: Risk = "high" if ratio >= _HIGH_RISK else "moderate" if ratio >= _MODERATE_RISK else "low"
    is_simple = (
        intent == "query_probe"
        and 0 < candidates <= _DIRECT_CANDIDATES
        and depth <= _DIRECT_DEPTH
        and risk == "low"
        and not (long_time or hops)
    )
    action: Action = "expand_shallow"
    if candidates == 0 or is_simple:
        action = "answer_directly"
    elif risk == "high" or (long_time and hops):
        action = "delegate_traversal"
    return RoutingDecision(action, depth, candidates, estimate, cap, ratio, risk, long_time, hops, is_simple)


def is_over_long_time(query: str) -> bool:
    """Say whether the words speak of months or years, by name or by two years that lie apart."""
    if _LONG_TIME.search(query):
        return True
    years = [int(year) for year in _YEAR.findall(query)]
    return len(years) > 1 and max(years) - min(years) >= _LONG_TIME_YEARS


@dataclass(frozen=True, slots=True)
class DelegatedAnswer:
    """The answer to a delegated question, with the route and the conversations that it came from."""

    answer: Answer
    route: RoutingDecision
    conversations: tuple[int, ...]
    """The integer keys of what was read; empty where nothing was found."""

    @property
    def text(self) -> str:
        """The answer as the tools tell it, with what was read for it and what it rests on."""
        answer = self.answer
        cited = ", ".join([*answer.cited_ids, *(f"msg#{number}" for number in answer.cited_messages)]) or "nothing"
        more = ", not all that there is" if answer.is_truncated else ""
        read = f"read {answer.expanded_summaries} summaries, {answer.source_tokens:,} tokens{more}"
        return f"{answer.text}\n\n{read}; cited: {cited}"


@dataclass(frozen=True, slots=True)
class Recall(ReadingSettings):
    """The recall tools as configured: grep, describe, expand, and delegated questions over one store.

    Source: lossless-claw 0.6.3 (`rules` original, `order` time, `max_regex_rows` 10000) and 0.15.3 (0.15):

    | | corrected | original | 0.15 |
    |---|---|---|---|
    | words between quotation marks | must stand side by side | stand anywhere | side by side |
    | a summary is dated by | what it covers | when it was made | the end of what it covers |
    | Chinese, Japanese and Korean is sorted by | relevance | likewise | as other words |
    | words that are a regular expression | are searched for | likewise | are refused |
    | describe lists | what a summary was made of | what was made of it | likewise |
    | expand tells | all that it read | names, sizes and a snippet | likewise |
    | no summary is found | messages are searched | only where summaries are at most of depth 1 | likewise |
    | search of messages | with calls of tools, results and reasoning | their words | likewise |
    | a message that does not fit an expansion | is clipped with a mark | ends it unread | likewise |
    """

    answerer: Answerer = field(kw_only=True)
    """Who answers the questions of `expand_query`."""
    max_result_chars: int = 40_000
    """UTF-16 units of a search's text."""
    max_answer_tokens: int = 2000
    delegation_timeout_seconds: float = 120.0
    """How long an answer may take."""
    grant_ttl_seconds: float = 300.0
    """How long a grant lasts that is lent to somebody else's sub-agent."""

    def __post_init__(self) -> None:
        check_choice(self, order=Order, rules=LosslessRules)
        check_range(self, "limit", "max_result_chars", "max_pattern_chars", "default_depth", "max_expand_tokens", ge=1)
        check_range(self, "max_answer_tokens", ge=1)
        check_range(self, "max_regex_rows", ge=1, or_null=True)
        check_range(self, "regex_timeout_seconds", "delegation_timeout_seconds", "grant_ttl_seconds", gt=0)

    def on(self, store: Store, may_read: Callable[[str], bool] | None = None) -> Reader:
        """Read a store as its owner, or as somebody who may read some conversations of it.

        Args:
            store: what is read.
            may_read: says of a conversation's id whether it may be read: `Identity.reads_conversation`; None = all.
        """
        return Reader(store, self, may_read=may_read)

    def grant_access(
        self, reader: Reader, conversations: Sequence[int], clock: Clock, *, summary_ids: Sequence[str] = ()
    ) -> Reader:
        """The store as a sub-agent may read it within a new grant, which ends by itself, or by `grant.revoke()`.

        Raises:
            GrantError: if the reader is within a grant, or may not read one of the conversations itself.
        """
        if reader.grant is not None:
            raise GrantError("what was lent is not lent on")
        bounds = reader.bounds()
        if outside := [row for row in conversations if not bounds.holds(row)]:
            raise GrantError(f"there is no conversation {outside[0]} to lend a grant of")
        tokens, seconds = self.max_expand_tokens, self.grant_ttl_seconds
        return replace(
            reader,
            grant=Grant(tuple(conversations), clock, tuple(summary_ids), self.default_depth, tokens, seconds),
        )

    def expand_query(
        self,
        reader: Reader,
        prompt: str,
        clock: Clock,
        *,
        summary_ids: Sequence[str] = (),
        query: str = "",
        conversation: str | int | None = None,
        max_tokens: int | None = None,
        token_cap: int | None = None,
    ) -> DelegatedAnswer:
        """Have a question answered from what was compacted, within a grant of the one conversation that it leads to.

        Args:
            reader: what the asker may read; one within a grant is refused.
            prompt: the question.
            clock: tells the time.
            summary_ids: where to begin to read.
            query: words that find where to begin.
            conversation: where; None = anywhere, but all that is found must be of one conversation.
            max_tokens: of the answer.
            token_cap: of all that is read for it.

        Raises:
            GrantError: if the asker is a delegated reader.
            LcmError: if a summary is unknown, several conversations come into question, or there is no answer.
        """
        if reader.grant is not None:
            raise GrantError("a delegated reader must not delegate: describe and expand are for it")
        if not prompt.strip():
            raise ValueError("prompt must say what is asked, got nothing")
        if not summary_ids and not query.strip():
            raise ValueError("name summaries or a query: there is nowhere to begin to read")
        cap = self.max_expand_tokens if token_cap is None else token_cap
        most = self.max_answer_tokens if max_tokens is None else min(max_tokens, self.max_answer_tokens)
        if cap < 1 or most < 1:
            raise ValueError(f"token_cap and max_tokens must be >= 1, got {cap} and {most}")
        question, conversations = self._question(reader, prompt, summary_ids, query.strip(), conversation, most)
        if not conversations:
            nothing = Answer(f"Nothing was found for {query.strip()!r}: no summary or message holds these words.", ())
            return DelegatedAnswer(nothing, route("query_probe", 0, cap, query=prompt), ())
        named, has_messages = len(question.summary_ids), question.needs_messages
        plan = route("query_probe", named, cap, query=question.prompt, has_messages=has_messages)
        seconds, started_at = self.delegation_timeout_seconds, clock()
        grant = Grant(conversations, clock, (), self.default_depth, cap, seconds + _GRACE_SECONDS)
        try:
            answer = self.answerer.answer(question, replace(reader, grant=grant))
            if clock() - started_at > timedelta(seconds=seconds):
                raise LcmError(f"the answer took longer than {seconds:g} seconds; raise delegation_timeout_seconds")
        finally:
            grant.revoke()
        return DelegatedAnswer(answer, plan, conversations)

    def _question(
        self,
        reader: Reader,
        prompt: str,
        item_ids: Sequence[str],
        query: str,
        conversation: str | int | None,
        max_tokens: int,
    ) -> tuple[Question, tuple[int, ...]]:
        """The question with where to begin, and the integer keys of its one conversation and of archived ones of its
        id; none where nothing was found.

        Args:
            item_ids: of summaries and messages, named by the asker; a large file stands for its message.
            query: words to search summaries for, and, where none holds them, messages: by the original's rules only
                where summaries are at most of depth 1, and no more than the leaves above those are kept.
        """
        summaries: list[str] = []
        messages: list[int] = []
        conversations: set[int] = set()
        for item in reader.items(item_ids, conversation=conversation):
            number = item.file.message if item.file else item.number
            if number is None:
                raise StoreError(f"the store does not hold the message of {item.item_id!r}; grep finds ids")
            conversations.add(item.conversation)
            if item.kind == "summary":
                summaries.append(item.item_id)
            else:
                messages.append(number)
        needs_messages = bool(messages)
        hits = self._found(reader, query, "summaries", conversation).summaries if query else ()
        summaries += [hit.summary_id for hit in hits]
        conversations |= {hit.conversation for hit in hits}
        if query and not hits and (self.rules == "corrected" or self._is_shallow(reader, conversation)):
            said = self._found(reader, query, "messages", conversation).messages
            with reader.store.reading() as connection:
                leaves = leaves_of(connection, [hit.number for hit in said])
            kept = [hit for hit in said if self.rules == "corrected" or hit.number in leaves]
            summaries += [leaves[hit.number] for hit in kept if hit.number in leaves]
            messages += [hit.number for hit in kept] if self.rules == "corrected" else []
            conversations |= {hit.conversation for hit in kept}
            needs_messages = needs_messages or bool(said)
        if len(conversations) > 1 and not isinstance(conversation, str):
            raise StoreError(
                f"what was found lies in {len(conversations)} conversations "
                f"({', '.join(map(str, sorted(conversations)))}); name one of them"
            )
        begins = tuple(dict.fromkeys(summaries)), tuple(dict.fromkeys(messages))
        return Question(prompt.strip(), *begins, needs_messages, max_tokens), tuple(sorted(conversations))

    @staticmethod
    def _found(reader: Reader, query: str, scope: Scope, conversation: str | int | None) -> Grep:
        return reader.grep(query, mode="full_text", scope=scope, conversation=conversation)

    @staticmethod
    def _is_shallow(reader: Reader, conversation: str | int | None) -> bool:
        rows = reader.bounds(conversation).conversations
        with reader.store.reading() as connection:
            return deepest(connection, rows) <= _SHALLOW
