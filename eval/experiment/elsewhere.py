"""Workspaces that are asked apart from this process, several at once."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

from eval.dataset.dataset import Dataset
from eval.executor.executor import Executor, Failed
from eval.experiment.workspace import WorkspaceEvaluator, WorkspaceResult
from lcm.errors import LcmError

_TURNS = 2
"""So often a worker takes a part: each time it builds its own, but one that is done early takes from what is left."""


@dataclass(frozen=True, slots=True)
class WorkspaceWork:
    """What an executor runs for some workspaces."""

    evaluator: Callable[[Dataset], WorkspaceEvaluator]
    """Builds the parts, in the worker's own process."""

    def __call__(self, part: Dataset) -> Iterator[WorkspaceResult]:
        evaluator = self.evaluator(part)
        for workspace in part.workspaces:
            yield evaluator.answers(workspace, lambda queries: None)


@dataclass(frozen=True, slots=True)
class Apart:
    """Has workers ask the workspaces: each gets what was said and asked there, and sends what was answered."""

    executor: Executor
    evaluator: Callable[[Dataset], WorkspaceEvaluator]
    """Builds what asks the workspaces of a dataset; can be pickled."""

    def answers(self, dataset: Dataset, asked: Callable[[int], None]) -> list[WorkspaceResult]:
        """Of every workspace, in the order of the dataset.

        Args:
            asked: told how many queries were answered, workspace by workspace.
        Raises:
            LcmError: naming the workspace that came to no end; the others are given up.
        """
        queries = Counter(query.workspace_id for query in dataset.queries)
        parts = _dealt(dataset, _TURNS * getattr(self.executor, "workers", 1))
        found: dict[str, WorkspaceResult] = {}
        with closing(self.executor.map(WorkspaceWork(self.evaluator), parts)) as told:
            for said in told:
                if isinstance(said, Failed):
                    at_work = next(one for one in parts[said.item].workspaces if one not in found)
                    raise LcmError(f"workspace {at_work!r} came to no end: {said.reason}")
                found[said.workspace_id] = said
                asked(queries[said.workspace_id])
        return [found[workspace] for workspace in dataset.workspaces]


def _dealt(dataset: Dataset, most: int) -> list[Dataset]:
    """Cut a dataset into at most so many parts, whole workspaces, those with most messages first and apart."""
    messages = Counter[str]()
    for transcript in dataset.transcripts:
        messages[transcript.workspace_id] += len(transcript.messages)
    largest_first = sorted(messages, key=lambda workspace: -messages[workspace])
    return [dataset.part(largest_first[i::most]) for i in range(min(most, len(largest_first)))]
