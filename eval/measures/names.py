"""The words that names of measures and arms are made of, and which way a measure is better."""

from collections.abc import Collection, Iterable
from typing import Literal

Direction = Literal["higher", "lower"]
"""Which values of a measure are better."""

SYSTEM_ARM = "system"
"""The system under test, among the arms."""

EXTERNAL_MEMORY = "external memory"
"""Begins what a run tells of a memory of others, line by line."""

HAS_NO_NUMBER = "has no number"
"""Stands in what is told of a memory of others that answered nothing."""

RANKING_MEASURES = (
    *("recall", "recall_any", "recall_all", "recall_capped", "nDCG", "nDCG_longmemeval", "MRR", "MAP"),
    *("judged", "tokens"),
)
"""Of `measures.retrieval`: each by itself or before `@` and a cutoff; `session.` stands before those of sessions."""

HEADLINE = (
    *("recall@10", "nDCG@10", "recall@2000t", "tokens@10", "MRR", "recall@5", "recall_all@10", "judged@10"),
    "session.recall@5",
)
"""Those that a run is told by, most telling first, as far as they were measured. A session measure stands in for one of
messages where no message is judged."""
WHOLE = ("recall", "tokens")
"""What all that was returned holds and costs: told behind them."""

BY_REQUEST = ("recall_capped",)
"""Those of them that are measured only where they are asked for, and then shown."""

CONTEXT_COSTS = ("expansions", "expansion_tokens", "context_tokens")
CONTEXT_MEASURES = ("verbatim", "summarised", "reachable", "retained", *CONTEXT_COSTS)
"""Of `measures.retention`: each before `@` and a budget."""


ANSWER_MEASURES = (
    *("judged_correct", "squad_F1", "squad_EM", "contained", "choice_accuracy", "abstention_recall"),
    *("answered", "answer_tokens"),
)
"""Of `measures.answers`."""
ANSWER_HEADLINE = ("squad_F1", "choice_accuracy", "judged_correct")
"""Those that stand beside rankings."""

REPAIRED = "repaired."
"""Before a measure of rankings by corrected evidence, where the dataset has both."""


def kind_of(measure: str) -> str:
    """`recall` of `session.recall@5` and `repaired.session.recall@5`."""
    return measure.removeprefix(REPAIRED).removeprefix("session.").partition("@")[0]


def is_share(measure: str) -> bool:
    """Whether a measure of rankings lies in [0, 1]: all do but the tokens that a reader pays."""
    return kind_of(measure) != "tokens"


def among(usual: Iterable[str], measures: Collection[str]) -> list[str]:
    """The usual measures that there are; a session measure stands in for one of messages that there is not."""
    named = (next((name for name in (one, f"session.{one}") if name in measures), None) for one in usual)
    return [name for name in named if name is not None]


def telling(measures: Collection[str]) -> list[str]:
    """Of a run's measures the most telling ones, which every table of runs has: the usual, then what was added."""
    known = {name: name for name in measures} | {
        name.removeprefix("session."): name for name in measures if name.removeprefix("session.") not in measures
    }
    usual = {*RANKING_MEASURES, *CONTEXT_MEASURES, *ANSWER_MEASURES}.difference(BY_REQUEST)
    repaired = (f"{REPAIRED}{name}" for name in ("recall@10", "nDCG@10"))
    added = [*repaired, *(name for name in measures if kind_of(name) not in usual)]
    names = dict.fromkeys(known[name] for name in (*HEADLINE, *added, *WHOLE) if name in known)
    return list(names) or [name for name in measures if name not in ANSWER_MEASURES][:6]
