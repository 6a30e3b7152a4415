"""BEAM: long conversations of a user with an assistant, with probing questions of ten types."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

import polars as pl

from eval.dataset.beam_files import TRUNCATED, Conversation, Said, find_form
from eval.dataset.beam_releases import RELEASES
from eval.dataset.card import Card, dataset_digest
from eval.dataset.dataset import ANSWERS_SCHEMA, QRELS_SCHEMA, REFERENCES_SCHEMA, Dataset, opaque_id
from eval.dataset.fields import Record
from eval.dataset.published import check_only, check_part, identified, notes_of, part_words
from lcm.checks import check_choice
from lcm.records.conversation import Message, Part, Role, Transcript
from lcm.records.query import Query

Size = Literal["100K", "500K", "1M", "10M"]
Chats = Literal["full", "truncated"]

SINGLE_SHOT = (
    "contradiction_resolution", "information_extraction", "knowledge_update", "multi_session_reasoning",
    "preference_following", "temporal_reasoning",
)  # fmt: skip
"""The types whose evidence one search can find. Without abstention (it has none), and without event_ordering,
instruction_following and summarization: their evidence is spread over the conversation, or shares no subject with the
question."""

ABSTENTION = "abstention"
"""The type of questions that nothing answers."""
_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant"}
_PLAN_MARKER = re.compile(r"\s*->->.*$")


@dataclass(frozen=True, slots=True)
class Beam:
    """20, 35, 35 or 10 conversations as published, 12, 21 or 5 in the development part; twenty questions each.

    Times: a message has the day last named, as the first of each batch does; every question is asked at the last
    message. Judged unit: the message.
    """

    directory: str | None = None
    """None: the folder `beam` in `LCM_DATASETS_DIR`."""
    file: str | None = None
    """The file, or the folder of a size, below the folder or absolute; None: what is there of that size."""
    pinned: bool = False
    """Refuse a file of no known release, instead of taking it and saying so."""
    only: Sequence[str] | None = None
    """The conversations that are taken, as `beam-100K-13`; None: all."""
    size: Size = "100K"
    """About how many tokens a conversation has; only what is of this size is read."""
    chats: Chats = "full"
    """`truncated`: the shortened chat of a conversation that has one, as BEAM's own script prefers it."""

    card: ClassVar[Card] = Card(
        name="beam",
        title="BEAM: long conversations of four sizes with twenty probing questions each; 38 in the development part",
        licence="CC BY-SA 4.0 on the data card, none in the repository: for measuring only, not shipped",
        origin="mohammadtavakoli78/BEAM commit b2a3ee8ba12d; Hugging Face Mohammadta/BEAM and BEAM-10M",
        how_to_get="`lcm datasets get beam release=parquet_100K`, or by hand <size>-*.parquet, or the repository's "
        "chats/<size>; one size is enough",
        releases=RELEASES,
    )

    def __post_init__(self) -> None:
        check_choice(self, size=Size, chats=Chats)
        check_only(self.only)

    def load(self) -> Dataset:
        form = find_form(self.card, self.size, self.directory, self.file, is_truncated=self.chats == "truncated")
        names = form.names()
        check_part(self.only, names, form.path)
        names = [name for name in names if self.only is None or name in self.only]
        found = [identified(self.card, path, pinned=self.pinned) for path in form.files(names)]
        transcripts, queries, qrels, references, unknown = [], [], [], [], 0
        answers, unanswerable = list[tuple[str, str]](), set[str]()
        for conversation in form.conversations(names):
            transcript, ids = _transcript(conversation)
            transcripts.append(transcript)
            asked_at = max(message.created_at for message in transcript.messages if message.created_at)
            for category, index, question in _questions(conversation.questions):
                query_id = f"{conversation.name}/{category}/{index}"
                text = question.get("question", str)
                queries.append(Query(query_id, text, asked_at, transcript.workspace_id, category))
                evidence = list(_flat(question.fields.get("source_chat_ids")))
                unknown += sum(number not in ids for number in evidence)
                qrels += [(query_id, ids[number], 1) for number in dict.fromkeys(evidence) if number in ids]
                answer = question.find_words("answer") or question.find_words("ideal_answer")
                if category == ABSTENTION:
                    unanswerable.add(query_id)
                elif answer is not None:
                    answers.append((query_id, answer))
                summary = question.find("ideal_summary", str)
                if summary is not None:
                    references.append((transcript.conversation_id, query_id, summary))
        markers = sum(m.content != m.envelope["native"]["content"] for t in transcripts for m in t.messages)
        truncated = sum(file.path.name == TRUNCATED for file in found)
        counts = {
            "chats are truncated, as the repository has them beside the full ones": truncated,
            "messages end with a mark of the generation plan, which is cut off": markers,
            "evidence entries name no message and are left out": unknown,
        }
        of_chats = "" if self.chats == "full" else f" chats={self.chats}"
        protocol = f"size={self.size} unit=message{of_chats}{part_words(self.only)}"
        return Dataset(
            name="beam",
            protocol=protocol,
            digest=dataset_digest([file.pin for file in found], protocol),
            transcripts=tuple(transcripts),
            queries=tuple(queries),
            qrels=pl.DataFrame(qrels, schema=QRELS_SCHEMA, orient="row"),
            references=pl.DataFrame(references, schema=REFERENCES_SCHEMA, orient="row"),
            answers=pl.DataFrame(answers, schema=ANSWERS_SCHEMA, orient="row"),
            unanswerable=frozenset(unanswerable),
            groups={"single-shot": SINGLE_SHOT},
            notes=(*notes_of(found), *(f"{count} {what}" for what, count in counts.items() if count)),
        )


def _transcript(conversation: Conversation) -> tuple[Transcript, dict[int, str]]:
    """The transcript, and message number -> message id."""
    name, day = conversation.name, None
    messages, ids = [], {}
    for said in conversation.said:
        anchor = said.record.find("time_anchor", str)
        day = day if anchor is None else _day(anchor, said.record)
        if day is None:
            raise said.record.wrong("time_anchor", "is missing: the first message must name its day")
        ids[said.number] = opaque_id("beam", name, str(said.number))
        messages.append(_message(ids[said.number], said, opaque_id("beam", name, said.session), day))
    return Transcript(opaque_id("beam", name), tuple(messages), workspace_id=name), ids


def _message(message_id: str, said: Said, session_id: str, day: datetime) -> Message:
    role, content = said.record.get("role", str), said.record.get("content", str)
    if role not in _ROLES:
        raise said.record.wrong("role", f"must be user or assistant, got {role!r}")
    if role == "user":
        content = _PLAN_MARKER.sub("", content)
    return Message(
        message_id=message_id,
        role=_ROLES[role],
        content=content,
        session_id=session_id,
        created_at=day,
        parts=(Part("text", text=content),),
        envelope={"native": said.record.fields, "slots": {}},
    )


def _questions(questions: Record) -> Iterator[tuple[str, int, Record]]:
    """Type, index within the type, question."""
    for category in questions.fields:
        for index, question in enumerate(questions.each(category)):
            yield category, index, question


def _flat(evidence: Any) -> Iterator[int]:
    """The message numbers of a list, a list of lists or an object of lists; None holds none."""
    match evidence:
        case None:
            return
        case Mapping():
            yield from _flat(list(evidence.values()))
        case list():
            for entry in evidence:
                yield from _flat(entry)
        case number:
            yield number


def _day(anchor: str, record: Record) -> datetime:
    """`November-05-2023`; BEAM names no hour and no zone, so the day's first instant in UTC."""
    try:
        return datetime.strptime(anchor, "%B-%d-%Y").replace(tzinfo=UTC)
    except ValueError as err:
        raise record.wrong("time_anchor", f"must be a day as November-05-2023, got {anchor!r}") from err
