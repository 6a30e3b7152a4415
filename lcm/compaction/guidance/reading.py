"""What a deontic frame finds in a text: who or what must, must not, or may do something."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

Modality = Literal["obligation", "forbidden", "permitted"]

MASK_BITS: dict[Modality, int] = {"obligation": 2, "forbidden": 4, "permitted": 8}


class RuleMatch(NamedTuple):
    """A stretch of a text in which one rule of guidance matched."""

    start: int
    """Byte offset in the UTF-8 text."""
    end: int
    """Of the byte behind it."""
    modality: Modality
    rule: str
    """The name of what fired."""


@dataclass(frozen=True, slots=True)
class GuidanceMatches:
    """All rule matches in one text, in the order of finding."""

    findings: tuple[RuleMatch, ...] = ()

    @property
    def mask(self) -> int:
        """The bits of `MASK_BITS` of all that was found."""
        mask = 0
        for finding in self.findings:
            mask |= MASK_BITS[finding.modality]
        return mask

    @property
    def is_guidance(self) -> bool:
        return bool(self.findings)

    @property
    def label(self) -> Modality | None:
        """What the text says first; None = no rule."""
        return self.findings[0].modality if self.findings else None


class PhraseRules(Protocol):
    """A set of rules that finds guidance in words alone.

    Laws: deterministic; the offsets lie within the text; nothing is found in the empty text.
    """

    def read(self, text: str) -> GuidanceMatches: ...
