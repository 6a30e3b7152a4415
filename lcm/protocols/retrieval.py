"""From a query to scored documents: indexes, sources, stages, decay, recovery; and the columns of rows as arrays, which
formulas are functions of."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.errors import LcmError
from lcm.protocols.models import Vectors
from lcm.records.document import GLOBAL_SCOPE
from lcm.records.query import Recalled

DAY_MS = 86_400_000
DOCUMENT_NUMBER = "document_number"
"""A column that kept candidates have: a number from 0 for each document and what it is to its query, its
`scope_class`."""

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]


class Columns:
    """The columns of some rows of a frame as arrays, a value a row.

    A formula is a function of these: the same one for the rows of one query and of a thousand.
    """

    __slots__ = ("_frame", "_rows")

    def __init__(self, frame: pl.DataFrame, rows: npt.NDArray[np.int64] | None = None) -> None:
        """
        Args:
            rows: the places of the rows that are meant; None = all.
        """
        self._frame, self._rows = frame, rows

    def __len__(self) -> int:
        return len(self._frame if self._rows is None else self._rows)

    def numbers(self, name: str, missing: float = math.nan) -> Numbers:
        """A column of numbers, or of instants as milliseconds since 1970.

        Args:
            missing: stands where there is none.
        Raises:
            polars.exceptions.ColumnNotFoundError: if there is no such column.
        """
        return self._of_rows(numbers_of(self._frame.get_column(name), missing))

    def are_missing(self, name: str) -> Truths:
        """Where a column has nothing; a NaN is something."""
        return self._of_rows(_nulls(self._frame.get_column(name)))

    def are(self, name: str, *words: str) -> Truths:
        """Where a column has one of some words."""
        column, found = self._frame.get_column(name), np.zeros(len(self._frame), np.bool_)
        for word in words:
            found |= (column == word).to_numpy() == True  # noqa: E712  # of a column with nulls an array of objects
        return self._of_rows(found)

    def days_since(self, instant: str) -> Numbers:
        """Days from an instant to `asked_at`: below 0 where it lies in the future, NaN where it is unknown."""
        return (self.numbers("asked_at") - self.numbers(instant)) / DAY_MS

    def days_old(self, *, clamp_future: bool) -> Numbers:
        """Days since `created_at`: 0 where no time is known, which a transcript without times stores as 1970.

        Args:
            clamp_future: take what lies in the future as 0 days old; without it, its age is negative.
        """
        age = np.where(self.numbers("created_at") > 0, self.days_since("created_at"), 0.0)
        return np.maximum(age, 0.0) if clamp_future else age

    def by_document(self, formula: "Callable[[Columns], Numbers]") -> Numbers:
        """The values of a formula of documents' columns, `scope_class` among them, and of `asked_at`, for each row.

        Where the rows are numbered by document and all queries were asked at one instant, the formula is worked out
        once a number, if these are fewer than the rows.
        """
        numbered = documents_among(self._frame) if self._rows is None else None
        if numbered is None or not _is_constant(self._frame["asked_at"]):
            return formula(self)
        documents, numbers = numbered
        values: Numbers = formula(Columns(documents))[numbers]
        return values

    def _of_rows(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values if self._rows is None else values[self._rows]


def documents_among(frame: pl.DataFrame) -> tuple[pl.DataFrame, npt.NDArray[np.uint32]] | None:
    """A row for each `DOCUMENT_NUMBER`, and the number of each row; None where rows have none, or are no more than
    these."""
    if DOCUMENT_NUMBER not in frame.columns:
        return None
    number = frame[DOCUMENT_NUMBER]
    most = number.max()
    if number.has_nulls() or not isinstance(most, int) or most + 1 >= len(number):  # rows were added, or cut
        return None
    numbers = number.to_numpy()
    rows = np.zeros(int(numbers.max()) + 1, np.uint32)
    rows[numbers] = np.arange(len(numbers), dtype=np.uint32)
    return frame[pl.Series(rows)], numbers


def _is_constant(column: pl.Series) -> bool:
    return len(column) > 0 and not column.has_nulls() and column.min() == column.max()


def numbers_of(column: pl.Series, missing: float = math.nan) -> Numbers:
    """A column of numbers in double precision, or of instants as milliseconds since 1970.

    Args:
        missing: stands where there is none.
    """
    values: Numbers = (column if column.dtype == pl.Float64 else column.cast(pl.Float64)).to_numpy()
    if math.isnan(missing) or not column.has_nulls():
        return values
    are_none = np.isnan(values)
    if np.count_nonzero(are_none) > column.null_count():
        are_none = _nulls(column)
    return np.where(are_none, missing, values)


def _nulls(column: pl.Series) -> Truths:
    if not column.has_nulls():
        return np.zeros(len(column), np.bool_)
    return column.is_null().to_numpy()


class KeptIndex(Protocol):
    """What can be kept in a file beside the store that it follows from."""

    def save(self, path: Path) -> None:
        """Write tmp, fsync, rename: the file is whole or absent."""
        ...

    def load(self, path: Path) -> None:
        """Replace the content by the file's.

        Raises:
            StoreError: if the file is missing, torn, or of other settings; the caller then rebuilds.
        """
        ...

    def __len__(self) -> int: ...


class VectorIndex(KeptIndex, Protocol):
    """Vectors to neighbours.

    An id may be added with several vectors (the windows of one text): its cosine is that of its best one.
    Laws: raw cosine, descending, ties in the order of adding; ids never repeat in one answer; a removed or
    disallowed id is never returned; k beyond the size gives all. `exact` is the oracle of the others.
    """

    def add(self, ids: Sequence[str], vectors: Vectors) -> None: ...

    def remove(self, ids: Sequence[str]) -> None: ...

    def search(
        self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None
    ) -> list[tuple[list[str], list[float]]]:
        """For each row of `vectors`, at most k ids with their cosines; `allowed` None means every id.

        A tuple of ids that is given again need not be looked up again.
        """
        ...

    def vectors_of(self, ids: Sequence[str]) -> Vectors:
        """One unit vector an id: its own, or the normalised mean of several; row i belongs to ids[i].

        Raises:
            ValueError: if an id is not in the index.
        """
        ...


class IndexAnswer(NamedTuple):
    """What a vector index answers to one query, and how it was found."""

    ids: list[str]
    cosines: list[float]
    width: int
    """Numbers a vector that were looked at last: fewer than the embedder's where a narrow width answered."""
    is_by_graph: bool
    """A graph proposed the ids; else every visible vector was looked at, at this width."""


@runtime_checkable
class Approximate(Protocol):
    """A vector index that may miss documents: it tells how each answer was found, and holds what it is judged by."""

    @property
    def exact(self) -> VectorIndex:
        """The oracle over the same vectors; changed through this index alone."""
        ...

    def answers(self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None) -> list[IndexAnswer]:
        """What `search` gives, told."""
        ...


@runtime_checkable
class Tiered(Protocol):
    """A vector index of several widths, each answer from one of them."""

    def search_tiers(
        self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None
    ) -> list[tuple[list[str], list[float], int]]:
        """As `search`, and the width that answered each row."""
        ...


class TextIndex(KeptIndex, Protocol):
    """Words to raw BM25, higher is better.

    An id is added once; to change its text remove it first.
    Laws: as for VectorIndex; a document sharing no word with the query is not returned; scores depend only on the
    documents now in the index.
    """

    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None: ...

    def remove(self, ids: Sequence[str]) -> None: ...

    def search(
        self, queries: Sequence[str], k: int, allowed: Sequence[str] | None = None
    ) -> list[tuple[list[str], list[float]]]: ...


class VectorIndexChoice(Protocol):
    """The settings of a vector index; each workspace builds its own from them."""

    def build(self, dim: int, *, incidents: Counter[str]) -> VectorIndex:
        """An empty index; what it survives, then and later, is counted in `incidents`."""
        ...


class TextIndexChoice(Protocol):
    """The settings of a text index; each workspace builds its own from them."""

    def build(self) -> TextIndex: ...


@dataclass(frozen=True, slots=True)
class Batch:
    """Queries of one workspace that may see the same documents, and what a source or stage may ask about those.

    A document is visible from its `valid_from` until its `invalidated_at`, to queries whose scopes hold its own.
    """

    queries: pl.DataFrame
    """Columns query_id, text, asked_at, conversation_id, session_id, caller."""
    vectors: Vectors
    """Row i embeds query i; of shape (n, 0) where the source needs none, or where `embedding_error` says why not."""
    documents: pl.DataFrame
    """The visible documents, oldest first; columns as `lcm.store` names them."""
    allowed: Sequence[str] | None
    """The ids of `documents` as a filter for the indexes; None where the indexes hold nothing else."""
    vector_index: VectorIndex
    text_index: TextIndex
    document_vectors: Callable[[Sequence[str]], Vectors]
    """Ids to one unit vector each: the normalised mean of its windows."""
    embedding_error: LcmError | None = None
    """Why the queries have no vectors."""
    scopes: tuple[str, ...] | None = None
    """Which scopes the queries read by their host's word or as an agent's; None = nobody is told from others."""
    is_in_session: bool = False
    """The asker sees turns of its own session, which are left out of `documents`."""
    turns: pl.DataFrame | None = None
    """What else was said and could be seen, but is not durable or stands behind a summary: for the search of lost
    turns, and of what lies beneath a summary; columns as `documents`. None = nothing."""
    incidents: Counter[str] = field(default_factory=Counter)
    """What failed and was survived: that of the workspace."""
    derived: dict[Hashable, Any] = field(default_factory=dict)
    """What stages keep of the workspace's documents while it is open, under keys of their own."""
    acted: Counter[str] | None = None
    """Counts how many times each slot of the ranking changed an answer, by the slot's name; None = nobody asks, and
    nothing is compared for it."""

    @property
    def is_shared(self) -> pl.Expr:
        """Whether a document is everybody's: it lies in the global scope, and the asker is one of several.

        Where nobody reads by scopes, the workspace is one user's, and what it remembers is his.
        """
        return pl.lit(False) if self.scopes is None else pl.col("scope") == GLOBAL_SCOPE


class Source(Protocol):
    """The first step of a ranking: finds the candidate rows of each query.

    Returns columns query_id, asked_at, document_id, cosine, bm25 (raw; null where that branch did not return the row),
    dense_rank, lexical_rank (1-based; null likewise), score (null before fusion). Of branches beside dense and lexical:
    NAME_rank, and beside it NAME_cosine or NAME_bm25 (raw), or NAME_score where nothing else orders the rows.
    Its `contract` says which indexes of the memory it asks, whether it reads the queries' vectors, and, of one of
    several orders, which of cosine and bm25 it has.
    Laws: only visible documents; one row a (query, document); rows of a query in the order of first appearance.
    """

    def candidates(self, batch: Batch) -> pl.DataFrame: ...


Raw = Literal["cosine", "bm25", "score"]
"""The column of a candidate frame that holds what a source orders its rows by."""


@runtime_checkable
class Branch(Source, Protocol):
    """A source of one order: what one branch of several may be.

    Laws: as for `Source`; rows of a query best first.
    """

    @property
    def gives(self) -> Raw: ...


@runtime_checkable
class Expansion(Protocol):
    """The only step that may add rows; it stands among the stages of a ranking.

    Laws: only visible documents, or turns of the batch; every row that came in stays; one row a (query, document);
    rows that it adds are described like the others.
    """

    def expand(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame: ...


@runtime_checkable
class Stage(Protocol):
    """A frame in, a frame out.

    Its `contract` says which columns it reads and makes: by that a run tells what is chosen and has no work.
    Laws: never adds a row; keeps the type of every column; deterministic; leaves its argument alone; the rows of
    one query come out the same whichever other queries share the frame.
    """

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame: ...


@runtime_checkable
class Scores(Protocol):
    """A stage that gives the rows new scores, and nothing else; it or a later one brings them into their order.

    Laws: what it gives does not depend on the order of the rows, but for which of equals is the better; no number is
    NaN where none was.
    """

    def scores(self, frame: pl.DataFrame) -> Numbers:
        """The new score of each row, as they stand."""
        ...


@runtime_checkable
class TellsReasons(Protocol):
    """A stage that tells why it puts a row behind others, or drops it.

    Laws: it tells of rows that it was given, each once; what it tells of a row does not depend on other queries.
    """

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Rows of `REASONS_SCHEMA` for a frame that it is given."""
        ...


REASONS_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "document_id": pl.String(),
    "reason": pl.String(),
    "like_id": pl.String(),
}
"""Why a stage puts a row behind others, or drops it, in words; `like_id` is a better document that it is like, null
where that is not why."""


@runtime_checkable
class Slot(Protocol):
    """A stage or expansion that learns from the steps around it whether it has anything to do: `MinMax` stands between
    steps whose contracts say that one leaves [0, 1] and that the other reckons with it."""

    def is_idle(self, before: Sequence[Stage | Expansion], behind: Sequence[Stage | Expansion]) -> bool:
        """Whether nothing is left for it to do between these steps; it is then left out."""
        ...


@runtime_checkable
class DescribedSource(Source, Protocol):
    """A source that keeps what its candidates are, so that it can put the documents' columns beside them itself; and
    what the first steps of a ranking make of them."""

    def described(self, batch: Batch) -> pl.DataFrame:
        """The candidates as `describe` gives them."""
        ...

    def begun(
        self, steps: Sequence[tuple[str, Stage | Expansion]], batch: Batch
    ) -> tuple[int, pl.DataFrame, Counter[str]]:
        """How many of the first steps need not be passed again, the rows behind them, and the incidents of passing
        them."""
        ...


class Ranker(Protocol):
    """What answers queries: one `Ranking`, or several and a rule that chooses.

    Laws: documents of a query differ; rank counts from 1 without gaps; queries keep their order.
    """

    def rank(self, batch: Batch) -> pl.DataFrame:
        """Rows of `RANKED_SCHEMA`; best first within each query."""
        ...

    def trace(self, batch: Batch) -> pl.DataFrame:
        """Every step's outcome: rows step, stage, query_id, document_id, rank, score, stands_for."""
        ...

    def plan(self, batch: Batch) -> pl.DataFrame:
        """The steps that each query's rows pass, in order: rows query_id, step, stage."""
        ...

    def found_by(self, batch: Batch) -> pl.DataFrame:
        """What each branch of the source found: rows query_id, branch, document_id, rank, score."""
        ...

    def reasons(self, batch: Batch) -> pl.DataFrame:
        """What the steps that are `TellsReasons` tell of the rows: `REASONS_SCHEMA`, and the step."""
        ...


@runtime_checkable
class BringsDocuments(Protocol):
    """A ranker that answers with documents of its own, which no memory holds: texts that another memory returned."""

    @property
    def brought(self) -> pl.DataFrame:
        """All of them; columns as `lcm.store` names them."""
        ...


class Decay(Protocol):
    """Age and use to a multiplier.

    Laws: in [0, 1]; never rises with age; a value that is no number is taken as its column's default. Its `contract`
    names the document's columns that it reads, beside `asked_at`.
    """

    def multiplier(self, columns: Columns) -> Numbers:
        """Of each row, from the document's columns and `asked_at`."""
        ...

    def strength(self, columns: Columns) -> Numbers:
        """How alive a document is, from the same columns: what decay tiers are judged by."""
        ...


class Signals(NamedTuple):
    """How an answer looks failed: it came from the widest index tier, its best is weak, it is nothing but vague
    summaries; or the session is new and says nothing of it."""

    is_from_widest: bool
    is_weak: bool
    is_vague: bool
    is_elsewhere: bool

    @property
    def has_failed(self) -> bool:
        """The raw words of the session are looked through again."""
        return (self.is_from_widest and self.is_weak) or self.is_vague


class Recovery(Protocol):
    """Says when an answer has failed, and orders the raw turns that are fetched to mend it.

    Laws: nothing is fetched for an answer that has not failed, unless it was asked from elsewhere; what a ranking has
    fetched for a question that names no session is shown, and a reserve kept for it, in a context of any conversation;
    the order is a permutation of some of what was given.
    """

    def signals(self, answer: Sequence[Recalled], has_session: bool) -> Signals:
        """Judge an answer without what was recovered; `has_session`: something of the asker's own session is at hand,
        a turn or what was made of turns."""
        ...

    def reserve_tokens(self, prompt: str, signals: Signals, budget_tokens: int) -> int:
        """How many tokens of the budget are kept for what was recovered."""
        ...

    def order(
        self, prompt: str, recovered: Sequence[Recalled], tokens: Sequence[int], reserve_tokens: int, now: datetime
    ) -> list[int]:
        """The places of what to show, first first; each is shown that still fits into the reserve.

        Args:
            prompt: what was asked.
            recovered: raw words, by cosine.
            tokens: what each costs.
            reserve_tokens: what there is for them.
            now: when it was asked.
        """
        ...
