"""No dataset tells the answer by an id: units that are ranked by their ids alone are found at chance level.

Units are messages and sessions. At chance the first k of N units hold k / N of a query's evidence; how far a random
order strays from that is known exactly, because all queries of a workspace share the order and its first k are a draw
without replacement.
"""

from collections import Counter, defaultdict
from statistics import mean, variance
from typing import Literal

import pytest

from eval.dataset.dataset import Dataset
from tests.conformance.test_dataset_loader import CASES, UNJUDGED, load

CUTOFFS: dict[Literal["message", "session"], int] = {"message": 10, "session": 3}
"""Few beside the units of most workspaces: where a workspace has no more, every order finds everything."""
STRAY = 4.0
"""Standard deviations that a random order may be away from chance: 1 in 16,000 is farther."""


def strays(dataset: Dataset, level: Literal["message", "session"], *, descending: bool) -> bool:
    """Whether the order of ids finds more or less than a random order may."""
    workspace = {query.query_id: query.workspace_id for query in dataset.queries}
    session = {(t.workspace_id, m.message_id): m.session_id for t in dataset.transcripts for m in t.messages}
    evidence: defaultdict[str, set[str]] = defaultdict(set)
    for query_id, message_id, _ in dataset.qrels.iter_rows():
        evidence[query_id].add(message_id if level == "message" else session[workspace[query_id], message_id])
    if level == "session":
        for query_id, session_id, _ in dataset.session_qrels.iter_rows():
            evidence[query_id].add(session_id)
    worth: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for query_id, ids in evidence.items():
        worth[workspace[query_id]].update(dict.fromkeys(ids, 1 / len(ids)))
    units: defaultdict[str, set[str]] = defaultdict(set)
    for (place, message_id), session_id in session.items():
        units[place].add(message_id if level == "message" else session_id)
    away = spread = 0.0
    for place, of_place in worth.items():
        ranked = [of_place[one] for one in sorted(units[place], reverse=descending)]
        k = min(CUTOFFS[level], len(ranked))
        away += sum(ranked[:k]) - k * mean(ranked)
        spread += k * (1 - k / len(ranked)) * variance(ranked) if len(ranked) > 1 else 0
    return abs(away) > STRAY * spread**0.5 + 1e-9


@pytest.mark.parametrize(
    "case", [case for case in CASES if case[0] not in UNJUDGED and "dataset.size" not in case[-1]], ids=" ".join
)
def test_ranking_on_ids_alone_scores_at_chance(case: tuple[str, ...]) -> None:
    dataset = load(*case)
    told = [(level, down) for level in CUTOFFS for down in (False, True) if strays(dataset, level, descending=down)]
    assert told == []
