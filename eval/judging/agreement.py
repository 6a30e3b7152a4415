"""What judges say together: one relevance for each document, and how far two of them agree."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

import polars as pl

from eval.dataset.collection import JUDGED_SCHEMA
from eval.judging.judgement import Judgement, Kind
from eval.judging.judgement_file import JudgementFile
from eval.kappa import agreement_of

_ORDER: tuple[Kind, ...] = ("human", "file", "model")


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two judges agree over what both judged."""

    judges: tuple[str, str]
    n: int
    equal: float
    """The share to which both gave the same relevance."""
    kappa: float | None
    """Cohen's; None where both gave one and the same to everything, so that chance explains all."""


def qrels_of(judgements: Iterable[Judgement], kinds: Collection[Kind] = _ORDER) -> pl.DataFrame:
    """Rows of `JUDGED_SCHEMA`, by query and document as they were first judged.

    People count before files, and files before models; of several judges of one kind the middle one counts, and of two
    in the middle the stricter.

    Args:
        kinds: of judges that count.
    """
    said: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for one in judgements:
        if one.relevance is not None and one.kind in kinds:
            said[one.pair][one.kind].append(one.relevance)
    rows = []
    for pair, by_kind in said.items():
        first = sorted(next(by_kind[kind] for kind in _ORDER if kind in by_kind))
        rows.append((*pair, first[(len(first) - 1) // 2]))
    return pl.DataFrame(rows, schema=JUDGED_SCHEMA, orient="row")


def agreements(file: JudgementFile) -> list[Agreement]:
    """Of every two judges that have judged something in common."""
    said = {
        judge: {pair: one.relevance for pair, one in file.of(judge).items() if one.relevance is not None}
        for judge in file.judges()
    }
    return [
        found
        for one, other in combinations(said, 2)
        if (found := agreement((one, other), said[one], said[other])) is not None
    ]


def agreement(
    judges: tuple[str, str], one: Mapping[tuple[str, str], int], other: Mapping[tuple[str, str], int]
) -> Agreement | None:
    """Of two judges; None where they judged nothing in common."""
    both = one.keys() & other.keys()
    if not both:
        return None
    equal, kappa = agreement_of([(one[pair], other[pair]) for pair in both])
    return Agreement(judges, len(both), equal, kappa)
