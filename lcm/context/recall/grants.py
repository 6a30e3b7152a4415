"""Permissions to read, lent to whoever answers on another's behalf, and what each look takes off them.

Source: lossless-claw 0.6.3; its grants confine expansion alone, and those that end are kept until they expire.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import NamedTuple

from lcm.context.assembly.budget_shares import longest_prefix
from lcm.context.recall.expansion import ReadBounds
from lcm.context.recall.grep import Grep
from lcm.errors import GrantError
from lcm.protocols.models import TokenEstimator

DEFAULT_DEPTH = 3
DEFAULT_TOKEN_CAP = 4000
DEFAULT_TTL_SECONDS = 300.0
Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Grant:
    """A permission to read: what its holder may read, how much of it, and until when."""

    grant_id: str
    conversations: tuple[int, ...]
    """Integer keys."""
    summary_ids: tuple[str, ...]
    """Only these and what lies beneath them; empty = everything of the conversations."""
    max_depth: int
    token_cap: int
    expires_at: datetime


class Allowance(NamedTuple):
    """How far one expansion may go."""

    depth: int
    token_cap: int


@dataclass(slots=True)
class _Entry:
    grant: Grant
    consumed: int = 0
    is_revoked: bool = False


class Grants:
    """The grants of one process; ended ones are swept when another is made."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._made = 0
        self._lock = Lock()

    def create(
        self,
        conversations: Sequence[int],
        now: datetime,
        *,
        summary_ids: Sequence[str] = (),
        max_depth: int = DEFAULT_DEPTH,
        token_cap: int = DEFAULT_TOKEN_CAP,
        ttl_seconds: float = DEFAULT_TTL_SECONDS,
    ) -> Grant:
        """Make a grant that counts from now.

        Raises:
            ValueError: if it would cover nothing.
        """
        if not conversations:
            raise ValueError("a grant must name at least one conversation")
        if max_depth < 1 or token_cap < 1 or not 0 < ttl_seconds < math.inf:
            raise ValueError(
                "a grant needs max_depth, token_cap >= 1 and ttl_seconds > 0, "
                f"got {max_depth}, {token_cap}, {ttl_seconds}"
            )
        self.sweep(now)
        with self._lock:
            self._made += 1
            grant = Grant(
                f"grant_{self._made:012d}",
                tuple(conversations),
                tuple(summary_ids),
                max_depth,
                token_cap,
                now + timedelta(seconds=ttl_seconds),
            )
            self._entries[grant.grant_id] = _Entry(grant)
        return grant

    def inherit(self, grant_id: str, token_cap: int, now: datetime, ttl_seconds: float = DEFAULT_TTL_SECONDS) -> Grant:
        """Lend on from a grant: the same place, one step less deep, no more tokens than are left.

        Raises:
            GrantError: if the grant has ended, is used up, or is of one step.
        """
        parent = self.active(grant_id, now)
        if parent.max_depth <= 1:
            raise GrantError("Expansion authorization failed: Grant does not reach deep enough to be lent on")
        left = self._left(grant_id, now)
        seconds = min(ttl_seconds, (parent.expires_at - now).total_seconds())
        return self.create(
            parent.conversations,
            now,
            summary_ids=parent.summary_ids,
            max_depth=parent.max_depth - 1,
            token_cap=min(left, token_cap),
            ttl_seconds=seconds,
        )

    def active(self, grant_id: str, now: datetime) -> Grant:
        """The grant.

        Raises:
            GrantError: if there is none, or it was revoked or has expired.
        """
        entry = self._entries.get(grant_id)
        if entry is None:
            raise _refused("Grant not found")
        if entry.is_revoked:
            raise _refused("Grant has been revoked")
        if now >= entry.grant.expires_at:
            raise _refused("Grant has expired")
        return entry.grant

    def spendable(self, grant_id: str, now: datetime) -> Grant:
        """The grant.

        Raises:
            GrantError: if it has ended or is used up.
        """
        grant = self.active(grant_id, now)
        self._left(grant_id, now)
        return grant

    def authorize(
        self,
        grant_id: str,
        conversation: int,
        summary_ids: Sequence[str],
        now: datetime,
        *,
        depth: int | None = None,
        token_cap: int | None = None,
    ) -> Allowance:
        """What an expansion may do; depth and tokens are clamped, never refused.

        Args:
            grant_id: whose.
            conversation: that of the summaries.
            summary_ids: what is to be expanded.
            now: when.
            depth: as asked for; None or 0 = as deep as the grant goes.
            token_cap: as asked for; None = what is left.

        Raises:
            GrantError: if the grant has ended, does not cover it, or is used up.
        """
        grant = self.active(grant_id, now)
        if conversation not in grant.conversations:
            raise _refused(f"Conversation {conversation} is not in the allowed set")
        if grant.summary_ids and (outside := [one for one in summary_ids if one not in grant.summary_ids]):
            raise _refused(f"Summary IDs not authorized: {', '.join(outside)}")
        left = self._left(grant_id, now)
        wanted = grant.max_depth if not depth else max(1, depth)
        cap = left if token_cap is None else max(1, token_cap)
        return Allowance(min(wanted, grant.max_depth), min(cap, left))

    def remaining(self, grant_id: str, now: datetime) -> int | None:
        """The tokens that are left; None of a grant that has ended."""
        try:
            grant = self.active(grant_id, now)
        except GrantError:
            return None
        return grant.token_cap - self._entries[grant_id].consumed

    def consume(self, grant_id: str, tokens: int, now: datetime) -> int:
        """Take tokens off a grant, no more than it has; returns what is left.

        Raises:
            GrantError: if the grant has ended.
        """
        grant = self.active(grant_id, now)
        with self._lock:
            entry = self._entries[grant_id]
            entry.consumed = min(grant.token_cap, entry.consumed + max(0, tokens))
            return grant.token_cap - entry.consumed

    def revoke(self, grant_id: str) -> bool:
        """End a grant; says whether there was one."""
        with self._lock:
            entry = self._entries.get(grant_id)
            if entry is not None:
                entry.is_revoked = True
            return entry is not None

    def sweep(self, now: datetime) -> int:
        """Forget the grants that have ended; returns how many."""
        with self._lock:
            ended = [key for key, one in self._entries.items() if one.is_revoked or now >= one.grant.expires_at]
            for key in ended:
                del self._entries[key]
            return len(ended)

    def __len__(self) -> int:
        return len(self._entries)

    def _left(self, grant_id: str, now: datetime) -> int:
        left = self.remaining(grant_id, now)
        if not left:
            raise _refused("Grant token budget exhausted")
        return left


def _refused(reason: str) -> GrantError:
    return GrantError(f"Expansion authorization failed: {reason}")


@dataclass(frozen=True, slots=True)
class Lease:
    """Takes what is read off a grant; once that has ended or is used up, everything is refused."""

    grants: Grants
    grant_id: str
    clock: Clock
    token_estimator: TokenEstimator

    @property
    def left(self) -> int:
        """Tokens; 0 once the grant has ended."""
        return self.grants.remaining(self.grant_id, self.clock()) or 0

    def bounds(self) -> ReadBounds:
        """What may be seen.

        Raises:
            GrantError: if the grant has ended or is used up.
        """
        grant = self.grants.spendable(self.grant_id, self.clock())
        return ReadBounds(grant.conversations, grant.summary_ids or None)

    def allowed(self, conversations: Iterable[int], depth: int, token_cap: int) -> Allowance:
        """How far an expansion of what may be seen of some conversations may go.

        Raises:
            GrantError: if the grant has ended or is used up.
        """
        allowance = Allowance(depth, token_cap)
        for row in dict.fromkeys(conversations):
            allowance = self.grants.authorize(
                self.grant_id, row, (), self.clock(), depth=allowance.depth, token_cap=allowance.token_cap
            )
        return allowance

    def take(self, tokens: int) -> None:
        self.grants.consume(self.grant_id, tokens, self.clock())

    def charge(self, text: str) -> None:
        """Take the tokens of a text off the grant.

        Raises:
            GrantError: if it has fewer.
        """
        (tokens,) = self.token_estimator.count([text])
        if tokens > self.left:
            raise GrantError(f"the grant has {self.left} tokens left, and this takes {tokens}")
        self.take(tokens)

    def afforded(self, found: Grep) -> Grep:
        """The first hits, as many as there are tokens for."""
        snippets = [hit.snippet for hit in found.messages] + [hit.snippet for hit in found.summaries]
        counts = self.token_estimator.count(snippets)
        kept = longest_prefix(counts, self.left)
        self.take(sum(counts[:kept]))
        if kept == len(snippets):
            return found
        of_messages = len(found.messages)
        return replace(
            found,
            messages=found.messages[:kept],
            summaries=found.summaries[: max(0, kept - of_messages)],
            notes=(*found.notes, "the grant has no tokens for more"),
        )
