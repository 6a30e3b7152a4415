"""Permissions to read, lent to whoever answers on another's behalf, and what each look takes off them.

Source: lossless-claw 0.6.3; its grants confine expansion alone.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from lcm.context.recall.expansion import ReadBounds
from lcm.context.recall.grep import Grep
from lcm.errors import GrantError
from lcm.protocols.models import TokenEstimator
from lcm.store.search import MessageHit, SummaryHit

Clock = Callable[[], datetime]


class Allowance(NamedTuple):
    """How far one expansion may go."""

    depth: int
    token_cap: int


@dataclass(slots=True)
class Grant:
    """A permission to read, counted from when it is made; once it has ended or is used up, everything is refused.

    Every refusal is a GrantError.
    """

    conversations: tuple[int, ...]
    """Integer keys."""
    clock: Clock = field(repr=False)
    summary_ids: tuple[str, ...] = ()
    """Only these and what lies beneath them; empty = everything of the conversations."""
    max_depth: int = 3
    token_cap: int = 4000
    ttl_seconds: float = 300.0
    expires_at: datetime = field(init=False)
    consumed: int = field(default=0, init=False)
    is_revoked: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if not self.conversations:
            raise ValueError("a grant must name at least one conversation")
        if self.max_depth < 1 or self.token_cap < 1 or not 0 < self.ttl_seconds < math.inf:
            raise ValueError(
                "a grant needs max_depth, token_cap >= 1 and ttl_seconds > 0, "
                f"got {self.max_depth}, {self.token_cap}, {self.ttl_seconds}"
            )
        self.expires_at = self.clock() + timedelta(seconds=self.ttl_seconds)

    @property
    def ended_because(self) -> str:
        """Empty while it lasts."""
        if self.is_revoked:
            return "Grant has been revoked"
        return "Grant has expired" if self.clock() >= self.expires_at else ""

    @property
    def left(self) -> int:
        """Tokens; 0 once it has ended."""
        return 0 if self.ended_because else self.token_cap - self.consumed

    def revoke(self) -> None:
        self.is_revoked = True

    def bounds(self) -> ReadBounds:
        """What may be seen."""
        self._require(not self.ended_because, self.ended_because)
        self._require(self.left > 0, "Grant token budget exhausted")
        return ReadBounds(self.conversations, self.summary_ids or None)

    def allowed(
        self,
        conversations: Iterable[int],
        summary_ids: Sequence[str] = (),
        *,
        depth: int | None = None,
        token_cap: int | None = None,
    ) -> Allowance:
        """What an expansion may do; depth and tokens are clamped, never refused.

        Args:
            conversations: those of what is expanded.
            summary_ids: what must be named by the grant, where that names any.
            depth: as asked for; None or 0 = as deep as the grant goes.
            token_cap: as asked for; None = what is left.
        """
        self._require(not self.ended_because, self.ended_because)
        for row in conversations:
            self._require(row in self.conversations, f"Conversation {row} is not in the allowed set")
        outside = [one for one in summary_ids if one not in self.summary_ids] if self.summary_ids else []
        self._require(not outside, f"Summary IDs not authorized: {', '.join(outside)}")
        self._require(self.left > 0, "Grant token budget exhausted")
        wanted = self.max_depth if not depth else max(1, depth)
        cap = self.left if token_cap is None else max(1, token_cap)
        return Allowance(min(wanted, self.max_depth), min(cap, self.left))

    def take(self, tokens: int) -> None:
        """Take tokens off it, no more than it has."""
        self._require(not self.ended_because, self.ended_because)
        self.consumed = min(self.token_cap, self.consumed + max(0, tokens))

    def charge(self, tokens: int) -> None:
        """Take tokens off it, and refuse where it has fewer."""
        if tokens > self.left:
            raise GrantError(f"the grant has {self.left} tokens left, and this takes {tokens}")
        self.take(tokens)

    def afforded(self, found: Grep, estimator: TokenEstimator) -> Grep:
        """The first hits, as many as there are tokens for."""
        hits: list[MessageHit | SummaryHit] = [*found.messages, *found.summaries]
        kept = 0
        for tokens in estimator.count([hit.snippet for hit in hits]):
            if tokens > self.left:
                break
            self.take(tokens)
            kept += 1
        if kept == len(hits):
            return found
        return replace(
            found,
            messages=found.messages[:kept],
            summaries=found.summaries[: max(0, kept - len(found.messages))],
            notes=(*found.notes, "the grant has no tokens for more"),
        )

    def _require(self, is_so: bool, refusal: str) -> None:
        if not is_so:
            raise GrantError(f"Expansion authorization failed: {refusal}")
