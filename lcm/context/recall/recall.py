"""Recall as a configuration describes it: grep, describe, expand, and questions answered by somebody who reads.

A question is handed to an answerer, who reads within a grant; the grant ends with it, whatever happens.

Source: lossless-claw 0.6.3.
"""

import json
import logging
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from threading import Lock
from typing import Any, Literal, Protocol

from lcm.checks import check_choice, check_range
from lcm.context.recall.grants import Clock, Grant, Grants, Lease
from lcm.context.recall.grep import ReadingSettings
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
GRACE_SECONDS = 30.0
"""How much longer than the answer may take a grant lasts."""
TOOLS = ("lcm_grep", "lcm_describe", "lcm_expand", "lcm_expand_query")


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
class RecallCandidates:
    """What was named or found, of one conversation."""

    summary_ids: tuple[str, ...] = ()
    messages: tuple[int, ...] = ()
    """Integer keys of messages that were found: to be read before anything is expanded."""
    needs_messages: bool = False
    """Found by what the messages say: the summaries themselves do not."""
    conversations: tuple[int, ...] = ()
    """Integer keys: of the one conversation, and of archived ones of its id; empty where nothing was found."""


def candidates(
    reader: Reader,
    item_ids: Sequence[str],
    query: str,
    conversation: str | int | None,
    rules: LosslessRules,
) -> RecallCandidates:
    """Gather where to begin.

    Args:
        reader: what may be read.
        item_ids: of summaries and messages, named by the asker; a large file stands for its message.
        query: words to search summaries for, and, where none holds them, messages.
        conversation: where; None = anywhere.
        rules: `corrected` searches messages whenever no summary was found, and hands them on; `original` only where
            summaries are at most of depth 1, and keeps no more than the leaves above them.

    Raises:
        StoreError: if an id is unknown, or several conversations come into question.
    """
    items = reader.items(item_ids, conversation=conversation)
    rows = reader.bounds(conversation).conversations
    with reader.store.reading() as connection:
        depth = deepest(connection, rows)
    found: list[str] = []
    conversations: list[int] = []
    messages: list[int] = []
    for item in items:
        number = item.file.message if item.file else item.number
        if number is None:
            raise StoreError(f"the store does not hold the message of {item.item_id!r}; grep finds ids")
        conversations.append(item.conversation)
        if item.kind == "summary":
            found.append(item.item_id)
        else:
            messages.append(number)
    needs_messages = bool(messages)
    if query:
        hits = reader.grep(query, mode="full_text", scope="summaries", conversation=conversation).summaries
        found += [hit.summary_id for hit in hits]
        conversations += [hit.conversation for hit in hits]
        if not hits and (rules == "corrected" or depth <= _SHALLOW):
            said = reader.grep(query, mode="full_text", scope="messages", conversation=conversation).messages
            with reader.store.reading() as connection:
                leaves = leaves_of(connection, [hit.number for hit in said])
            kept = said if rules == "corrected" else [hit for hit in said if hit.number in leaves]
            found += [leaves[hit.number] for hit in kept if hit.number in leaves]
            messages += [hit.number for hit in kept] if rules == "corrected" else []
            conversations += [hit.conversation for hit in kept]
            needs_messages = needs_messages or bool(said)
    distinct = tuple(sorted(set(conversations)))
    if len(distinct) > 1 and not isinstance(conversation, str):
        raise StoreError(
            f"what was found lies in {len(distinct)} conversations ({', '.join(map(str, distinct))}); name one of them"
        )
    return RecallCandidates(tuple(dict.fromkeys(found)), tuple(dict.fromkeys(messages)), needs_messages, distinct)


class DelegationError(GrantError):
    """A question may not be handed on.

    `code` is EXPANSION_RECURSION_BLOCKED or EXPANSION_CONCURRENCY_BLOCKED; `reason` is depth_cap (the asker answers for
    somebody itself), idempotent_reentry (it had asked that already) or in_flight.
    """

    def __init__(self, code: str, reason: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.reason = reason


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


@dataclass(slots=True)
class Delegations:
    """Who is asking in this process; one question at a time for each of them."""

    grants: Grants = field(default_factory=Grants)
    _asking: set[str] = field(default_factory=set)
    _blocked: set[tuple[str, str]] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)

    @contextmanager
    def slot(self, origin: str) -> Iterator[None]:
        """Hold the one slot of an asker.

        Raises:
            DelegationError: if it is taken.
        """
        with self._lock:
            if origin in self._asking:
                message = f"{origin!r} is still waiting for an answer; ask again once it is there"
                raise DelegationError("EXPANSION_CONCURRENCY_BLOCKED", "in_flight", message)
            self._asking.add(origin)
        try:
            yield
        finally:
            with self._lock:
                self._asking.discard(origin)

    def end(self, grant_id: str, now: datetime) -> None:
        """Revoke a grant and forget it."""
        self.grants.revoke(grant_id)
        self.grants.sweep(now)
        with self._lock:
            self._blocked = {blocked for blocked in self._blocked if blocked[0] != grant_id}

    def refuse_recursion(self, grant_id: str, request_id: str) -> None:
        """Refuse a question of somebody who answers one.

        Raises:
            DelegationError: always; of a request that was refused before, as such.
        """
        with self._lock:
            is_repeated = bool(request_id) and (grant_id, request_id) in self._blocked
            self._blocked.add((grant_id, request_id))
        reason = "idempotent_reentry" if is_repeated else "depth_cap"
        message = "a delegated reader must not delegate; use lcm_describe and lcm_expand"
        raise DelegationError("EXPANSION_RECURSION_BLOCKED", reason, message)


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
    | a refused pattern, a search cut short | is told | is not | the first alone |
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
    delegations: Delegations = field(default_factory=Delegations, init=False, repr=False, compare=False)

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
    ) -> tuple[Grant, Reader]:
        """A grant for a sub-agent, and the store as that may read it; of a lent reader no more than it has.

        The grant must be ended with `delegations.end` once the sub-agent is done.

        Raises:
            GrantError: if the reader's own grant has ended or cannot be lent on, or the reader may not read one of the
                conversations itself.
        """
        grants, now = self.delegations.grants, clock()
        if reader.lease is None:
            bounds = reader.bounds()
            if outside := [row for row in conversations if not bounds.holds(row)]:
                raise GrantError(f"there is no conversation {outside[0]} to lend a grant of")
            grant = grants.create(
                conversations,
                now,
                summary_ids=summary_ids,
                max_depth=self.default_depth,
                token_cap=self.max_expand_tokens,
                ttl_seconds=self.grant_ttl_seconds,
            )
        else:
            grant = grants.inherit(reader.lease.grant_id, self.max_expand_tokens, now, self.grant_ttl_seconds)
        return grant, self._lent(reader, grant, clock)

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
        origin: str = "main",
        request_id: str = "",
    ) -> DelegatedAnswer:
        """Have a question answered from what was compacted.

        Args:
            reader: what the asker may read; one within a grant is refused.
            prompt: the question.
            clock: tells the time.
            summary_ids: where to begin to read.
            query: words that find where to begin.
            conversation: where; None = anywhere, but all that is found must be of one conversation.
            max_tokens: of the answer.
            token_cap: of all that is read for it.
            origin: who asks; one question at a time for each.
            request_id: tells a repeated request.

        Raises:
            DelegationError: if the asker is a delegated reader, or still waits for an answer.
            LcmError: if a summary is unknown, several conversations come into question, or there is no answer.
        """
        if reader.lease is not None:
            self.delegations.refuse_recursion(reader.lease.grant_id, request_id)
        if not prompt.strip():
            raise ValueError("prompt must say what is asked, got nothing")
        if not summary_ids and not query.strip():
            raise ValueError("name summaries or a query: there is nowhere to begin to read")
        cap = self.max_expand_tokens if token_cap is None else token_cap
        most = self.max_answer_tokens if max_tokens is None else min(max_tokens, self.max_answer_tokens)
        if cap < 1 or most < 1:
            raise ValueError(f"token_cap and max_tokens must be >= 1, got {cap} and {most}")
        found = candidates(reader, summary_ids, query.strip(), conversation, self.rules)
        if not found.conversations:
            nothing = Answer(f"Nothing was found for {query.strip()!r}: no summary or message holds these words.", ())
            return DelegatedAnswer(nothing, route("query_probe", 0, cap, query=prompt), ())
        question = Question(prompt.strip(), found.summary_ids, found.messages, found.needs_messages, most)
        return self._delegated(reader, question, found.conversations, cap, origin, clock)

    def _delegated(
        self, reader: Reader, question: Question, conversations: Sequence[int], cap: int, origin: str, clock: Clock
    ) -> DelegatedAnswer:
        """Lend a grant of the one conversation, ask, and take the grant back."""
        asked, summaries = question.prompt, len(question.summary_ids)
        plan = route("query_probe", summaries, cap, query=asked, has_messages=question.needs_messages)
        seconds = self.delegation_timeout_seconds
        with self.delegations.slot(origin):
            started_at = clock()
            grant = self.delegations.grants.create(
                conversations,
                started_at,
                max_depth=self.default_depth,
                token_cap=cap,
                ttl_seconds=seconds + GRACE_SECONDS,
            )
            try:
                answer = self.answerer.answer(question, self._lent(reader, grant, clock))
                if clock() - started_at > timedelta(seconds=seconds):
                    raise LcmError(f"the answer took longer than {seconds:g} seconds; raise delegation_timeout_seconds")
            finally:
                self.delegations.end(grant.grant_id, clock())
        return DelegatedAnswer(answer, plan, tuple(conversations))

    def _lent(self, reader: Reader, grant: Grant, clock: Clock) -> Reader:
        """The same store as the holder of a grant reads it."""
        return replace(reader, lease=Lease(self.delegations.grants, grant.grant_id, clock, self.token_estimator))

    @staticmethod
    def schemas() -> dict[str, dict[str, Any]]:
        """The tools as JSON: name, description and the JSON Schema of the parameters, by name."""
        return {name: json.loads(_schema(name)) for name in TOOLS}


@cache
def _schema(name: str) -> str:
    return resources.files("lcm.context.recall").joinpath("schemas", f"{name}.json").read_text("utf-8")
