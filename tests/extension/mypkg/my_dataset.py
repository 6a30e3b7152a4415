"""A dataset of one's own: one JSON file with messages, and questions about them."""

import json
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from eval.dataset.card import Card, PinnedFile, dataset_digest, folder, read_pinned
from eval.dataset.dataset import QRELS_SCHEMA, Dataset, opaque_id
from lcm.clock import parse_instant
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query

_FACTS = PinnedFile("facts.json", "23efaeca0f07c8744e4603e566eb65e2252057d74d0815aae28d9bca22172200")
_PROTOCOL = "evidence=original unit=message"


@dataclass(frozen=True, slots=True)
class MyDataset:
    """Four messages and three questions, all asked at the end. Judged unit: the message."""

    directory: str | None = None
    """None: the folder `my_dataset` in `LCM_DATASETS_DIR`."""

    card: ClassVar[Card] = Card(
        name="my_dataset",
        title="facts about a household",
        licence="CC0 1.0",
        origin="written for this example",
        how_to_get="write it yourself",
        files=(_FACTS,),
    )

    def load(self) -> Dataset:
        files = read_pinned(folder(self.card, self.directory), self.card.files)
        facts = json.loads(files[_FACTS.path])
        ids = {entry["id"]: opaque_id("my_dataset", entry["id"]) for entry in facts["messages"]}
        messages = tuple(
            Message(
                message_id=ids[entry["id"]],
                role="user",
                content=entry["text"],
                session_id=entry["at"][:10],
                created_at=parse_instant(entry["at"]),
                author=entry["author"],
            )
            for entry in facts["messages"]
        )
        end = parse_instant(facts["messages"][-1]["at"])
        questions = facts["questions"]
        qrels = [(question["id"], ids[evidence], 1) for question in questions for evidence in question["evidence"]]
        return Dataset(
            name="my_dataset",
            protocol=_PROTOCOL,
            digest=dataset_digest(self.card.files, _PROTOCOL),
            transcripts=(Transcript("household", messages),),
            queries=tuple(Query(question["id"], question["text"], end) for question in questions),
            qrels=pl.DataFrame(qrels, schema=QRELS_SCHEMA, orient="row"),
        )
