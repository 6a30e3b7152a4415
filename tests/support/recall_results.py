"""What recall and its answerers give over a store made so that every setting can matter."""

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from itertools import count
from typing import Any

from omegaconf import DictConfig

from lcm.context.recall.recall import Recall
from lcm.context.recall.tools import Tools
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
        tools = Tools(recall, reader, lambda: START, "talk")
        seconds = count(0, 5)
        slow = Tools(recall, reader, lambda: START + timedelta(seconds=next(seconds)), "talk")
        grant, lent = recall.grant_access(reader, [1], lambda: START)
        borrowed = Tools(recall, lent, lambda: START, "talk")
        calls: tuple[tuple[Tools, str, Mapping[str, Any]], ...] = (
            (tools, "lcm_grep", {"pattern": '"blue kettle" garden', "mode": "full_text"}),
            (tools, "lcm_grep", {"pattern": "kettle blue", "mode": "full_text", "scope": "messages", "limit": 5}),
            (tools, "lcm_grep", {"pattern": "kettle.*"}),
            (tools, "lcm_grep", {"pattern": "quokka|" + "x" * 300}),
            (tools, "lcm_grep", {"pattern": "(k+)+"}),
            (tools, "lcm_describe", {"id": leaves[0]}),
            (borrowed, "lcm_expand", {"summaryIds": [top]}),
            (tools, "lcm_expand_query", {"prompt": QUESTION, "query": "crew"}),
            (tools, "lcm_expand_query", {"prompt": "Where is a quokka?", "query": "quokka"}),
            (slow, "lcm_expand_query", {"prompt": QUESTION, "summaryIds": leaves[:1]}),
        )
        replies = [tool.call(name, parameters) for tool, name, parameters in calls]
        told = [(reply.text, reply.details) for reply in replies]
        return told, grant.expires_at, grant.token_cap, grant.max_depth


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
