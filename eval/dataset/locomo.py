"""LoCoMo: long two-person conversations, with questions whose evidence is named turn by turn."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

import polars as pl

from eval.dataset.card import Card, PinnedFile, dataset_digest, folder, read_pinned
from eval.dataset.dataset import QRELS_SCHEMA, Dataset, opaque_id
from lcm.checks import check_choice
from lcm.records.conversation import Message, Part, Transcript
from lcm.records.query import Query

CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "adversarial"}
_TURN_ID = re.compile(r"D\d+:\d+")

_CONVERSATIONS = PinnedFile("locomo_dev.json", "a4e2a1193c2564793be074e95d861e0adc032ce0905145921da80cf84586f64f")
_FIXES = PinnedFile("evidence_fixes_dev.json", "4579bfe872622fe10b287a9584f09f8164eb8c1353f59dea9d70753c3046c740")
_AUDIT = PinnedFile("audit_errors_dev.json", "774d8a786b288eec9110252d29778513fc2aaa2ede31606cda78722224efd23e")

Evidence = Literal["original", "repaired"]


@dataclass(frozen=True, slots=True)
class Locomo:
    """The development part: 6 conversations, 1,157 questions.

    Times: a turn has its session's; every question is asked at the last turn. Judged unit: the turn.
    """

    directory: str | None = None
    """None: the folder `locomo` in `LCM_DATASETS_DIR`."""
    evidence: Evidence = "original"
    """`original`: the turn ids as listed; entries that name no turn are left out. `repaired`: misspelt ids mended,
    and the citations that an audit found wrong replaced."""
    categories: Sequence[int] = (1, 2, 3, 4, 5)
    captions: bool = True
    """Whether the caption of a shared picture is part of the turn's words."""

    card: ClassVar[Card] = Card(
        name="locomo",
        title="LoCoMo, development part: 6 long two-person conversations, 1,157 questions",
        licence="CC BY-NC 4.0: for measuring only, not shipped",
        origin="snap-research/LoCoMo commit 3eb6f2c585f5; audit: dial481/locomo-audit commit 9493fb4b4af4",
        how_to_get="from data/locomo10.json keep the records conv-26, 30, 41, 42, 43, 44 and write them as "
        "locomo_dev.json (Python: json.dumps(records, ensure_ascii=False, indent=1) plus a newline); "
        "evidence=repaired needs the two lists of corrections besides",
        files=(_CONVERSATIONS, _FIXES, _AUDIT),
    )

    def __post_init__(self) -> None:
        check_choice(self, evidence=Evidence)
        unknown = sorted(set(self.categories) - set(CATEGORIES))
        if unknown or not self.categories:
            raise ValueError(f"categories must be some of 1, 2, 3, 4, 5, got {list(self.categories)!r}")

    def load(self) -> Dataset:
        files = (_CONVERSATIONS,) if self.evidence == "original" else self.card.files
        raw = read_pinned(folder(self.card, self.directory), files)
        contents = {name: json.loads(text) for name, text in raw.items()}
        repairs = _repairs(contents) if self.evidence == "repaired" else {}
        transcripts, queries, qrels, unknown = [], [], [], 0
        for record in contents[_CONVERSATIONS.path]:
            transcript, ids = self._transcript(record)
            transcripts.append(transcript)
            asked_at = transcript.messages[-1].created_at
            assert asked_at is not None
            for index, question in enumerate(record["qa"]):
                if question["category"] not in self.categories:
                    continue
                query_id = f"{record['sample_id']}/{index}"
                category = CATEGORIES[question["category"]]
                queries.append(Query(query_id, question["question"], asked_at, transcript.workspace_id, category))
                evidence = repairs.get((record["sample_id"], index), question["evidence"])
                unknown += sum(turn not in ids for turn in evidence)
                qrels += [(query_id, ids[turn], 1) for turn in dict.fromkeys(evidence) if turn in ids]
        protocol = f"evidence={self.evidence} categories={sorted(self.categories)} captions={self.captions} unit=turn"
        return Dataset(
            name="locomo",
            protocol=protocol,
            digest=dataset_digest(files, protocol),
            transcripts=tuple(transcripts),
            queries=tuple(queries),
            qrels=pl.DataFrame(qrels, schema=QRELS_SCHEMA, orient="row"),
            groups={"categories 1-4": tuple(CATEGORIES[n] for n in (1, 2, 3, 4))} if 5 in self.categories else {},
            notes=(f"{unknown} evidence entries name no turn and are left out",) if unknown else (),
        )

    def _transcript(self, record: Mapping[str, Any]) -> tuple[Transcript, dict[str, str]]:
        """The transcript, and native turn id -> message id."""
        sample, talk = record["sample_id"], record["conversation"]
        messages, ids = [], {}
        for session, turn in _turns(talk):
            ids[turn["dia_id"]] = opaque_id("locomo", sample, turn["dia_id"])
            messages.append(
                Message(
                    message_id=ids[turn["dia_id"]],
                    role="user" if turn["speaker"] == talk["speaker_a"] else "assistant",
                    content=self._content(turn),
                    session_id=opaque_id("locomo", sample, f"session {session}"),
                    created_at=_session_time(talk[f"session_{session}_date_time"]),
                    author=turn["speaker"],
                    parts=tuple(_parts(turn)),
                    envelope={"native": turn, "slots": {}},
                )
            )
        return Transcript(opaque_id("locomo", sample), tuple(messages), workspace_id=sample), ids

    def _content(self, turn: Mapping[str, Any]) -> str:
        caption = turn.get("blip_caption")
        return f"{turn['text']}\n[picture: {caption}]" if caption and self.captions else str(turn["text"])


def _turns(talk: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Session number and turn, in order. Some sessions have a date and no turns: those do not exist."""
    numbers = sorted(int(key.split("_")[1]) for key in talk if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        for turn in talk[f"session_{number}"]:
            yield number, turn


def _parts(turn: Mapping[str, Any]) -> Iterator[Part]:
    yield Part("text", text=turn["text"])
    picture = {key: turn[key] for key in ("blip_caption", "img_url", "query", "re-download") if key in turn}
    if picture:
        yield Part("file", text=turn.get("blip_caption"), metadata={"raw": picture})


def _session_time(text: str) -> datetime:
    """`1:56 pm on 8 May, 2023`; LoCoMo names no zone, so UTC."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _repairs(contents: Mapping[str, Any]) -> dict[tuple[str, int], list[str]]:
    """(sample, question index) -> evidence; the audit's word counts over the mended spelling."""
    repairs = {(fix["sample_id"], fix["qa_index"]): fix["evidence_normalised"] for fix in contents[_FIXES.path]}
    for finding in contents[_AUDIT.path]:
        if finding["error_type"] == "WRONG_CITATION":
            turns = [turn for entry in finding["correct_evidence"] for turn in _TURN_ID.findall(entry)]
            if turns:
                repairs[(finding["sample_id"], finding["qa_index"])] = turns
    return repairs
