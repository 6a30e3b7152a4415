"""Evaluates workspaces in other processes, on this machine or others, several at once."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace

from eval.dataset.dataset import Dataset
from eval.executor import Executor, FailedItem, NoExecutor
from eval.experiment.workspace import WorkspaceEvaluator, WorkspaceResult
from eval.measures.measure import Measure, timed
from lcm.errors import LcmError

_TURNS = 2
"""So often a worker takes a part: each time it opens its own models, but one done early takes from what is left."""


def evaluate_distributed(
    evaluator: WorkspaceEvaluator, executor: Executor, progress: Callable[[int], None]
) -> list[WorkspaceResult]:
    """Have workers evaluate every workspace of a dataset; each gets its part of the dataset alone.

    Args:
        progress: told how many queries were answered, workspace by workspace.
    Returns:
        In the order of the dataset.
    Raises:
        LcmError: naming the workspace that came to no end; the others are given up.
    """
    dataset = evaluator.dataset
    queries = Counter(query.workspace_id for query in dataset.queries)
    parts = _dealt(dataset, _TURNS * executor.workers)
    results: dict[str, WorkspaceResult] = {}
    evaluators = [replace(evaluator, dataset=part) for part in parts]
    with closing(executor.map(evaluate_all, evaluators)) as messages:
        for message in messages:
            if isinstance(message, FailedItem):
                at_work = next(one for one in parts[message.item].workspaces if one not in results)
                raise LcmError(f"workspace {at_work!r} came to no end: {message.reason}")
            results[message.workspace_id] = message
            progress(queries[message.workspace_id])
    return [results[workspace] for workspace in dataset.workspaces]


def evaluate_all(evaluator: WorkspaceEvaluator) -> Iterator[WorkspaceResult]:
    """Evaluate every workspace of an evaluator's dataset, in the worker's own process."""
    for workspace in evaluator.dataset.workspaces:
        yield evaluator.evaluate(workspace, lambda queries: None)


def refuse_timing(executor: Executor, measures: Mapping[str, Measure]) -> None:
    """Refuse to time live queries beside workers.

    Raises:
        LcmError: saying what to set.
    """
    for name, queries in timed(measures).items():
        if not isinstance(executor, NoExecutor):
            raise LcmError(
                f"measures.{name}.queries={queries}: queries cannot be timed while workers share the machine; set "
                f"measures.{name}.queries=0, or time them with executor=none"
            )


def _dealt(dataset: Dataset, most: int) -> list[Dataset]:
    """Cut a dataset into at most so many parts, whole workspaces, those with most messages first and apart."""
    messages = Counter[str]()
    for transcript in dataset.transcripts:
        messages[transcript.workspace_id] += len(transcript.messages)
    largest_first = sorted(messages, key=lambda workspace: -messages[workspace])
    return [dataset.part(largest_first[i::most]) for i in range(min(most, len(largest_first)))]
