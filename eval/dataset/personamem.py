"""PersonaMem: sessions of a persona with an assistant, and multiple-choice questions about what the persona is like."""

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

import polars as pl

from eval.dataset.card import Card, PinnedFile, dataset_digest, folder, read_pinned
from eval.dataset.dataset import OPTIONS_SCHEMA, QRELS_SCHEMA, Dataset, opaque_id
from lcm.clock import EPOCH
from lcm.records.conversation import Message, Part, Role, Transcript
from lcm.records.query import Query

ASKED_AT = EPOCH + timedelta(days=1)
"""No session has a time, so its messages date from the epoch; every question is asked the day after."""
ROLES: Mapping[str, Role] = {"SYSTEM": "system", "USER": "user", "ASSISTANT": "assistant"}
_MARKER = re.compile(r"(?:\A|\n\n)\[(SYSTEM|USER|ASSISTANT)\] ")
_PROTOCOL = "options=4 context=whole"

_DOCUMENTS = PinnedFile(
    "personamem_32k_documents_dev.jsonl.gz", "aaaf2d4968e7da569e5bd1f827e0708b3a611ff8a4778eacfc8a5c5fdc1c92e9"
)
_QUERIES = PinnedFile(
    "personamem_32k_queries_dev.jsonl.gz", "16501596fdc0ef6958d027cc6b41148670e63d9fe404b26d88ef9cea20eb8f4c"
)


@dataclass(frozen=True, slots=True)
class Personamem:
    """The development part, 32k: 22 contexts of 12 personas, 365 questions with four options each.

    Times: none recorded; every question is asked after its whole context. No judgements: the file lists every session
    of the context as gold, which is no evidence.
    """

    directory: str | None = None
    """None: the folder `personamem` in `LCM_DATASETS_DIR`."""

    card: ClassVar[Card] = Card(
        name="personamem",
        title="PersonaMem v1 32k, development part: 22 contexts of 12 personas, 365 multiple-choice questions",
        licence="MIT on the data card of bowen-upenn/PersonaMem-v1; the repackaging names none: not shipped",
        origin="vectorize-io/agent-memory-benchmark commit de83fa7816ab",
        how_to_get="from data/personamem/32k/{documents,queries}.json.gz keep the personas and write the files that "
        "docs/datasets/personamem.md tells of",
        files=(_DOCUMENTS, _QUERIES),
    )

    def load(self) -> Dataset:
        raw = read_pinned(folder(self.card, self.directory), self.card.files)
        contents = {path: [json.loads(line) for line in gzip.decompress(raw[path]).splitlines()] for path in raw}
        contexts: dict[str, list[Mapping[str, Any]]] = {}
        for document in contents[_DOCUMENTS.path]:
            contexts.setdefault(document["user_id"], []).append(document)
        queries, options = [], []
        for entry in contents[_QUERIES.path]:
            text, category = entry["meta"]["retrieval_query"], entry["meta"]["question_type"]
            queries.append(Query(entry["id"], text, ASKED_AT, entry["user_id"], category))
            options += list(_options(entry))
        frame = pl.DataFrame(options, schema=OPTIONS_SCHEMA, orient="row")
        correct = frame.filter("is_correct").select("query_id", "text")
        doubled = len(frame.filter(~pl.col("is_correct")).join(correct, on=["query_id", "text"], how="semi"))
        return Dataset(
            name="personamem",
            protocol=_PROTOCOL,
            digest=dataset_digest(self.card.files, _PROTOCOL),
            transcripts=tuple(_transcript(context, documents) for context, documents in contexts.items()),
            queries=tuple(queries),
            qrels=pl.DataFrame(schema=QRELS_SCHEMA),
            options=frame,
            notes=(f"{doubled} wrong options say word for word what the correct one says",) if doubled else (),
        )


def _transcript(context: str, documents: Sequence[Mapping[str, Any]]) -> Transcript:
    """One conversation a context, one session a document, in the order of the file."""
    messages = tuple(
        Message(
            message_id=opaque_id("personamem", document["id"], str(index)),
            role=ROLES[marker],
            content=text.removeprefix(f"{marker.capitalize()}: "),
            session_id=opaque_id("personamem", document["id"]),
            parts=(Part("text", text=text),),
            envelope={"native": {"role": marker, "text": text}, "slots": {}},
        )
        for document in documents
        for index, (marker, text) in enumerate(_marked(document["content"]))
    )
    return Transcript(opaque_id("personamem", context), messages, workspace_id=context)


def _marked(content: str) -> Iterator[tuple[str, str]]:
    """Marker and words; a marker stands at the beginning or after a blank line, and what it holds may have some."""
    _, *pieces = _MARKER.split(content)
    return zip(pieces[::2], pieces[1::2], strict=True)


def _options(entry: Mapping[str, Any]) -> Iterator[tuple[str, str, str, bool]]:
    """Rows of `options`: after the question stand four lines `(a) words`; the gold answer ends with its letter."""
    offered = entry["query"].removeprefix(entry["meta"]["retrieval_query"]).strip("\n")
    _, gold = entry["gold_answers"]
    for line in offered.split("\n"):
        letter, _, text = line.removeprefix("(").partition(") ")
        yield entry["id"], letter, text, letter == gold
