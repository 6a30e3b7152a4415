"""LoCoMo: long two-person conversations, with questions whose evidence is named turn by turn.

A ledger corrects evidence: whose is wrong, what it becomes, why, and who says so. JSON lines, one a question:
question_id, was (the evidence as recorded), becomes, in_doubt, reason, source, version. A ledger holds ids and its own
words, and nothing of the dataset. What is known to be wrong with the evidence, misspelt turn ids and the findings of an
audit, is made one here.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from eval.dataset.card import Card, PinnedFile, read_card
from eval.dataset.dataset import QRELS_SCHEMA, Dataset, Draft, frame_of, opaque_id
from eval.dataset.files import (
    FoundFile,
    PublishedFile,
    Record,
    Shape,
    any_of,
    files_of,
    find_file,
    identified,
    json_array,
    json_lines,
    json_records,
)
from lcm.checks import check_choice
from lcm.errors import DatasetError
from lcm.records.conversation import Message, Part, Transcript
from lcm.records.query import Query

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


CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "adversarial"}

CONVERSATIONS = any_of(
    json_records("array", ("qa", "conversation"), ("evidence", "dia_id")),
    json_records("array", ("sample_id",), ("dia_id",)),
)

TIME, _SUCH = "%I:%M %p on %d %B, %Y", "a time such as '1:56 pm on 8 May, 2023'"
Evidence = Literal["original", "repaired", "both"]


@dataclass(frozen=True, slots=True)
class Locomo(PublishedFile):
    """Ten conversations with 1,986 questions as published, the same with the 1,382 of LoCoMo_refined, or the six of the
    development part with 1,157.

    Times: a turn has its session's; every question is asked at the last turn. Judged unit: the turn. `only` names
    conversations by `sample_id`.
    """

    evidence: Evidence = "original"
    """`original`: the turn ids as listed; entries that name no turn are left out. `repaired`: as the ledger has them:
    misspelt ids mended, and the citations that an audit found wrong replaced. `both`: measures by either."""
    ledger: str | None = None
    """A ledger of evidence corrections: its path below the folder, or an absolute one; None: the only one beside the
    conversations, else what the audit's files there come to."""
    categories: Sequence[int] = (1, 2, 3, 4, 5)
    captions: bool = True
    """Whether the caption of a shared picture is part of the turn's words."""

    card: ClassVar[Card] = read_card("locomo")

    def __post_init__(self) -> None:
        PublishedFile.__post_init__(self)
        check_choice(self, evidence=Evidence)
        unknown = sorted(set(self.categories) - set(CATEGORIES))
        if unknown or not self.categories:
            raise ValueError(f"categories must be some of 1, 2, 3, 4, 5, got {list(self.categories)!r}")

    def load(self) -> Dataset:
        found = self.find(CONVERSATIONS)
        records = list(json_array(found.path))
        samples = [record.get("sample_id", str) for record in records]
        self.check_part(samples, found.path.name)
        ledger, pins = (Ledger(()), []) if self.evidence == "original" else self._ledger(found, records)
        draft, repaired, unknown = Draft(), list[tuple[str, str, int]](), 0
        for sample, record in zip(samples, records, strict=True):
            if not self.takes(sample):
                continue
            transcript, ids = self._transcript(sample, record)
            draft.transcripts.append(transcript)
            asked_at = transcript.messages[-1].created_at
            assert asked_at is not None
            for question_id, question in _questions(sample, record):
                category = question.get("category", int)
                if category not in CATEGORIES:
                    raise question.wrong("category", f"must be 1 to 5, got {category}")
                if category not in self.categories:
                    continue
                text, kind = question.get("question", str), CATEGORIES[category]
                draft.queries.append(Query(question_id, text, asked_at, sample, kind))
                right = question.each_words("answer")
                draft.answers += [(question_id, answer) for answer in right]
                if not right and kind == "adversarial":
                    draft.unanswerable.add(question_id)
                recorded = question.texts("evidence")
                better = ledger.of(question_id, recorded)
                first = better if self.evidence == "repaired" else recorded
                unknown += sum(turn not in ids for turn in first)
                draft.judge(question_id, (ids[turn] for turn in dict.fromkeys(first) if turn in ids))
                repaired += [(question_id, ids[turn], 1) for turn in dict.fromkeys(better) if turn in ids]
        judged = {question_id for question_id, _, _ in repaired}
        left_out = (f"{unknown} evidence entries name no turn and are left out",) if unknown else ()
        return self.dataset(
            draft,
            f"evidence={self.evidence} categories={sorted(self.categories)} captions={self.captions} unit=turn",
            [found],
            pins=[found.pin, *pins],
            notes=(*left_out, *(() if self.evidence == "original" else ledger.notes(judged))),
            repaired_qrels=frame_of(repaired, QRELS_SCHEMA) if self.evidence == "both" else None,
            groups={"categories 1-4": tuple(CATEGORIES[n] for n in (1, 2, 3, 4))} if 5 in self.categories else {},
        )

    def evidence_ledger(self) -> Ledger:
        """The corrections that `repaired` goes by, of all conversations of the file."""
        found = self.find(CONVERSATIONS)
        return self._ledger(found, list(json_array(found.path)))[0]

    def _ledger(self, found: FoundFile, records: Sequence[Record]) -> tuple[Ledger, list[PinnedFile]]:
        """The corrections, and the files that they come from."""
        place = found.path.parent
        if self.ledger is not None:
            named = find_file(self.card, LEDGER, str(place), self.ledger)
            return read_ledger(named.path), [named.pin]
        shaped = {shape: [p for p in files_of(place) if shape.is_held_by(p)] for shape in (LEDGER, FIXES, AUDIT)}
        for shape, paths in shaped.items():
            if len(paths) > 1:
                raise DatasetError(f"{place} holds several files of {shape.words}; name a ledger, dataset.ledger=FILE")
        if shaped[LEDGER]:
            (path,) = shaped[LEDGER]
            return read_ledger(path), [identified(self.card, path).pin]
        if shaped[AUDIT] and _is_refined(records):
            raise DatasetError(
                f"{found.path}: the audit numbers the questions of locomo10.json, and these are others, with lists "
                "of answers: set dataset.evidence=original, or name a ledger of their own, dataset.ledger=FILE"
            )
        if not shaped[AUDIT]:
            raise DatasetError(
                f"corrections of evidence are asked for, and {place} holds none: put a ledger there, or errors.json of "
                "dial481/locomo-audit"
            )
        files = [self.identified(path) for path in (*shaped[FIXES], *shaped[AUDIT])]
        *fixes, findings = [list(json_array(file.path)) for file in files]
        recorded, turns = dict[str, list[str]](), dict[str, set[str]]()
        for record in records:
            sample = record.get("sample_id", str)
            recorded |= {name: question.texts("evidence") for name, question in _questions(sample, record)}
            turns[sample] = {turn.get("dia_id", str) for _, turn in _turns(record.inner("conversation"))}
        version = f"sha256 {files[-1].pin.sha256[:12]}"
        corrections = audit_ledger([fix for each in fixes for fix in each], findings, recorded, turns, version)
        return corrections, [file.pin for file in files]

    def _transcript(self, sample: str, record: Record) -> tuple[Transcript, dict[str, str]]:
        """The transcript, and native turn id -> message id."""
        talk = record.inner("conversation")
        first_speaker = talk.get("speaker_a", str)
        messages, ids = [], {}
        for session, turn in _turns(talk):
            name, speaker = turn.get("dia_id", str), turn.get("speaker", str)
            ids[name] = opaque_id("locomo", sample, name)
            messages.append(
                Message(
                    message_id=ids[name],
                    role="user" if speaker == first_speaker else "assistant",
                    content=self._content(turn),
                    session_id=opaque_id("locomo", sample, f"session {session}"),
                    created_at=talk.instant(key := f"session_{session}_date_time", talk.get(key, str), TIME, _SUCH),
                    author=speaker,
                    parts=tuple(_parts(turn.fields)),
                    envelope={"native": turn.fields, "slots": {}},
                )
            )
        if not messages:
            raise record.wrong("conversation", "holds no turn")
        return Transcript(opaque_id("locomo", sample), tuple(messages), workspace_id=sample), ids

    def _content(self, turn: Record) -> str:
        text, caption = turn.get("text", str), turn.find("blip_caption", str)
        return f"{text}\n[picture: {caption}]" if caption and self.captions else text


def _questions(sample: str, record: Record) -> Iterator[tuple[str, Record]]:
    """Each question with its id."""
    for index, question in enumerate(record.each("qa")):
        yield f"{sample}/{index}", question


def _is_refined(records: Sequence[Record]) -> bool:
    """Say whether this is LoCoMo_refined, whose questions have lists of right answers."""
    return any(isinstance(question.fields.get("answer"), list) for one in records for question in one.each("qa"))


def _turns(talk: Record) -> Iterator[tuple[int, Record]]:
    """Session number and turn, in order. Some sessions have a date and no turns: those do not exist."""
    numbers = sorted(int(key.split("_")[1]) for key in talk.fields if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        for turn in talk.each(f"session_{number}"):
            yield number, turn


def _parts(turn: Mapping[str, Any]) -> Iterator[Part]:
    yield Part("text", text=turn["text"])
    picture = {key: turn[key] for key in ("blip_caption", "img_url", "query", "re-download") if key in turn}
    if picture:
        yield Part("file", text=turn.get("blip_caption"), metadata={"raw": picture})
