"""What the choices of summary expansion add to answers with summaries of turns, of summaries, and vague ones."""

from omegaconf import DictConfig

from lcm.protocols.retrieval import Expansion
from lcm.retrieval.source.indexes import branch, describe, merge
from pipelines.config import building
from tests.lcm.retrieval.summary_expansion.test_opened_summaries import workspace

ANSWERS = ({"low": 0.8, "c": 0.5}, {"high": 0.8}, {"vague": 0.8, "low": 0.4})
"""Documents and their scores."""


def expanded(config: DictConfig) -> object:
    """The documents of each answer afterwards, and their scores."""
    stage, batch = building.build(config, "summary_expansion"), workspace()
    found = []
    for answer in ANSWERS:
        pool = branch([(list(answer), list(answer.values()))], "cosine", "dense_rank")
        rows = merge(pool, branch([], "bm25", "lexical_rank"), batch).with_columns(score="cosine")
        frame = describe(rows, batch)
        after = stage.expand(frame, batch) if isinstance(stage, Expansion) else stage(frame, batch)
        found.append(after.select("document_id", "score").rows())
    return found
