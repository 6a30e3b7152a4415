"""What it takes to show something that is remembered."""

from collections.abc import Sequence
from typing import NamedTuple

from lcm.context.assembly.memory_header import MemoryText, Section, closing, line, line_text, message_text, opening
from lcm.protocols.models import TokenEstimator


class Price(NamedTuple):
    """The tokens of one document or authored block: as shown, and as packed."""

    shown: float
    """As it is counted."""
    packed: float
    """By which it is decided whether it fits."""


class Pricing:
    """Counts the tokens that texts take in a context, by one estimator.

    Shown once: a line of the header; the first of a section pays for its opening and closing too; that is counted, and
    that is packed by. Shown twice, as the original: packed by the bare text, counted by what its author counted, where
    he did, else by its message; the header costs nothing.
    """

    def __init__(self, estimator: TokenEstimator, *, is_twice: bool) -> None:
        self._estimator = estimator
        self._is_twice = is_twice

    def prices(
        self,
        section: Section,
        ones: Sequence[MemoryText],
        *,
        before: int = 0,
        counted: Sequence[int] = (),
    ) -> list[Price]:
        """Price what is to stand in a section, in order.

        Args:
            section: of the header.
            ones: what is to stand there.
            before: how many stand there already.
            counted: the tokens that its author counted, of each; 0 = he did not. Read where it is shown twice.
        """
        if self._is_twice:
            messages = self._estimator.count([message_text(one) for one in ones])
            bare = self._estimator.count([one.text for one in ones])
            told = counted or [0] * len(ones)
            return [Price(own or said, raw) for own, said, raw in zip(told, messages, bare, strict=True)]
        lines = [line(section, number, line_text(one)).text for number, one in enumerate(ones, start=before + 1)]
        tokens = self._estimator.count(lines)
        if tokens and not before:
            tokens[0] += self.frame_tokens(section)
        return [Price(cost, cost) for cost in tokens]

    def frame_tokens(self, section: Section) -> int:
        """What a section costs beside its entries."""
        return 0 if self._is_twice else self._estimator.count([opening(section) + closing(section)])[0]
