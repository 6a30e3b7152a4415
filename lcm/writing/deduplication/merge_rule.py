"""Two records made one by their lines, without a model."""

from collections.abc import Iterable
from dataclasses import dataclass

from lcm.protocols.writing import Merged
from lcm.records.document import Candidate, Document


@dataclass(frozen=True, slots=True)
class LineMerge:
    """At each level the candidate's lines, then those of the document that none of them repeats: nothing is lost.

    A line repeats another that holds it, whatever the case of letters and the white space.
    """

    def merge(self, document: Document, candidate: Candidate) -> Merged | None:
        return Merged(
            text=_joined(candidate.text, document.text),
            overview=_joined(candidate.overview, document.overview),
            content=_joined(candidate.content, document.content),
        )


def _joined(newer: str, older: str) -> str:
    lines = [line for text in (newer, older) for line in text.splitlines() if line.strip()]
    keys = [_key(line) for line in lines]
    kept = (line for i, line in enumerate(lines) if not _is_repeated(keys[i], keys[:i], keys[i + 1 :]))
    return "\n".join(kept)


def _is_repeated(key: str, before: Iterable[str], after: Iterable[str]) -> bool:
    """Whether a line before it holds it, or a longer one after it."""
    return any(key in other for other in before) or any(key in other and key != other for other in after)


def _key(line: str) -> str:
    return " ".join(line.casefold().split())
