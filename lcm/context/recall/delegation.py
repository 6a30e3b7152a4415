"""A question handed to somebody who reads within a grant; the grant ends with it, whatever happens.

Source: lossless-claw 0.6.3.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from threading import Lock

from lcm.context.answerer.answerer import Answer, Answerer, Question
from lcm.context.recall.candidates import RecallCandidates
from lcm.context.recall.grants import Grant, Grants
from lcm.context.recall.lease import Clock, Lease
from lcm.context.recall.reader import Reader
from lcm.context.recall.routing import RoutingDecision, route
from lcm.errors import GrantError, LcmError

GRACE_SECONDS = 30.0
"""How much longer than the answer may take a grant lasts."""


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


def delegate(
    reader: Reader,
    answerer: Answerer,
    delegations: Delegations,
    question: Question,
    candidates: RecallCandidates,
    *,
    token_cap: int,
    timeout_seconds: float,
    origin: str,
    clock: Clock,
) -> DelegatedAnswer:
    """Lend a grant of the one conversation, ask, and take the grant back.

    Raises:
        DelegationError: if the asker's slot is taken.
        LcmError: if there is no answer, or it came too late.
    """
    plan = route(
        "query_probe",
        len(question.summary_ids),
        token_cap,
        query=question.prompt,
        has_messages=question.needs_messages,
    )
    with delegations.slot(origin):
        started_at = clock()
        grant = delegations.grants.create(
            candidates.conversations,
            started_at,
            max_depth=reader.reading.default_depth,
            token_cap=token_cap,
            ttl_seconds=timeout_seconds + GRACE_SECONDS,
        )
        try:
            answer = answerer.answer(question, confined_reader(reader, delegations.grants, grant, clock))
            _refuse_late(started_at, clock(), timeout_seconds)
        finally:
            delegations.end(grant.grant_id, clock())
    return DelegatedAnswer(answer, plan, candidates.conversations)


def confined_reader(reader: Reader, grants: Grants, grant: Grant, clock: Clock) -> Reader:
    """The same store as the holder of a grant reads it."""
    return replace(reader, lease=Lease(grants, grant.grant_id, clock, reader.token_estimator))


def _refuse_late(started_at: datetime, answered_at: datetime, timeout_seconds: float) -> None:
    if answered_at - started_at > timedelta(seconds=timeout_seconds):
        raise LcmError(f"the answer took longer than {timeout_seconds:g} seconds; raise delegation_timeout_seconds")
