"""From Python: a memory system over a dataset, in one call."""

from collections.abc import Mapping

import polars as pl

from eval.arms.arm import KnowsDataset
from eval.dataset.dataset import Dataset
from eval.experiment.experiment import Experiment
from eval.experiment.workspace import WorkspaceEvaluator
from eval.measures.means import Means
from eval.measures.measure import Measure
from eval.measures.retrieval import Retrieval
from eval.replay.bulk import Bulk
from eval.replay.workspace_replay import Replay
from lcm.memory.system import System
from lcm.protocols.retrieval import Ranker

_BULK, _MEANS = Bulk(), Means()


def evaluate(
    system: System,
    dataset: Dataset,
    measures: Mapping[str, Measure] | None = None,
    arms: Mapping[str, Ranker | KnowsDataset] | None = None,
    replay: Replay = _BULK,
    means: Means = _MEANS,
) -> pl.DataFrame:
    """Replay a dataset through a memory system, and measure what came back.

    Args:
        measures: by name; None = those of retrieval.
        arms: other rankings over the very same memory.
        replay: how transcripts reach the memory.
        means: how intervals are made.
    Returns:
        Rows arm (`system` and those of `arms`), group (`all`, or a category), measure, value, n, low, high.
    Raises:
        DatasetError: if nothing in the dataset is judged.
    """
    wanted = {"retrieval": Retrieval()} if measures is None else measures
    evaluator = WorkspaceEvaluator(dataset, system, replay, wanted, arms or {})
    return Experiment(evaluator, means).run(lambda what, done, total: None).means
