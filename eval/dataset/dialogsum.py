"""DialogSum: short spoken dialogues, each with a reference summary; nothing is asked of them."""

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from eval.dataset.card import Card, PinnedFile, dataset_digest, folder, read_pinned
from eval.dataset.dataset import QRELS_SCHEMA, REFERENCES_SCHEMA, Dataset, opaque_id
from lcm.records.conversation import Message, Part, Transcript

_PROTOCOL = "references=1"
_SPEAKER = re.compile(r"(?:\A|\n)(#Person\d+#): ")

_DIALOGUES = PinnedFile("dialogsum_dev.jsonl.gz", "40a9f0a3daf8dbd48376254737fd4b8e9b6a125da54642e9afa5882f76bd45a8")


@dataclass(frozen=True, slots=True)
class Dialogsum:
    """The development part: 500 dialogues of two to four people, one summary each.

    Times: none recorded. No queries and no judgements: it measures summaries, not retrieval.
    """

    directory: str | None = None
    """None: the folder `dialogsum` in `LCM_DATASETS_DIR`."""

    card: ClassVar[Card] = Card(
        name="dialogsum",
        title="DialogSum, development part: 500 short dialogues with reference summaries, no questions",
        licence="CC BY-NC-SA 4.0: for measuring only, not shipped",
        origin="cylnlp/dialogsum commit 848cc8c05e0a",
        how_to_get="compress DialogSum_Data/dialogsum.dev.jsonl to dialogsum_dev.jsonl.gz with Python's "
        "gzip.GzipFile('', 'wb', 9, file, mtime=0)",
        files=(_DIALOGUES,),
    )

    def load(self) -> Dataset:
        raw = read_pinned(folder(self.card, self.directory), self.card.files)
        records = [json.loads(line) for line in gzip.decompress(raw[_DIALOGUES.path]).splitlines()]
        transcripts = tuple(_transcript(record["fname"], record["dialogue"]) for record in records)
        references = [
            (transcript.conversation_id, None, record["summary"])
            for transcript, record in zip(transcripts, records, strict=True)
        ]
        return Dataset(
            name="dialogsum",
            protocol=_PROTOCOL,
            digest=dataset_digest(self.card.files, _PROTOCOL),
            transcripts=transcripts,
            queries=(),
            qrels=pl.DataFrame(schema=QRELS_SCHEMA),
            references=pl.DataFrame(references, schema=REFERENCES_SCHEMA, orient="row"),
        )


def _transcript(name: str, dialogue: str) -> Transcript:
    messages = tuple(
        Message(
            message_id=opaque_id("dialogsum", name, str(index)),
            role="user",
            content=words.strip(),
            session_id=opaque_id("dialogsum", name, "session"),
            author=speaker,
            parts=(Part("text", text=words),),
            envelope={"native": {"speaker": speaker, "text": words}, "slots": {}},
        )
        for index, (speaker, words) in enumerate(_turns(dialogue))
    )
    return Transcript(opaque_id("dialogsum", name), messages, workspace_id=name)


def _turns(dialogue: str) -> Iterator[tuple[str | None, str]]:
    """Speaker and words. A turn lasts until a line names the next speaker: other lines, blank ones too, are its own.

    Words before the first speaker are a turn of nobody.
    """
    before, *turns = _SPEAKER.split(dialogue)
    if before:
        yield None, before
    yield from zip(turns[::2], turns[1::2], strict=True)
