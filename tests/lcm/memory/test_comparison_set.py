"""What a new candidate is compared with: what comparing it with one document after another finds."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.memory import live_documents as live_documents
from lcm.memory.live_documents import ComparisonSet
from lcm.protocols.models import Vectors
from lcm.protocols.writing import DocumentSort
from lcm.records.document import Document
from lcm.retrieval.vector_index.exact import cosines, to_grid
from lcm.writing.admission.intake import DocumentCreated, DocumentEnded
from tests.lcm.writing.admission.tables import document
from tests.support.workspaces import minute

SORTS = [DocumentSort("user", "turn", False), DocumentSort("assistant", "turn", False), DocumentSort("", "note", True)]
Predicate = Callable[[DocumentSort], bool] | None
PREDICATES: list[Predicate] = [None, lambda sort: sort.role == "user", lambda _: False]


class Row(NamedTuple):
    """A document as the oracle knows it."""

    document: Document
    vector: Vectors
    has_ended: bool


def _direction(step: int) -> Vectors:
    """One of few directions, so that many documents are equally near."""
    angle = step * np.pi / 12
    return np.array([[np.cos(angle), np.sin(angle)]], np.float32)


STEPS, ROW = st.integers(0, 6), st.tuples(st.integers(0, 6), st.sampled_from(SORTS), st.integers(0, 3), st.booleans())


def rows(prefix: str) -> st.SearchStrategy[list[Row]]:
    return st.lists(ROW, max_size=20).map(
        lambda drawn: [
            Row(document(f"{prefix} {place}", "said", at=at, **sort._asdict()), _direction(step), has_ended)
            for place, (step, sort, at, has_ended) in enumerate(drawn)
        ]
    )


STORED, CREATED = rows("stored"), rows("created")


def _frame(rows: Sequence[Row]) -> pl.DataFrame:
    columns = {
        "document_id": [row.document.document_id for row in rows],
        "scope": [row.document.scope for row in rows],
        "valid_from": [row.document.valid_from or row.document.created_at for row in rows],
        "invalidated_at": [minute(4) if row.has_ended else None for row in rows],
        **{name: [getattr(row.document, name) for row in rows] for name in DocumentSort._fields},
    }
    types = {"invalidated_at": pl.Datetime("us", "UTC"), "valid_from": pl.Datetime("us", "UTC")}
    return pl.DataFrame(columns, schema_overrides={**types, "is_durable": pl.Boolean})


def _comparison(stored: Sequence[Row], created: Sequence[Row]) -> ComparisonSet:
    known = {row.document.document_id: row.document for row in stored}
    vectors = np.vstack([np.empty((0, 2), np.float32), *(row.vector for row in stored)])
    found = ComparisonSet(_frame(stored), vectors, known.__getitem__, None)
    found.apply([DocumentCreated(row.document, row.vector) for row in created])
    found.apply([DocumentEnded(row.document.document_id, minute(4)) for row in created if row.has_ended])
    return found


def _one_by_one(
    rows: Sequence[Row], vector: Vectors, k: int, now: int, active_only: bool, only: Predicate
) -> list[tuple[str, float]]:
    found = [
        (row.document.document_id, float(cosines(to_grid(vector, 2), to_grid(row.vector, 2))[0, 0]))
        for row in rows
        if row.document.created_at <= minute(now)
        and not (active_only and row.has_ended)
        and (only is None or only(DocumentSort(row.document.role, row.document.kind, row.document.is_durable)))
    ]
    return sorted(found, key=lambda near: -near[1])[:k]


@given(
    stored=STORED,
    created=CREATED,
    step=STEPS,
    k=st.integers(0, 6),
    now=st.integers(0, 4),
    active_only=st.booleans(),
    only=st.sampled_from(PREDICATES),
)
def test_the_nearest_are_those_of_comparing_one_by_one(
    stored: list[Row], created: list[Row], step: int, k: int, now: int, active_only: bool, only: Predicate
) -> None:
    asked = _direction(step)
    known = _comparison(stored, created).known_at(minute(now))
    found = known.nearest(asked, k, active_only=active_only, only=only)
    expected = _one_by_one([*stored, *created], asked, k, now, active_only, only)
    assert [(near.document.document_id, near.cosine) for near in found] == expected


@given(stored=STORED, step=STEPS)
def test_what_ends_in_a_branch_stands_where_it_began(stored: list[Row], step: int) -> None:
    stored = [row for row in stored if not row.has_ended]
    first, asked = _comparison(stored, []), _direction(step)
    branch = first.branch()
    branch.apply([DocumentEnded(row.document.document_id, minute(4)) for row in stored])
    branch.apply([DocumentCreated(document("new", "said", at=1), asked)])

    def named(of: ComparisonSet) -> list[str]:
        near = of.known_at(minute(9)).nearest(asked, 99, active_only=True)
        return sorted(one.document.document_id for one in near)

    assert named(branch) == ["new"]
    assert named(first) == sorted(row.document.document_id for row in stored)


@given(stored=STORED, created=CREATED, steps=st.lists(STEPS, min_size=1, max_size=5), at_once=st.integers(1, 40))
def test_what_is_expected_is_found_as_what_is_not(
    stored: list[Row], created: list[Row], steps: list[int], at_once: int
) -> None:
    asked, order = [_direction(step) for step in steps], [*range(len(steps)), *reversed(range(len(steps)))]
    told, untold = _comparison(stored, []), _comparison(stored, [])
    told.expect(asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_documents, "_PRODUCTS", at_once)
        for place, row in zip(order, [*created, *[None] * len(order)], strict=False):
            one, other = (
                known.known_at(minute(9)).nearest(asked[place], 99, active_only=False) for known in (told, untold)
            )
            assert one == other
            if row is not None:
                for known in (told, untold):
                    known.apply([DocumentCreated(row.document, row.vector)])
