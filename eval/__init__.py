"""The evaluation of lcm-harness: datasets, measures, runs, and what is made of them.

What stands in `DOOR` can be imported from here, and is loaded when it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eval.dataset.dataset import Dataset as Dataset
    from eval.dataset.sample import Sample as Sample
    from eval.experiment.experiment import evaluate as evaluate
    from eval.measures.retention import Retention as Retention
    from eval.measures.retrieval import Retrieval as Retrieval
    from eval.run import Run as Run

DOOR = {
    "Dataset": "eval.dataset.dataset",
    "Retention": "eval.measures.retention",
    "Retrieval": "eval.measures.retrieval",
    "Run": "eval.run",
    "Sample": "eval.dataset.sample",
    "evaluate": "eval.experiment.experiment",
}
"""Name -> the module that it comes from."""


def __getattr__(name: str) -> object:
    if name not in DOOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(DOOR[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *DOOR])
