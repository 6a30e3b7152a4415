"""No dataset tells the answer by an id; what length and order tell is measured, and no more than that.

Units (messages where they are judged, sessions always) are ranked on one property alone. At chance level the first k
of N units hold k / N of a query's evidence; how far a random order strays from that is known exactly, because all
queries of a workspace share the order and its first k are a draw without replacement.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, permutations
from statistics import mean, pstdev
from typing import Literal, NamedTuple

import polars as pl
import pytest

from eval.dataset.dataset import QRELS_SCHEMA, Dataset, opaque_id
from lcm.clock import EPOCH
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from tests.conformance.test_dataset_loader import ALL_CASES, CASES, UNJUDGED, load
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


def recall(dataset: Dataset, level: Level, ranked_on: Property, direction: Direction, cutoff: int) -> Recall:
    """Rank the units of every workspace on one property, ties on the id, and compare with a random order."""
    workspace = pl.DataFrame(
        [(query.query_id, query.workspace_id) for query in dataset.queries],
        schema={"query_id": pl.String, "workspace_id": pl.String},
        orient="row",
    )
    evidence = judgements(dataset, level, workspace)
    worth = (
        evidence.with_columns(worth=1 / pl.len().over("query_id"))
        .group_by("workspace_id", "id")
        .agg(pl.col("worth").sum())
    )
    asked = workspace.join(evidence, on="query_id", how="semi")
    k = pl.min_horizontal(pl.lit(cutoff), pl.len())
    by_workspace = (
        units(dataset, level)
        .join(asked, on="workspace_id", how="semi")
        .join(worth, on=["workspace_id", "id"], how="left")
        .with_columns(pl.col("worth").fill_null(0.0))
        .sort(ranked_on, "id", descending=[direction == "descending", False])
        .group_by("workspace_id")
        .agg(
            value=pl.col("worth").head(cutoff).sum(),
            chance=k * pl.col("worth").mean(),
            variance=k * (1 - k / pl.len()) * pl.col("worth").var().fill_null(0.0),
        )
    )
    n = len(asked)
    value, chance, variance = by_workspace.select(pl.col("value", "chance", "variance").sum()).row(0)
    return Recall(value / n, chance / n, variance**0.5 / n)


def judgements(dataset: Dataset, level: Level, workspace: pl.DataFrame) -> pl.DataFrame:
    """Rows query_id, workspace_id, id: the judged units; a session is judged itself, or through its messages."""
    qrels = dataset.qrels.join(workspace, on="query_id").select("query_id", "workspace_id", id="message_id")
    if level == "message":
        return qrels
    sessions = pl.DataFrame(
        [(t.workspace_id, m.message_id, m.session_id) for t in dataset.transcripts for m in t.messages],
        schema={"workspace_id": pl.String, "id": pl.String, "session_id": pl.String},
        orient="row",
    )
    through = qrels.join(sessions, on=["workspace_id", "id"]).select("query_id", "workspace_id", id="session_id")
    named = dataset.session_qrels.join(workspace, on="query_id").select("query_id", "workspace_id", id="session_id")
    return pl.concat([through, named]).unique(maintain_order=True)


def units(dataset: Dataset, level: Level) -> pl.DataFrame:
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


@pytest.fixture(scope="module", params=CASES, ids=" ".join)
def case(request: pytest.FixtureRequest) -> tuple[str, ...]:
    choice = request.param[0]
    if choice in UNJUDGED:
        pytest.skip(f"{choice} has no judgements: {UNJUDGED[choice]}")
    return request.param


@pytest.fixture(scope="module")
def dataset(case: tuple[str, ...]) -> Dataset:
    return load(*case)


def test_there_is_something_that_could_leak(dataset: Dataset) -> None:
    assert len(dataset.qrels) + len(dataset.session_qrels)


@pytest.mark.parametrize("direction", ["ascending", "descending"])
@pytest.mark.parametrize("ranked_on", ["id", "length", "order"])
@pytest.mark.parametrize("level", ["message", "session"])
def test_ranking_on_one_property_alone_scores_at_chance(
    case: tuple[str, ...], dataset: Dataset, level: Level, ranked_on: Property, direction: Direction
) -> None:
    if level == "message" and dataset.qrels.is_empty():
        pytest.skip(f"{case[0]} judges sessions only")
    found = recall(dataset, level, ranked_on, direction, CUTOFFS[level])
    away = found.value - found.chance
    measured = MEASURED.get((" ".join(case), level, ranked_on, direction))
    if measured is None:
        assert not found.strays, f"{away:+.4f} from chance, {found.chance:.4f}: a leak, or MEASURED must say why not"
    else:
        assert ranked_on != "id", "an id that tells is a defect of the loader"
        assert found.strays, "at chance level: take it out of MEASURED"
        assert away / measured > 0, "the other way round than measured"
        assert abs(away) <= abs(measured) + 5e-5, f"{away:+.4f} from chance, measured was {measured:+.4f}"


def test_the_table_names_only_what_can_be_measured() -> None:
    assert {name for name, *_ in MEASURED} <= {" ".join(case) for case in ALL_CASES if case[0] not in UNJUDGED}


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
    found = [recall(made(lengths, [[0], [0, 3]]), level, "length", "ascending", cutoff=2) for lengths in orders]
    values = [one.value for one in found]
    assert [one.chance for one in found] == pytest.approx([2 / 4] * 24)
    assert mean(values) == pytest.approx(2 / 4)
    assert [one.deviation for one in found] == pytest.approx([pstdev(values)] * 24)


def test_each_property_orders_as_it_says() -> None:
    dataset = made((30, 10, 20, 40), [[0], [0, 3]], ids="bdac")
    expected: dict[tuple[Property, Direction], float] = {
        ("id", "ascending"): 3 / 4,  # a, b: all of the first query's evidence, half of the second's
        ("id", "descending"): 1 / 4,  # d, c
        ("length", "ascending"): 0,  # d, a
        ("length", "descending"): 1,  # c, b
        ("order", "ascending"): 3 / 4,  # b, d
        ("order", "descending"): 1 / 4,  # a, c
    }
    for (ranked_on, direction), value in expected.items():
        assert recall(dataset, "message", ranked_on, direction, cutoff=2).value == value


@pytest.mark.parametrize("level", ["message", "session"])
def test_an_id_that_tells_is_noticed(level: Level) -> None:
    ids = [f"{'answer' if i % 40 == 0 else 'filler'} {i:03}" for i in range(200)]
    told = made([1] * 200, [[i] for i in range(0, 200, 40)], ids)
    assert recall(told, level, "id", "ascending", cutoff=10).strays
    hidden = made([1] * 200, [[i] for i in range(0, 200, 40)], [opaque_id(one) for one in ids])
    assert not recall(hidden, level, "id", "ascending", cutoff=10).strays


def test_a_judged_session_counts_as_one_judged_by_its_messages() -> None:
    by_messages = made((30, 10, 20, 40), [[0], [0, 3]])
    sessions = by_messages.qrels.select(
        "query_id", pl.concat_str(pl.lit("session "), "message_id").alias("session_id"), "relevance"
    )
    by_sessions = replace(by_messages, qrels=by_messages.qrels.clear(), session_qrels=sessions)
    for direction in ("ascending", "descending"):
        one, two = (recall(d, "session", "length", direction, cutoff=2) for d in (by_messages, by_sessions))
        assert one == two
