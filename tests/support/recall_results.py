"""What recall and its answerers give over a store made so that every setting can matter."""

import json
import re
from datetime import timedelta
from itertools import count

from omegaconf import DictConfig

from lcm.context.recall.expansion import distilled_text
from lcm.context.recall.grep import grep_text
from lcm.context.recall.reader import described_text
from lcm.context.recall.recall import Recall
from lcm.errors import LcmError
from lcm.store.store import Store
from pipelines.config import building
from tests.lcm.context.recall.dags import START, fold, talk
from tests.lcm.retrieval.reranker.loopback import Answer, Asked
from tests.support.local_server import said, served

LINES = [
    *(
        f"{i}: the blue kettle of the {i % 7}. harbour broke near the garden, and the whole crew repaired it before "
        f"noon, while the {'goats ' * (25 + 13 * i % 60)}{'kettle ' * (i % 9)}watched from the {i % 3}. house."
        for i in range(130)
    ),
    "The kettle was blue once.",
    "Zanzibar has no goats.",
    "A quokka is no goat.",
]
QUESTION = "Which blue kettle broke near the garden of the harbour, and who repaired it?"


def recalled(config: DictConfig) -> object:
    """What each tool tells, of the owner and of a borrower."""
    recall: Recall = building.build(config, "recall")
    with Store() as store:
        leaves, top = _folded(store)
        reader = recall.on(store)
        seconds = count(0, 5)
        lent = recall.grant_access(reader, [1], lambda: START)
        found = (
            reader.grep('"blue kettle" garden', mode="full_text"),
            reader.grep("kettle blue", mode="full_text", scope="messages", limit=5),
            *(reader.grep(pattern) for pattern in ("kettle.*", "quokka|" + "x" * 300, "(k+)+")),
        )
        told = [
            *(grep_text(one, recall.max_result_chars) for one in found),
            described_text(reader.describe(leaves[0])),
            distilled_text(lent.expand([top]), recall.rules),
            recall.expand_query(reader, QUESTION, lambda: START, query="crew"),
            recall.expand_query(reader, "Where is a quokka?", lambda: START, query="quokka"),
        ]
        try:
            slow = lambda: START + timedelta(seconds=next(seconds))  # noqa: E731
            told.append(recall.expand_query(reader, QUESTION, slow, summary_ids=leaves[:1]))
        except LcmError as error:
            told.append(str(error))
        return told, lent.grant


def answered(config: DictConfig) -> object:
    """An answer, and what a language model was asked for it; it always wants to see one summary more."""
    with served(_wanting_more) as asked, Store() as store:
        recall: Recall = building.build(config, "recall")
        _folded(store)
        found = recall.expand_query(recall.on(store), QUESTION, lambda: START, query="crew")
        return found, asked


def _wanting_more(request: Asked) -> Answer:
    shown = re.findall(r"sum_[0-9a-f]+", request.body["messages"][-1]["content"])
    return said(json.dumps({"answer": f"after {len(shown)}", "expand": shown[-1:], "citedIds": shown[:1]}))


def _folded(store: Store) -> tuple[list[str], str]:
    """Leaves of two messages each, eight of them below depth 3; the last messages stand alone."""
    talk(store, "talk", LINES)
    leaves = [fold(store, "talk", at, 2, f"The crew and kettle {at}: {LINES[2 * at]} " * 2) for at in range(60)]
    for _ in range(4):
        fold(store, "talk", 0, 2, "The crew repaired a kettle.")
        fold(store, "talk", 1, 2, "The crew repaired another.")
        top = fold(store, "talk", 0, 2, "The crew repaired both, all of it. " * 3)
    return leaves, top
