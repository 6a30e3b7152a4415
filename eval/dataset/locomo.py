"""LoCoMo: long two-person conversations, with questions whose evidence is named turn by turn."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

import polars as pl

from eval.dataset.card import Card, PinnedFile, Release, dataset_digest
from eval.dataset.dataset import ANSWERS_SCHEMA, QRELS_SCHEMA, Dataset, opaque_id
from eval.dataset.fields import Record, json_array
from eval.dataset.ledger import LEDGER, Ledger, read_ledger
from eval.dataset.locomo_audit import AUDIT, FIXES, audit_ledger
from eval.dataset.published import (
    FoundFile,
    Shape,
    any_of,
    check_only,
    check_part,
    files_of,
    find_file,
    identified,
    json_records,
    part_words,
)
from lcm.checks import check_choice
from lcm.errors import DatasetError
from lcm.records.conversation import Message, Part, Transcript
from lcm.records.query import Query

CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "adversarial"}

CONVERSATIONS: Shape = any_of(
    json_records("array", ("qa", "conversation"), ("evidence", "dia_id")),
    json_records("array", ("sample_id",), ("dia_id",)),
)

DEVELOPMENT = Release(
    name="development",
    title="conv-26, 30, 41, 42, 43, 44 of snap-research/LoCoMo commit 3eb6f2c, with two lists of corrections",
    files=(
        PinnedFile("locomo_dev.json", "a4e2a1193c2564793be074e95d861e0adc032ce0905145921da80cf84586f64f"),
        PinnedFile("evidence_fixes_dev.json", "4579bfe872622fe10b287a9584f09f8164eb8c1353f59dea9d70753c3046c740"),
        PinnedFile("audit_errors_dev.json", "774d8a786b288eec9110252d29778513fc2aaa2ede31606cda78722224efd23e"),
    ),
    is_told=False,
)
WHOLE = Release(
    name="locomo10",
    title="LoCoMo locomo10.json, snap-research 3eb6f2c",
    files=(
        PinnedFile(
            "locomo10.json", "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4", size_bytes=2_805_274
        ),
    ),
    url="https://raw.githubusercontent.com/snap-research/LoCoMo/3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376/data/",
)

Evidence = Literal["original", "repaired", "both"]


@dataclass(frozen=True, slots=True)
class Locomo:
    """Ten conversations with 1,986 questions as published, the same with the 1,382 of LoCoMo_refined, or the six of the
    development part with 1,157.

    Times: a turn has its session's; every question is asked at the last turn. Judged unit: the turn.
    """

    directory: str | None = None
    """None: the folder `locomo` in `LCM_DATASETS_DIR`."""
    file: str | None = None
    """Of the conversations: its path below the folder, or an absolute one; None: the only such file there."""
    pinned: bool = False
    """Refuse a file of no known release, instead of taking it and saying so."""
    only: Sequence[str] | None = None
    """The conversations that are taken, by `sample_id`; None: all."""
    evidence: Evidence = "original"
    """`original`: the turn ids as listed; entries that name no turn are left out. `repaired`: as the ledger has them:
    misspelt ids mended, and the citations that an audit found wrong replaced. `both`: measures by either."""
    ledger: str | None = None
    """A ledger of evidence corrections: its path below the folder, or an absolute one; None: the only one beside the
    conversations, else what the audit's files there come to."""
    categories: Sequence[int] = (1, 2, 3, 4, 5)
    captions: bool = True
    """Whether the caption of a shared picture is part of the turn's words."""

    card: ClassVar[Card] = Card(
        name="locomo",
        title="LoCoMo: long two-person conversations; 10 with 1,986 questions, 6 with 1,157 in the development part",
        licence="CC BY-NC 4.0: for measuring only, not shipped",
        origin="snap-research/LoCoMo commit 3eb6f2c585f5; audit: dial481/locomo-audit commit 9493fb4b4af4",
        how_to_get="`lcm datasets get locomo`, or data/locomo10.json by hand, or data/raw/locomo_refined.json of "
        "mem-eval-suite/LoCoMo_refined; evidence=repaired needs errors.json of the audit beside locomo10.json",
        releases=(WHOLE, DEVELOPMENT),
    )

    def __post_init__(self) -> None:
        check_choice(self, evidence=Evidence)
        check_only(self.only)
        unknown = sorted(set(self.categories) - set(CATEGORIES))
        if unknown or not self.categories:
            raise ValueError(f"categories must be some of 1, 2, 3, 4, 5, got {list(self.categories)!r}")

    def load(self) -> Dataset:
        found = find_file(self.card, CONVERSATIONS, self.directory, self.file, pinned=self.pinned)
        records = list(json_array(found.path))
        samples = [record.get("sample_id", str) for record in records]
        check_part(self.only, samples, found.path.name)
        ledger, pins = (Ledger(()), []) if self.evidence == "original" else self._ledger(found, records)
        transcripts, queries, answers, unanswerable, unknown = [], [], list[tuple[str, str]](), set[str](), 0
        qrels: dict[str, list[tuple[str, str, int]]] = {"original": [], "repaired": []}
        for sample, record in zip(samples, records, strict=True):
            if self.only is not None and sample not in self.only:
                continue
            transcript, ids = self._transcript(sample, record)
            transcripts.append(transcript)
            asked_at = transcript.messages[-1].created_at
            assert asked_at is not None
            for question_id, question in _questions(sample, record):
                category = question.get("category", int)
                if category not in CATEGORIES:
                    raise question.wrong("category", f"must be 1 to 5, got {category}")
                if category not in self.categories:
                    continue
                text = question.get("question", str)
                queries.append(Query(question_id, text, asked_at, transcript.workspace_id, CATEGORIES[category]))
                right = question.each_words("answer")
                answers += [(question_id, answer) for answer in right]
                if not right and CATEGORIES[category] == "adversarial":
                    unanswerable.add(question_id)
                recorded = question.texts("evidence")
                of_key = {"original": recorded, "repaired": ledger.of(question_id, recorded)}
                unknown += sum(turn not in ids for turn in of_key[_key(self.evidence)])
                for key, turns in of_key.items():
                    qrels[key] += [(question_id, ids[turn], 1) for turn in dict.fromkeys(turns) if turn in ids]
        protocol = (
            f"evidence={self.evidence} categories={sorted(self.categories)} captions={self.captions} unit=turn"
            f"{part_words(self.only)}"
        )
        frames = {key: pl.DataFrame(rows, schema=QRELS_SCHEMA, orient="row") for key, rows in qrels.items()}
        judged = set(frames["repaired"]["query_id"])
        left_out = (f"{unknown} evidence entries name no turn and are left out",) if unknown else ()
        return Dataset(
            name="locomo",
            protocol=protocol,
            digest=dataset_digest([found.pin, *pins], protocol),
            transcripts=tuple(transcripts),
            queries=tuple(queries),
            qrels=frames[_key(self.evidence)],
            repaired_qrels=frames["repaired"] if self.evidence == "both" else None,
            answers=pl.DataFrame(answers, schema=ANSWERS_SCHEMA, orient="row"),
            unanswerable=frozenset(unanswerable),
            groups={"categories 1-4": tuple(CATEGORIES[n] for n in (1, 2, 3, 4))} if 5 in self.categories else {},
            notes=(*found.notes(), *left_out, *(() if self.evidence == "original" else ledger.notes(judged))),
        )

    def evidence_ledger(self) -> Ledger:
        """The corrections that `repaired` goes by, of all conversations of the file."""
        found = find_file(self.card, CONVERSATIONS, self.directory, self.file, pinned=self.pinned)
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
        files = [identified(self.card, path, pinned=self.pinned) for path in (*shaped[FIXES], *shaped[AUDIT])]
        *fixes, findings = [list(json_array(file.path)) for file in files]
        recorded, turns = dict[str, list[str]](), dict[str, set[str]]()
        for record in records:
            sample = record.get("sample_id", str)
            recorded |= {name: question.texts("evidence") for name, question in _questions(sample, record)}
            turns[sample] = {turn.get("dia_id", str) for _, turn in _turns(_talk(record))}
        version = f"sha256 {files[-1].pin.sha256[:12]}"
        corrections = audit_ledger([fix for each in fixes for fix in each], findings, recorded, turns, version)
        return corrections, [file.pin for file in files]

    def _transcript(self, sample: str, record: Record) -> tuple[Transcript, dict[str, str]]:
        """The transcript, and native turn id -> message id."""
        talk = _talk(record)
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
                    created_at=_said_at(talk, session),
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


def _key(evidence: Evidence) -> str:
    """The judgements that a dataset has first."""
    return "repaired" if evidence == "repaired" else "original"


def _questions(sample: str, record: Record) -> Iterator[tuple[str, Record]]:
    """Each question with its id."""
    for index, question in enumerate(record.each("qa")):
        yield f"{sample}/{index}", question


def _is_refined(records: Sequence[Record]) -> bool:
    """Say whether this is LoCoMo_refined, whose questions have lists of right answers."""
    return any(isinstance(question.fields.get("answer"), list) for one in records for question in one.each("qa"))


def _talk(record: Record) -> Record:
    return Record(f"{record.place}: conversation", record.get("conversation", dict))


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


def _said_at(talk: Record, session: int) -> datetime:
    key = f"session_{session}_date_time"
    text = talk.get(key, str)
    try:
        return _session_time(text)
    except ValueError as error:
        raise talk.wrong(key, f"must be a time such as '1:56 pm on 8 May, 2023', got {text!r}") from error


def _session_time(text: str) -> datetime:
    """`1:56 pm on 8 May, 2023`; LoCoMo names no zone, so UTC."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
