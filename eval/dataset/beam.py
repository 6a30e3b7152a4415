"""BEAM: long conversations of a user with an assistant, with probing questions of ten types."""

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

import polars as pl

from eval.dataset.card import Card, PinnedFile, dataset_digest, folder, read_pinned
from eval.dataset.dataset import QRELS_SCHEMA, REFERENCES_SCHEMA, Dataset, opaque_id
from lcm.checks import check_choice
from lcm.records.conversation import Message, Part, Transcript
from lcm.records.query import Query

Size = Literal["100K", "500K", "1M"]

SINGLE_SHOT = (
    "contradiction_resolution", "information_extraction", "knowledge_update", "multi_session_reasoning",
    "preference_following", "temporal_reasoning",
)  # fmt: skip
"""The types whose evidence one search can find. Without abstention (it has none), and without event_ordering,
instruction_following and summarization: their evidence is spread over the conversation, or shares no subject with the
question."""

_PLAN_MARKER = re.compile(r"\s*->->.*$")

_FILES: Mapping[Size, PinnedFile] = {
    "100K": PinnedFile("beam_100K_dev.jsonl.gz", "d6d17a5a49cb1cd729041aaa83a967bd764c326db1f1d3eb585af421dfd1c38b"),
    "500K": PinnedFile("beam_500K_dev.jsonl.gz", "663d6e538440eaa356d7eb3bb3cf435d2b8a93334bc5224fb19bd1f50b40dd0b"),
    "1M": PinnedFile("beam_1M_dev.jsonl.gz", "a5ff993b13ed68fbb26559db2e646e16dc8b7773918d3f4cf3b3169a286a2234"),
}


@dataclass(frozen=True, slots=True)
class Beam:
    """The development part: 12, 21 or 5 conversations, twenty questions each.

    Times: a message has the day last named, as the first of each batch does; every question is asked at the last
    message. Judged unit: the message.
    """

    directory: str | None = None
    """None: the folder `beam` in `LCM_DATASETS_DIR`."""
    size: Size = "100K"
    """About how many tokens a conversation has; only the file of this size is read."""

    card: ClassVar[Card] = Card(
        name="beam",
        title="BEAM, development part: 38 long conversations of three sizes, 760 probing questions of ten types",
        licence="none in the repository, CC BY-SA 4.0 by sets derived from it: for measuring only, not shipped",
        origin="mohammadtavakoli78/BEAM commit b2a3ee8ba12d",
        how_to_get="write {conversation_id, size, topic, chat, probing_questions} for each chats/<size>/<n> that "
        "docs/datasets/beam.md lists, in that order (Python: json.dumps(record, ensure_ascii=False) plus a newline, "
        "through gzip.GzipFile with an empty filename, compresslevel=9, mtime=0); one size is enough",
        files=tuple(_FILES.values()),
    )

    def __post_init__(self) -> None:
        check_choice(self, size=_FILES)

    def load(self) -> Dataset:
        file = _FILES[self.size]
        raw = read_pinned(folder(self.card, self.directory), (file,))
        transcripts, queries, qrels, references, unknown = [], [], [], [], 0
        for line in gzip.decompress(raw[file.path]).splitlines():
            record = json.loads(line)
            transcript, ids = _transcript(record)
            transcripts.append(transcript)
            asked_at = transcript.messages[-1].created_at
            assert asked_at is not None
            for category, questions in record["probing_questions"].items():
                for index, question in enumerate(questions):
                    query_id = f"{record['conversation_id']}/{category}/{index}"
                    queries.append(Query(query_id, question["question"], asked_at, transcript.workspace_id, category))
                    evidence = list(_flat(question.get("source_chat_ids")))
                    unknown += sum(number not in ids for number in evidence)
                    qrels += [(query_id, ids[number], 1) for number in dict.fromkeys(evidence) if number in ids]
                    if "ideal_summary" in question:
                        references.append((transcript.conversation_id, query_id, question["ideal_summary"]))
        markers = sum(m.content != m.envelope["native"]["content"] for t in transcripts for m in t.messages)
        counts = {
            "messages end with a mark of the generation plan, which is cut off": markers,
            "evidence entries name no message and are left out": unknown,
        }
        protocol = f"size={self.size} unit=message"
        return Dataset(
            name="beam",
            protocol=protocol,
            digest=dataset_digest((file,), protocol),
            transcripts=tuple(transcripts),
            queries=tuple(queries),
            qrels=pl.DataFrame(qrels, schema=QRELS_SCHEMA, orient="row"),
            references=pl.DataFrame(references, schema=REFERENCES_SCHEMA, orient="row"),
            groups={"single-shot": SINGLE_SHOT},
            notes=tuple(f"{count} {what}" for what, count in counts.items() if count),
        )


def _transcript(record: Mapping[str, Any]) -> tuple[Transcript, dict[int, str]]:
    """The transcript, and native message id -> message id."""
    conversation = record["conversation_id"]
    messages, ids, day = [], {}, None
    for batch, native in _batched(record["chat"]):
        if "time_anchor" in native:
            day = _day(native["time_anchor"])
        ids[native["id"]] = opaque_id("beam", conversation, str(native["id"]))
        content = _PLAN_MARKER.sub("", native["content"]) if native["role"] == "user" else native["content"]
        messages.append(
            Message(
                message_id=ids[native["id"]],
                role=native["role"],
                content=content,
                session_id=opaque_id("beam", conversation, f"batch {batch}"),
                created_at=day,
                parts=(Part("text", text=content),),
                envelope={"native": native, "slots": {}},
            )
        )
    return Transcript(opaque_id("beam", conversation), tuple(messages), workspace_id=conversation), ids


def _batched(chat: list[Mapping[str, Any]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Batch number and message, in order."""
    for batch in chat:
        for group in batch["turns"]:
            for native in group:
                yield batch["batch_number"], native


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


def _day(anchor: str) -> datetime:
    """`November-05-2023`; BEAM names no hour and no zone, so the day's first instant in UTC."""
    return datetime.strptime(anchor, "%B-%d-%Y").replace(tzinfo=UTC)
