"""Tokens as a session recorded them, where it did."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lcm.checks import check_range
from lcm.protocols.models import TokenEstimator
from lcm.token_estimator.weighted import ScriptAware


@dataclass(frozen=True, slots=True)
class Recorded:
    """tokens = the recorded output tokens of what a model answered; of all else what another estimator counts.

    The output is a reply's own size; its thoughts count, which the record may not show. Nobody records the size of what
    a user says or a tool gives, nor that of a text: the other estimator counts these, and every message of a session
    without usage. An answer that is recorded as several messages is shared among them as the estimates are.

    A context that is assembled counts what messages hold: usage that stands beside them (Codex: `token_count`) is known
    to a store that took the session in from its file, and not to the assembly.
    """

    otherwise: TokenEstimator = field(default_factory=ScriptAware)
    image_tokens: int | None = 1200
    """Of an image, whatever its size; None = as the text that it is written in."""

    def __post_init__(self) -> None:
        check_range(self, "image_tokens", ge=0, or_null=True, is_whole=True)

    def count(self, texts: Sequence[str]) -> list[int]:
        return self.otherwise.count(texts)

    def shares(self, tokens: int, estimated: Sequence[int]) -> list[int]:
        """Share a recorded number among the messages of an answer: whole numbers, in all that number."""
        weights = estimated if any(estimated) else [1] * len(estimated)
        ends = [tokens * sum(weights[: place + 1]) // sum(weights) for place in range(len(weights))]
        return [end - start for start, end in zip([0, *ends], ends, strict=False)]
