"""QMSum: transcribed meetings, with questions answered by summaries and located in spans of turns."""

import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Literal

import polars as pl

from eval.dataset.card import Card, PinnedFile, dataset_digest, folder, read_pinned
from eval.dataset.dataset import QRELS_SCHEMA, REFERENCES_SCHEMA, Dataset, opaque_id
from lcm.checks import check_choice
from lcm.clock import EPOCH
from lcm.records.conversation import Message, Part, Transcript
from lcm.records.query import Query

ASKED_AT = EPOCH + timedelta(days=1)
"""No meeting has a time, so its turns date from the epoch; every question is asked the day after."""
_MARK = re.compile(r"\{[a-z]+\}")

_MEETINGS = PinnedFile("qmsum_dev.jsonl.gz", "a75a4b590ae6d2d6278644d9363ba07ea6d38839707870159b5a3dd1da618e9f")

Marks = Literal["strip", "keep"]


@dataclass(frozen=True, slots=True)
class Qmsum:
    """The development part: 35 meetings, 272 questions, each with a reference summary.

    Times: none recorded. Judged unit: the turn. Questions of the category `general` ask for the whole meeting and have
    no judgements.
    """

    directory: str | None = None
    """None: the folder `qmsum` in `LCM_DATASETS_DIR`."""
    marks: Marks = "strip"
    """Transcription marks such as {vocalsound}: `strip` takes them out of a turn's words, and the space that they
    leave; `keep` leaves the words as recorded."""

    card: ClassVar[Card] = Card(
        name="qmsum",
        title="QMSum, development part: 35 transcribed meetings, 272 questions with reference summaries",
        licence="MIT",
        origin="Yale-LILY/QMSum commit 83d7768c1f2b",
        how_to_get="compress data/ALL/jsonl/val.jsonl to qmsum_dev.jsonl.gz with Python's "
        "gzip.GzipFile('', 'wb', 9, file, mtime=0)",
        files=(_MEETINGS,),
    )

    def __post_init__(self) -> None:
        check_choice(self, marks=Marks)

    def load(self) -> Dataset:
        raw = read_pinned(folder(self.card, self.directory), self.card.files)
        transcripts, queries, qrels, references = [], [], [], []
        for number, line in enumerate(gzip.decompress(raw[_MEETINGS.path]).splitlines()):
            record = json.loads(line)
            transcript = self._transcript(record, f"meeting-{number}")
            transcripts.append(transcript)
            for category in ("general", "specific"):
                for index, question in enumerate(record[f"{category}_query_list"]):
                    query_id = f"{transcript.workspace_id}/{category}/{index}"
                    queries.append(Query(query_id, question["query"], ASKED_AT, transcript.workspace_id, category))
                    answered = None if category == "general" else query_id  # general questions ask for the whole
                    references.append((transcript.conversation_id, answered, question["answer"]))
                    turns = sorted({turn for span in question.get("relevant_text_span", ()) for turn in _turns(span)})
                    qrels += [(query_id, transcript.messages[turn].message_id, 1) for turn in turns]
        wordless = {m.message_id for t in transcripts for m in t.messages if not m.content.strip()}
        unfound = sum(message_id in wordless for _, message_id, _ in qrels)
        protocol = f"marks={self.marks} unit=turn"
        return Dataset(
            name="qmsum",
            protocol=protocol,
            digest=dataset_digest(self.card.files, protocol),
            transcripts=tuple(transcripts),
            queries=tuple(queries),
            qrels=pl.DataFrame(qrels, schema=QRELS_SCHEMA, orient="row"),
            references=pl.DataFrame(references, schema=REFERENCES_SCHEMA, orient="row"),
            notes=(f"{len(wordless)} turns have no words; {unfound} of {len(qrels)} judgements name one of them",)
            if wordless
            else (),
        )

    def _transcript(self, record: Mapping[str, Any], workspace_id: str) -> Transcript:
        messages = tuple(
            Message(
                message_id=opaque_id("qmsum", workspace_id, str(index)),
                role="user",
                content=self._content(turn["content"]),
                session_id=opaque_id("qmsum", workspace_id, "session"),
                author=turn["speaker"],
                parts=(Part("text", text=turn["content"]),),
                envelope={"native": turn, "slots": {}},
            )
            for index, turn in enumerate(record["meeting_transcripts"])
        )
        return Transcript(opaque_id("qmsum", workspace_id), messages, workspace_id)

    def _content(self, text: str) -> str:
        return " ".join(_MARK.sub(" ", text).split()) if self.marks == "strip" else text


def _turns(span: tuple[str, str]) -> range:
    """A span names its first and its last turn, counted from 0, as text."""
    first, last = span
    return range(int(first), int(last) + 1)
