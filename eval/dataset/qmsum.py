"""QMSum: transcribed meetings, with questions answered by summaries and located in spans of turns."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal

import polars as pl

from eval.dataset.card import Card, PinnedFile, Release, dataset_digest
from eval.dataset.dataset import QRELS_SCHEMA, REFERENCES_SCHEMA, Dataset, opaque_id
from eval.dataset.fields import Record, json_lines, whole_number
from eval.dataset.published import check_only, check_part, find_file, json_records, part_words, unpacked_lines
from lcm.checks import check_choice
from lcm.clock import EPOCH
from lcm.records.conversation import Message, Part, Transcript
from lcm.records.query import Query

ASKED_AT = EPOCH + timedelta(days=1)
"""No meeting has a time, so its turns date from the epoch; every question is asked the day after."""
_MARK = re.compile(r"\{[a-z]+\}")

MEETINGS = json_records("lines", ("topic_list", "general_query_list", "specific_query_list", "meeting_transcripts"), ())

_COMMIT = "Yale-LILY/QMSum commit 83d7768c1f2b"
_ADDRESS = "https://github.com/Yale-LILY/QMSum/raw/83d7768c1f2b/data/ALL/jsonl/"


def _split(name: str, digest: str, size_bytes: int) -> Release:
    pin = PinnedFile(f"{name}.jsonl", digest, size_bytes)
    return Release(name, f"{_COMMIT}, data/ALL/jsonl/{name}.jsonl", (pin,), url=_ADDRESS)


RELEASES = (
    Release(
        "development",
        f"the validation set of {_COMMIT}, compressed",
        (PinnedFile("qmsum_dev.jsonl.gz", "a75a4b590ae6d2d6278644d9363ba07ea6d38839707870159b5a3dd1da618e9f"),),
        is_told=False,
    ),
    _split("val", "fc7444e241bdbe6997c01720d07f1a58b7357284acb73f909766e5a4700db49f", 2_714_748),
    _split("test", "6bcd428211260ad2efae3af76cbaf6a7f5ae4bb5e1e59c45a4b8e89539cb9208", 2_746_108),
)

Marks = Literal["strip", "keep"]


@dataclass(frozen=True, slots=True)
class Qmsum:
    """35 meetings of the validation or the test set, 162 of the training set; questions, each with a reference summary.

    Times: none recorded. Judged unit: the turn. Questions of the category `general` ask for the whole meeting and have
    no judgements.
    """

    directory: str | None = None
    """None: the folder `qmsum` in `LCM_DATASETS_DIR`."""
    file: str | None = None
    """Its path below the folder, or an absolute one; None: the only file of meetings there."""
    pinned: bool = False
    """Refuse a file of no known release, instead of taking it and saying so."""
    only: Sequence[str] | None = None
    """The meetings that are taken, as `meeting-3`, the fourth of the file; None: all."""
    marks: Marks = "strip"
    """Transcription marks such as {vocalsound}: `strip` takes them out of a turn's words, and the space that they
    leave; `keep` leaves the words as recorded."""

    card: ClassVar[Card] = Card(
        name="qmsum",
        title="QMSum: transcribed meetings, questions with reference summaries; 35 with 272 in the development part",
        licence="MIT",
        origin=_COMMIT,
        how_to_get="`lcm datasets get qmsum release=val`, or by hand val.jsonl, test.jsonl or "
        "train.jsonl of data/ALL/jsonl",
        releases=RELEASES,
    )

    def __post_init__(self) -> None:
        check_choice(self, marks=Marks)
        check_only(self.only)

    def load(self) -> Dataset:
        found = find_file(self.card, MEETINGS, self.directory, self.file, pinned=self.pinned)
        records = {f"meeting-{n}": r for n, r in enumerate(json_lines(unpacked_lines(found.path), found.path.name))}
        check_part(self.only, records, found.path.name)
        transcripts, queries, qrels, references, unknown = [], [], [], [], 0
        for meeting, record in records.items():
            if self.only is not None and meeting not in self.only:
                continue
            transcript = self._transcript(record, meeting)
            transcripts.append(transcript)
            for category, index, question in _questions(record):
                query_id = f"{meeting}/{category}/{index}"
                queries.append(Query(query_id, question.get("query", str), ASKED_AT, meeting, category))
                answered = None if category == "general" else query_id  # general questions ask for the whole
                references.append((transcript.conversation_id, answered, question.get("answer", str)))
                spans = _spans(question) if category == "specific" else []
                qrels += [(query_id, transcript.messages[n].message_id, 1) for n in _turns(spans, transcript)]
                unknown += sum(last >= len(transcript.messages) for _, last in spans)
        wordless = {m.message_id for t in transcripts for m in t.messages if not m.content.strip()}
        unfound = sum(message_id in wordless for _, message_id, _ in qrels)
        notes = {
            f"{len(wordless)} turns have no words; {unfound} of {len(qrels)} judgements name one of them": wordless,
            f"{unknown} spans go beyond their meeting: what is beyond it is left out": unknown,
        }
        protocol = f"marks={self.marks} unit=turn{part_words(self.only)}"
        return Dataset(
            name="qmsum",
            protocol=protocol,
            digest=dataset_digest([found.pin], protocol),
            transcripts=tuple(transcripts),
            queries=tuple(queries),
            qrels=pl.DataFrame(qrels, schema=QRELS_SCHEMA, orient="row"),
            references=pl.DataFrame(references, schema=REFERENCES_SCHEMA, orient="row"),
            notes=(*found.notes(), *(note for note, holds in notes.items() if holds)),
        )

    def _transcript(self, record: Record, workspace_id: str) -> Transcript:
        messages = tuple(
            Message(
                message_id=opaque_id("qmsum", workspace_id, str(index)),
                role="user",
                content=self._content(turn.get("content", str)),
                session_id=opaque_id("qmsum", workspace_id, "session"),
                author=turn.get("speaker", str),
                parts=(Part("text", text=turn.get("content", str)),),
                envelope={"native": turn.fields, "slots": {}},
            )
            for index, turn in enumerate(record.each("meeting_transcripts"))
        )
        return Transcript(opaque_id("qmsum", workspace_id), messages, workspace_id)

    def _content(self, text: str) -> str:
        return " ".join(_MARK.sub(" ", text).split()) if self.marks == "strip" else text


def _questions(record: Record) -> Iterator[tuple[str, int, Record]]:
    """Category, index within it, question."""
    for category in ("general", "specific"):
        for index, question in enumerate(record.each(f"{category}_query_list")):
            yield category, index, question


def _spans(question: Record) -> list[tuple[int, int]]:
    """A span names its first and its last turn, counted from 0, as text."""
    spans = []
    for span in question.get("relevant_text_span", list):
        is_named = isinstance(span, list) and len(span) == 2 and all(isinstance(turn, str) for turn in span)
        first, last = map(whole_number, span) if is_named else (None, None)
        if first is None or last is None:
            raise question.wrong("relevant_text_span", f"must name a first and a last turn as text, got {span!r:.60}")
        spans.append((first, last))
    return spans


def _turns(spans: Sequence[tuple[int, int]], transcript: Transcript) -> list[int]:
    """The turns of all spans, each once, in order."""
    end = len(transcript.messages)
    return sorted({turn for first, last in spans for turn in range(first, min(last + 1, end))})
