"""Folds: a dataset cut between its workspaces. Nothing passes from one workspace to another."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from eval.dataset.dataset import Dataset
from eval.measures.retrieval import judged_queries, workspace_of_query
from lcm.errors import LcmError


@dataclass(frozen=True, slots=True)
class Fold:
    """Workspaces that are held out together."""

    name: str
    workspaces: tuple[str, ...]


def folds_of(dataset: Dataset, fold_count: int | Literal["workspace"]) -> tuple[Fold, ...]:
    """Cut a dataset into folds with about as many judged queries each; those of a workspace stay together.

    Args:
        fold_count: how many; `workspace` = one for each workspace that has judged queries.
    Returns:
        A single fold where a single workspace is judged.
    Raises:
        LcmError: if there are fewer such workspaces than folds.
    """
    workspaces = dataset.workspaces
    asked = workspace_of_query(dataset).join(judged_queries(dataset), on="query_id", how="semi")
    judged = Counter(asked["workspace_id"].to_list())
    n = len(judged) if fold_count == "workspace" else fold_count
    if n > len(judged):
        raise LcmError(
            f"study.folds={fold_count}: {dataset.name} has {len(judged)} workspaces with judged queries; set "
            f"study.folds to workspace or to at most {max(2, len(judged))}"
        )
    if n <= 1:
        return (Fold("all", tuple(workspaces)),)
    members: list[list[str]] = [[] for _ in range(n)]
    sizes = [0] * n
    for workspace in sorted(workspaces, key=lambda one: -judged[one]):
        smallest = min(range(n), key=lambda i: (sizes[i], len(members[i])))
        members[smallest].append(workspace)
        sizes[smallest] += judged[workspace]
    place = {workspace: i for i, workspace in enumerate(workspaces)}
    parts = sorted((sorted(part, key=place.__getitem__) for part in members), key=lambda part: place[part[0]])
    if fold_count == "workspace":
        return tuple(Fold(next(one for one in part if judged[one]), tuple(part)) for part in parts)
    return tuple(Fold(str(i), tuple(part)) for i, part in enumerate(parts, 1))
