"""A grant as its holder uses it: what may be seen, and what each look costs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from lcm.context.recall.grants import Allowance, Grants
from lcm.context.recall.grep import Grep
from lcm.context.recall.read_bounds import ReadBounds
from lcm.errors import GrantError
from lcm.protocols.models import TokenEstimator

Clock = Callable[[], datetime]


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

    def allowed(self, conversations: Mapping[str, int], depth: int, token_cap: int) -> Allowance:
        """How far an expansion of summaries that may be seen, each with its conversation, may go.

        Raises:
            GrantError: if the grant has ended or is used up.
        """
        allowance = Allowance(depth, token_cap)
        for row in dict.fromkeys(conversations.values()):
            ids = [one for one, of in conversations.items() if of == row]
            allowance = self.grants.authorize(
                self.grant_id,
                row,
                ids,
                self.clock(),
                depth=allowance.depth,
                token_cap=allowance.token_cap,
                covered=ids,
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
        kept = self._first(self.token_estimator.count(snippets))
        if kept == len(snippets):
            return found
        of_messages = len(found.messages)
        return Grep(
            found.messages[:kept],
            found.summaries[: max(0, kept - of_messages)],
            (*found.notes, "the grant has no tokens for more"),
        )

    def _first(self, counts: Sequence[int]) -> int:
        """How many of the first fit; they are taken off."""
        left, kept = self.left, 0
        for tokens in counts:
            left -= tokens
            if left < 0:
                break
            kept += 1
        self.take(sum(counts[:kept]))
        return kept
