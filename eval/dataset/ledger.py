"""A ledger of evidence corrections: whose evidence is wrong, what it becomes, why, and who says so.

JSON lines, one a question: question_id, was (the evidence as recorded), becomes, in_doubt, reason, source, version. A
ledger holds ids and its own words, and nothing of the dataset.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from eval.dataset.fields import Record, json_lines
from eval.dataset.published import Shape, json_records, unpacked_lines
from lcm.errors import DatasetError

LEDGER: Shape = json_records("lines", ("question_id",), ("in_doubt",))


@dataclass(frozen=True, slots=True)
class Correction:
    """What a ledger says of the evidence of one question."""

    question_id: str
    was: tuple[str, ...]
    becomes: tuple[str, ...]
    in_doubt: bool
    """Whether what it becomes is disputed too, or the answer itself."""
    reason: str
    source: str
    """Who found it."""
    version: str
    """Of the source."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Corrections, at most one a question."""

    corrections: tuple[Correction, ...]

    def __post_init__(self) -> None:
        ((twice, count),) = Counter(one.question_id for one in self.corrections).most_common(1) or ((None, 0),)
        if count > 1:
            raise DatasetError(f"the ledger corrects {twice!r} {count} times; keep one of its lines")

    def of(self, question_id: str, recorded: Sequence[str]) -> Sequence[str]:
        """What the evidence of a question becomes, or the recorded where it is not in the ledger.

        Raises:
            DatasetError: if the ledger was written for other evidence than what is recorded.
        """
        found = next((one for one in self.corrections if one.question_id == question_id), None)
        if found is None:
            return recorded
        if list(found.was) != list(recorded):
            raise DatasetError(
                f"the ledger says that the evidence of {question_id!r} was {list(found.was)}, but {list(recorded)} is "
                "recorded; take the ledger of this file"
            )
        return found.becomes

    def notes(self, judged: Collection[str]) -> tuple[str, ...]:
        """What was corrected of the judged questions, and what share of them no correction reaches."""
        here = [one for one in self.corrections if one.question_id in judged]
        repaired, doubted = sum(one.becomes != one.was for one in here), sum(one.in_doubt for one in here)
        versions = ", ".join(dict.fromkeys(f"{one.source} {one.version}" for one in self.corrections)) or "empty"
        undisputed = 1 - doubted / len(judged) if judged else 0.0
        of_judged = f"of {len(judged)} judged questions"
        return (
            f"{repaired} {of_judged} have other evidence than recorded (ledger: {versions})",
            f"{doubted} {of_judged} stay in doubt; the evidence of {undisputed:.1%} is undisputed",
        )


@runtime_checkable
class KeepsLedger(Protocol):
    """A loader that can judge by corrected evidence."""

    def evidence_ledger(self) -> Ledger: ...


def read_ledger(path: Path) -> Ledger:
    """Read a ledger.

    Raises:
        DatasetError: if a line is no correction, or a question has two.
    """
    lines = unpacked_lines(path)
    return Ledger(tuple(_correction(record) for record in json_lines(lines, str(path))))


def ledger_text(corrections: Iterable[Correction]) -> str:
    """A ledger as it is kept in a file."""
    return "".join(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in corrections)


def _correction(record: Record) -> Correction:
    in_doubt = record.fields.get("in_doubt")
    if not isinstance(in_doubt, bool):
        raise record.wrong("in_doubt", f"must be true or false, got {in_doubt!r}")
    return Correction(
        question_id=record.get("question_id", str),
        was=tuple(record.texts("was")),
        becomes=tuple(record.texts("becomes")),
        in_doubt=in_doubt,
        reason=record.get("reason", str),
        source=record.get("source", str),
        version=record.get("version", str),
    )
