"""The bundled samples: they show the tool and prove nothing."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from eval.dataset.card import Card, dataset_digest, folder, read_card, read_pinned
from eval.dataset.dataset import Dataset, Draft, opaque_id
from eval.questions.question import UNANSWERABLE
from lcm.clock import parse_instant
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from lcm.transcript.chat import ChatReader
from lcm.transcript.openclaw import OpenClawReader
from lcm.transcript.reading import read_transcripts

_QUERIES = "queries.jsonl"
_PROTOCOL = "evidence=original unit=message"
_READERS = OpenClawReader(), ChatReader()


@dataclass(frozen=True, slots=True)
class Sample:
    """Four invented conversations, each its own workspace.

    Times: as recorded; some queries are asked midway, before the fact that they ask for changes. Judged unit: the
    message. Queries of the category `unanswerable` have no judgements.
    """

    directory: str | None = None
    """None: the bundled copy."""

    card: ClassVar[Card] = read_card("sample")

    def load(self) -> Dataset:
        where = folder(self.card, self.directory or str(bundled_directory(self.card.name)))
        contents = read_pinned(where, self.card.files)
        draft, ids = Draft(), dict[str, dict[str, str]]()
        for file in self.card.files:
            if file.path != _QUERIES:
                name = Path(file.path).stem
                (read,) = read_transcripts(where / file.path, workspace_id=name, readers=_READERS)
                transcript, ids[name] = _opaque(read, self.card.name, name)
                draft.transcripts.append(transcript)
        for line in contents[_QUERIES].decode().splitlines():
            entry = json.loads(line)
            query_id, name, category = entry["query_id"], entry["conversation"], entry["category"]
            draft.queries.append(Query(query_id, entry["text"], parse_instant(entry["asked_at"]), name, category))
            if category == UNANSWERABLE:
                draft.unanswerable.add(query_id)
            else:
                draft.answers.append((query_id, entry["answer"]))
            draft.judge(query_id, (ids[name][message] for message in entry["evidence"]))
        notes = ["the sample shows the tool; its numbers prove nothing"]
        return draft.dataset(self.card.name, _PROTOCOL, dataset_digest(self.card.files, _PROTOCOL), notes)


@dataclass(frozen=True, slots=True)
class SampleLong(Sample):
    """One invented session of a coding agent, twelve days long, read and judged as the sample is."""

    card: ClassVar[Card] = read_card("sample_long")


def bundled_directory(name: str = "sample") -> Path:
    """Where a bundled dataset lies: in a checkout `data/NAME`, in an installation inside this package."""
    here = Path(__file__).resolve().parent
    installed = here / "bundled" / name
    return installed if installed.is_dir() else here.parent.parent / "data" / name


def _opaque(transcript: Transcript, *names: str) -> tuple[Transcript, dict[str, str]]:
    """The transcript under opaque ids, and native message id -> opaque message id."""
    messages, ids = list[Message](), dict[str, str]()
    for one in transcript.messages:
        native = one.message_id.removeprefix(f"{transcript.conversation_id}:")
        ids[native], session_id = opaque_id(*names, one.message_id), opaque_id(*names, "session", one.session_id)
        messages.append(replace(one, message_id=ids[native], session_id=session_id))
    return replace(transcript, conversation_id=opaque_id(*names), messages=tuple(messages)), ids
