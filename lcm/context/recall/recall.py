"""Recall as a configuration describes it: grep, describe, expand, and questions answered by somebody who reads."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

from lcm.checks import check_choice, check_range
from lcm.context.answerer.answerer import Answer, Answerer, Question
from lcm.context.recall.candidates import candidates
from lcm.context.recall.delegation import DelegatedAnswer, Delegations, confined_reader, delegate
from lcm.context.recall.grants import Grant
from lcm.context.recall.grep import GrepSettings
from lcm.context.recall.lease import Clock
from lcm.context.recall.reader import Reader, ReaderSettings
from lcm.context.recall.routing import route
from lcm.errors import GrantError
from lcm.protocols.models import TokenEstimator
from lcm.records.rules import LosslessRules
from lcm.store.search import Order
from lcm.store.store import Store

TOOLS = ("lcm_grep", "lcm_describe", "lcm_expand", "lcm_expand_query")


@dataclass(frozen=True, slots=True)
class Recall:
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

    answerer: Answerer
    """Who answers the questions of `expand_query`."""
    token_estimator: TokenEstimator
    rules: LosslessRules = "corrected"
    order: Order = "relevance"
    """Of what a search for words finds: the best first, the newest, or the best with a discount for age."""
    limit: int = 50
    """Of messages, and again of summaries, that a search gives."""
    max_result_chars: int = 40_000
    """UTF-16 units of a search's text."""
    max_pattern_chars: int = 500
    """UTF-16 units of a regular expression."""
    max_regex_rows: int | None = None
    """How many of the newest texts a regular expression is tried on; None = all, within the time."""
    regex_timeout_seconds: float = 5.0
    """Of one search by a regular expression, for messages and again for summaries."""
    default_depth: int = 3
    """Steps downwards of an expansion."""
    max_expand_tokens: int = 4000
    """Of one expansion, where nothing else is asked for; of a tool's at most."""
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
        searching = GrepSettings(
            self.order,
            self.rules,
            self.max_pattern_chars,
            self.max_regex_rows,
            self.regex_timeout_seconds,
        )
        reading = ReaderSettings(
            searching, self.token_estimator, self.limit, self.default_depth, self.max_expand_tokens
        )
        return Reader(store, reading, may_read=may_read)

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
        return grant, confined_reader(replace(reader, lease=None), grants, grant, clock)

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
        return delegate(
            reader,
            self.answerer,
            self.delegations,
            Question(prompt.strip(), found.summary_ids, found.messages, found.needs_messages, most),
            found,
            token_cap=cap,
            timeout_seconds=self.delegation_timeout_seconds,
            origin=origin,
            clock=clock,
        )

    @staticmethod
    def schemas() -> dict[str, dict[str, Any]]:
        """The tools as JSON: name, description and the JSON Schema of the parameters, by name."""
        return {name: json.loads(_schema(name)) for name in TOOLS}


@cache
def _schema(name: str) -> str:
    return resources.files("lcm.context.recall").joinpath("schemas", f"{name}.json").read_text("utf-8")
