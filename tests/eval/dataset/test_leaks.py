"""No dataset tells the answer by an id; what length and order tell is measured, and no more than that.

Units (messages where they are judged, sessions always) are ranked on one property alone. At chance level the first k
of N units hold k / N of a query's evidence; how far a random order strays from that is known exactly, because all
queries of a workspace share the order and its first k are a draw without replacement.
"""

from collections.abc import Sequence
from itertools import accumulate, permutations
from statistics import mean, pstdev
from typing import Literal, NamedTuple, get_args

import polars as pl
import pytest

from eval.dataset.dataset import QRELS_SCHEMA, Dataset, opaque_id
from eval.measures.retrieval import session_of_message, workspace_of_query
from lcm.clock import EPOCH
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from tests.conformance.test_dataset_loader import CASES, UNJUDGED, load
from tests.support.workspaces import minute

Level = Literal["message", "session"]
Property = Literal["id", "length", "order"]
Direction = Literal["ascending", "descending"]

CUTOFFS: dict[Level, int] = {"message": 10, "session": 3}
"""Few beside the units of most workspaces: where a workspace has no more, every order finds everything."""
STRAY = 4.0
"""Standard deviations that a random order may be away from chance: 1 in 16,000 is farther."""

MEASURED: dict[tuple[str, Level, Property, Direction], float] = {
    # Three of four judgements name a message of the user, and those are short (300 characters, the assistant's 4,000).
    ("beam", "message", "length", "ascending"): +0.0562,
    ("beam dataset.size=500K", "message", "length", "ascending"): +0.0445,
    # Questions are about what a conversation begins with: evidence lies on average after a third of it.
    ("beam", "session", "order", "ascending"): +0.2067,
    ("beam", "session", "order", "descending"): -0.2308,
    ("beam dataset.size=500K", "message", "order", "ascending"): +0.0237,
    ("beam dataset.size=500K", "session", "order", "ascending"): +0.3195,
    ("beam dataset.size=500K", "session", "order", "descending"): -0.2093,
    ("beam dataset.size=1M", "session", "order", "ascending"): +0.3074,
    # A turn that says something to ask about is longer than "Thanks!": 190 characters on average, all turns 140.
    ("locomo", "message", "length", "descending"): +0.0403,
    ("locomo dataset.evidence=both", "message", "length", "descending"): +0.0403,
    ("locomo dataset.evidence=repaired", "message", "length", "descending"): +0.0431,
    # Long turns present something, and are asked about more often: of the ten longest 57 % are in a span, of all 52 %.
    ("qmsum", "message", "length", "descending"): +0.0182,
    # A meeting ends with goodbyes: of the last ten turns 20 % are in a span.
    ("qmsum", "message", "order", "descending"): -0.0253,
}
"""Dataset, level, property, direction -> recall minus chance, where that is farther from 0 than a random order strays:
properties of the recorded data, with their reasons. None is an id's."""


class Recall(NamedTuple):
    """Recall of one order, averaged over the judged queries."""

    value: float
    chance: float
    deviation: float
    """Standard deviation of a random order's value."""

    @property
    def strays(self) -> bool:
        return abs(self.value - self.chance) > STRAY * self.deviation + 1e-9


def recalls(dataset: Dataset, level: Level, cutoff: int) -> dict[tuple[Property, Direction], Recall]:
    """Rank the units of every workspace on each property, ties on the id, and compare with a random order."""
    workspace = workspace_of_query(dataset)
    session = session_of_message(dataset)
    evidence = dataset.qrels.join(workspace, on="query_id")
    if level == "session":
        through = evidence.join(session, on=["workspace_id", "message_id"]).select(*workspace.columns, "session_id")
        judged = dataset.session_qrels.join(workspace, on="query_id").select(*workspace.columns, "session_id")
        evidence = pl.concat([through, judged]).unique(maintain_order=True)
    evidence = evidence.select("query_id", "workspace_id", id=f"{level}_id")
    worth = (
        evidence.with_columns(worth=1 / pl.len().over("query_id"))
        .group_by("workspace_id", "id")
        .agg(pl.col("worth").sum())
    )
    asked = workspace.join(evidence, on="query_id", how="semi")
    units = (
        units_of(dataset, level)
        .join(asked, on="workspace_id", how="semi")
        .join(worth, on=["workspace_id", "id"], how="left")
        .with_columns(pl.col("worth").fill_null(0.0))
    )
    k = pl.min_horizontal(pl.lit(cutoff), pl.len())
    found = {}
    for ranked_on in get_args(Property):
        for direction in get_args(Direction):
            ranked = units.sort(ranked_on, "id", descending=[direction == "descending", False])
            by_workspace = ranked.group_by("workspace_id").agg(
                value=pl.col("worth").head(cutoff).sum(),
                chance=k * pl.col("worth").mean(),
                variance=k * (1 - k / pl.len()) * pl.col("worth").var().fill_null(0.0),
            )
            value, chance, variance = by_workspace.select(pl.col("value", "chance", "variance").sum()).row(0)
            n = len(asked)
            found[ranked_on, direction] = Recall(value / n, chance / n, variance**0.5 / n)
    return found


def units_of(dataset: Dataset, level: Level) -> pl.DataFrame:
    """Rows workspace_id, id, length (characters), order (0 is the oldest)."""
    rows = []
    for t in dataset.transcripts:
        said_at = accumulate((message.created_at or EPOCH for message in t.messages), max)
        for message, at in zip(t.messages, said_at, strict=True):
            rows.append((t.workspace_id, getattr(message, f"{level}_id"), len(message.content), at))
    schema = {"workspace_id": pl.String, "id": pl.String, "length": pl.Int64, "at": pl.Datetime("ms", "UTC")}
    return (
        pl.DataFrame(rows, schema=schema, orient="row")
        .sort("at", maintain_order=True)
        .with_row_index("order")
        .group_by("workspace_id", "id", maintain_order=True)
        .agg(pl.col("length").sum(), pl.col("order").min())
    )


JUDGED = [
    pytest.param(case, id=" ".join(case), marks=[pytest.mark.full] if "dataset.size" in case[-1] else [])
    for case in CASES
    if case[0] not in UNJUDGED
]
"""Every case with judgements; further sizes of BEAM, which one loader reads, are left to `make test-all`."""


@pytest.mark.parametrize("case", JUDGED)
def test_ranking_on_one_property_alone_scores_at_chance(case: tuple[str, ...]) -> None:
    dataset = load(*case)
    wrong = []
    for level in get_args(Level):
        if level == "message" and dataset.qrels.is_empty():
            continue
        for (ranked_on, direction), found in recalls(dataset, level, CUTOFFS[level]).items():
            away = found.value - found.chance
            measured = MEASURED.get((" ".join(case), level, ranked_on, direction))
            is_known = measured is not None and away / measured > 0 and abs(away) <= abs(measured) + 5e-5
            if found.strays != (measured is not None) or (found.strays and not is_known):
                wrong.append(f"{level} by {ranked_on}, {direction}: {away:+.4f} from chance, known is {measured}")
    assert wrong == []
    assert not [key for key in MEASURED if key[2] == "id"], "an id that tells is a defect of the loader"


def made(lengths: Sequence[int], evidence: Sequence[Sequence[int]], ids: Sequence[str] = "abcdefgh") -> Dataset:
    """One conversation, a session a message, of words so long; queries with evidence at these positions."""
    messages = tuple(
        Message(one, "user", "x" * length, f"session {one}", minute(i))
        for i, (one, length) in enumerate(zip(ids, lengths, strict=False))
    )
    judged = [(f"q{n}", ids[i], 1) for n, positions in enumerate(evidence) for i in positions]
    return Dataset(
        name="made",
        protocol="",
        digest="",
        transcripts=(Transcript("talk", messages),),
        queries=tuple(Query(f"q{n}", "?", minute(99)) for n in range(len(evidence) + 1)),
        qrels=pl.DataFrame(judged, schema=QRELS_SCHEMA, orient="row"),
    )


@pytest.mark.parametrize("level", ["message", "session"])
def test_chance_and_stray_are_those_of_all_orders(level: Level) -> None:
    orders = permutations((10, 20, 30, 40))
    found = [recalls(made(lengths, [[0], [0, 3]]), level, 2)["length", "ascending"] for lengths in orders]
    values = [one.value for one in found]
    assert [one.chance for one in found] == pytest.approx([2 / 4] * 24)
    assert mean(values) == pytest.approx(2 / 4)
    assert [one.deviation for one in found] == pytest.approx([pstdev(values)] * 24)


@pytest.mark.parametrize("level", ["message", "session"])
def test_an_id_that_tells_is_noticed(level: Level) -> None:
    ids = [f"{'answer' if i % 40 == 0 else 'filler'} {i:03}" for i in range(200)]
    for names, is_told in ((ids, True), ([opaque_id(one) for one in ids], False)):
        dataset = made([1] * 200, [[i] for i in range(0, 200, 40)], names)
        assert recalls(dataset, level, 10)["id", "ascending"].strays == is_told
