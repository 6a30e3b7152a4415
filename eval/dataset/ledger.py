"""A ledger of evidence corrections: whose evidence is wrong, what it becomes, why, and who says so.

JSON lines, one a question: question_id, was (the evidence as recorded), becomes, in_doubt, reason, source, version. A
ledger holds ids and its own words, and nothing of the dataset. What is known to be wrong with LoCoMo's evidence,
misspelt turn ids and the findings of an audit, is made one here.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from eval.dataset.files import Record, Shape, json_lines, json_records
from lcm.errors import DatasetError

LEDGER: Shape = json_records("lines", ("question_id",), ("in_doubt",))
AUDIT: Shape = json_records("array", ("sample_id", "question_id", "qa_index"), ("error_type",))
FIXES: Shape = json_records("array", ("sample_id",), ("evidence_normalised",))

WRONG_CITATION = "WRONG_CITATION"
REASONS: Mapping[str, str] = {
    WRONG_CITATION: "the turns do not hold the answer, others do",
    "HALLUCINATION": "the answer says what no turn says",
    "TEMPORAL_ERROR": "the answer names a wrong time",
    "ATTRIBUTION_ERROR": "the answer takes one speaker for the other",
    "AMBIGUOUS": "several answers are right",
    "INCOMPLETE": "the answer leaves out what turns say",
}
"""Kind of finding -> why evidence is replaced (the first) or in doubt, in our words."""
MISSPELT = "a turn id is misspelt, or names no turn"
SPELLING_VERSION = "1"
"""Of the rule that mends turn ids."""
_TURN_ID = re.compile(r"D\d+:\d+")
_MISSPELT_ID = re.compile(r"D:?(\d+):(\d+)")
_FINDING_ID = re.compile(r"locomo_(\d+)_qa(\d+)")
_ORDER = (26, 30, 41, 42, 43, 44, 47, 48, 49, 50)
"""The conversations as locomo10.json holds them: the audit counts them from 0."""


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
    version: str


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
            DatasetError: where the ledger was written for other evidence.
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
    """Read a ledger; DatasetError where a line is no correction, or a question has two."""
    return Ledger(tuple(map(_correction, json_lines(path, str(path)))))


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


def mended(evidence: Sequence[str], turns: Collection[str]) -> list[str]:
    """Evidence with its misspelt ids mended and what names no turn left out: `D8:6; D9:17`, `D:11:26`, `D30:05`."""
    found = []
    for entry in evidence:
        names = [f"D{int(session)}:{int(turn)}" for session, turn in _MISSPELT_ID.findall(entry)]
        found += [entry] if entry in turns else [name for name in names if name in turns]
    return found


def audit_ledger(
    fixes: Iterable[Record],
    findings: Iterable[Record],
    recorded: Mapping[str, Sequence[str]],
    turns: Mapping[str, Collection[str]],
    version: str,
) -> Ledger:
    """The ledger of turn ids that were mended by hand, and of an audit, whose word counts over the mended spelling.

    Args:
        recorded: question id -> evidence, of the conversations at hand; findings of others are left out.
        turns: conversation -> its turn ids.
        version: of the audit.
    """
    becomes = {name: mended(evidence, turns[name.partition("/")[0]]) for name, evidence in recorded.items()}
    reasons = {name: [MISSPELT] for name, evidence in recorded.items() if becomes[name] != [*evidence]}
    doubted, audited = set[str](), set[str]()
    for fix in fixes:
        question_id = f"{fix.get('sample_id', str)}/{fix.get('qa_index', int)}"
        if question_id in recorded:
            becomes[question_id] = fix.texts("evidence_normalised")
            reasons[question_id] = [MISSPELT]
    for question_id, finding in _placed(findings):
        if question_id not in recorded:
            continue
        kind = finding.get("error_type", str)
        better = [] if finding.find("correct_evidence", list) is None else finding.texts("correct_evidence")
        found = [turn for entry in better for turn in _TURN_ID.findall(entry)]
        audited.add(question_id)
        if kind == WRONG_CITATION and found:
            becomes[question_id], reasons[question_id] = found, [REASONS[kind]]
        else:
            doubted.add(question_id)
            reasons.setdefault(question_id, []).append(REASONS.get(kind, kind.lower()))
    return Ledger(
        tuple(
            Correction(
                question_id=question_id,
                was=tuple(recorded[question_id]),
                becomes=tuple(becomes[question_id]),
                in_doubt=question_id in doubted,
                reason="; ".join(reasons[question_id]),
                source="audit" if question_id in audited else "spelling",
                version=version if question_id in audited else SPELLING_VERSION,
            )
            for question_id in recorded
            if question_id in reasons
        )
    )


def _placed(findings: Iterable[Record]) -> Iterator[tuple[str, Record]]:
    """Each finding with the id of its question, which it names by `sample_id` and `qa_index`, or by its own id."""
    for finding in findings:
        sample, index = finding.find("sample_id", str), finding.find("qa_index", int)
        if sample is not None and index is not None:
            yield f"{sample}/{index}", finding
            continue
        named = _FINDING_ID.fullmatch(finding.get("question_id", str))
        if named is None or int(named[1]) >= len(_ORDER):
            raise finding.wrong("question_id", f"must be locomo_CONVERSATION_qaINDEX, got {finding.fields!r:.60}")
        yield f"conv-{_ORDER[int(named[1])]}/{int(named[2])}", finding
