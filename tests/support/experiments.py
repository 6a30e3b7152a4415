"""Small experiments over a dataset of a test's own."""

from collections.abc import Mapping

from eval.arms import KnowsDataset
from eval.dataset.dataset import Dataset
from eval.experiment.experiment import Experiment
from eval.experiment.outcome import Outcome
from eval.experiment.workspace import WorkspaceEvaluator
from eval.measures.means import Means
from eval.measures.measure import Measure
from eval.measures.retrieval import Retrieval
from eval.replay.workspace_replay import Bulk, Replay
from lcm.memory.system import System
from lcm.protocols.retrieval import Ranker


def outcome(
    dataset: Dataset,
    system: System,
    measures: Mapping[str, Measure] | None = None,
    arms: Mapping[str, Ranker | KnowsDataset] | None = None,
    replay: Replay | None = None,
) -> Outcome:
    """What an experiment finds; recall@1 where no measures are named, intervals of 20 draws."""
    measures = {"retrieval": Retrieval(names=["recall@1"])} if measures is None else measures
    evaluator = WorkspaceEvaluator(dataset, system, replay or Bulk(), measures, arms or {})
    return Experiment(evaluator, Means(resamples=20)).run(lambda *_: None)
