"""Frames of candidates: their one order, rows by query and by turn, columns without a plan; and documents by id, a few
of many being looked up in a table that is kept beside their frame.

Handing the work of a few rows to the threads of Polars takes longer than a live query's work.
"""

import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import REASONS_SCHEMA, Batch, Numbers, Places, numbers_of

_PADDED_ROWS = 4
"""Queries are sorted side by side unless the places of the longest one for each are so many times the rows."""
CUT_KINDS = ("message", "step")


def beside(frame: pl.DataFrame, columns: Iterable[pl.Series]) -> pl.DataFrame:
    """`with_columns` of columns that are there: without a plan, a fifth of the time."""
    whole, names = frame.clone(), frame.columns
    for column in columns:
        if column.name in names:
            whole.replace_column(names.index(column.name), column)
        else:
            whole.insert_column(len(names), column)
            names.append(column.name)
    return whole


def columns_of(names: Sequence[str], values: npt.NDArray[np.float64]) -> list[pl.Series]:
    """Columns of the rows of an array: parts of one series, for making one takes as long as cutting off ten.

    Args:
        values: shape (names, rows).
    """
    whole, count = pl.Series(np.ascontiguousarray(values).reshape(-1)), values.shape[1]
    return [whole.slice(number * count, count).alias(name) for number, name in enumerate(names)]


def with_rows(frame: pl.DataFrame, added: pl.DataFrame, query_ids: pl.Series) -> pl.DataFrame:
    """A frame with further rows, those of each query behind its own.

    Args:
        added: what it lacks of the frame's columns is null, but for `deferred`, which is false.
        query_ids: of all rows, in the order of the queries.
    """
    count, known = len(added), set(added.columns)
    whole = frame.vstack(
        pl.DataFrame(
            [
                added[column.name] if column.name in known else pl.Series(column.name, [None] * count, column.dtype)
                for column in frame
            ]
        )
    )
    if "deferred" in frame.columns and "deferred" not in known:
        whole = whole.with_columns(pl.col("deferred").fill_null(False))
    if len(query_ids) > 1:
        place = {query_id: at for at, query_id in enumerate(query_ids)}
        whole = whole.sort(pl.col("query_id").replace_strict(place, return_dtype=pl.Int64), maintain_order=True)
    return whole


def taken(frame: pl.DataFrame, rows: npt.NDArray[np.integer]) -> pl.DataFrame:
    """Some rows of a frame, in the order given; by a series of places, which is read sooner than an array."""
    return frame[pl.Series(rows.astype(np.uint32))]


def kept_rows(frame: pl.DataFrame, is_kept: npt.NDArray[np.bool_]) -> pl.DataFrame:
    """Some rows; the frame itself where they are all."""
    count = int(np.count_nonzero(is_kept))
    if is_kept[:count].all():  # of rows in order those that score enough: no thread need be woken
        return frame if count == len(frame) else frame.head(count)
    return taken(frame, np.flatnonzero(is_kept))


def told_of(rows: pl.DataFrame, reason: pl.Expr) -> pl.DataFrame:
    """Rows of `REASONS_SCHEMA`: a reason, worked out of each row, that no other document gives."""
    return rows.select("query_id", "document_id", reason=reason, like_id=pl.lit(None, pl.String)).cast(
        pl.Schema(REASONS_SCHEMA)
    )


def best_first(frame: pl.DataFrame) -> pl.DataFrame:
    """Sort each query's rows by score, descending; ties keep the order in which they came, null scores come last.

    Where there is a column `deferred`, the rows that it names come behind all others of their query.
    The rows of a query stand together, as every source leaves them; queries keep their order.
    """
    return _picked(frame, _order(frame))


def best(frame: pl.DataFrame, n: int) -> pl.DataFrame:
    """The first `n` rows of each query, in the order of `best_first`: no more rows than these are moved.

    Args:
        n: at least 1.
    """
    return _picked(frame, _order(frame)[places(frame) < n])


def best_by(scores: Sequence[Numbers], queries: Places, n: int) -> Places:
    """The places of the first `n` rows of each query by the last of several scores, what is equal by the one before it
    and so on: of what `best` leaves of rows that were sorted by one after another.

    Args:
        scores: of the rows as they stand; no NaN.
        queries: the number of each row's query, ascending.
        n: at least 1.
    """
    losses, (_, sizes) = -scores[-1], _runs(queries)
    rows = np.arange(len(queries))
    if len(sizes) and sizes.max() > n and len(sizes) * sizes.max() <= _PADDED_ROWS * len(queries):
        least = np.partition(_padded(losses, sizes), n - 1, axis=1)[:, n - 1]
        rows = np.flatnonzero(losses <= np.repeat(least, sizes))
    order = rows[np.lexsort((*(-one[rows] for one in scores), queries[rows]))]
    return order[_counted(queries[order]) < n]


def order_moves(before: Sequence[Numbers], after: Numbers, queries: Places, some: Places | slice = slice(0)) -> bool:
    """Whether rows that were sorted by one score after another come into another order by the next.

    Args:
        before, after: of each row; no NaN.
        queries: the number of each row's query, ascending.
        some: rows that are looked at before all are, for most of what moves any moves the first.
    """
    if np.array_equal(before[-1], after):
        return False
    was, now, of = before[-1][some], after[some], queries[some]
    if ((was[1:] > was[:-1]) & (now[1:] < now[:-1]) & (of[1:] == of[:-1])).any():
        return True
    order = _by_loss(-before[0], queries) if len(before) == 1 else np.lexsort((*(-one for one in before), queries))
    along, of = after[order], queries[order]
    return bool(((along[1:] > along[:-1]) & (of[1:] == of[:-1])).any())


def _picked(frame: pl.DataFrame, rows: Places) -> pl.DataFrame:
    """Some rows, in the order given; nothing is moved where they are the first as they stand."""
    count = len(rows)
    if (rows == np.arange(count)).all():
        return frame if count == len(frame) else frame.head(count)
    return taken(frame, rows)


def _order(frame: pl.DataFrame) -> Places:
    """The places of the rows in the order of `best_first`."""
    scores, queries = frame["score"], query_numbers(frame)
    losses = -numbers_of(scores, missing=-np.inf)
    order = _by_loss(np.where(np.isnan(losses), -np.inf, losses), queries)
    if "deferred" in frame.columns and (is_deferred := frame["deferred"].to_numpy()).any():
        order = order[np.argsort(2 * queries + is_deferred[order], kind="stable")]
    return order


def ranks_within(groups: Places, scores: Numbers) -> Places:
    """How many rows of its own group each row has before it, by score, then as they stand; what is no number last.

    Args:
        groups: the number of each row's group, from 0.
    """
    ranks = np.zeros(len(groups), np.int64)
    rows = np.flatnonzero(np.bincount(groups)[groups] > 1)  # most stand alone in their turn
    narrow = groups[rows].astype(np.min_scalar_type(groups.max(initial=0)))  # 16 bits are sorted by their digits
    rows = rows[np.argsort(narrow, kind="stable")]
    order = rows[_by_loss(np.where(np.isnan(scores[rows]), np.inf, -scores[rows]), groups[rows])]
    ranks[order] = _counted(groups[order])
    return ranks


def _by_loss(losses: Numbers, queries: Places) -> Places:
    """The places of the rows of each query by loss, ties as they stand.

    Args:
        losses: of each row; no NaN.
        queries: the number of each row's query, ascending.
    """
    if np.all((losses[1:] >= losses[:-1]) | (queries[1:] != queries[:-1])):
        return np.arange(len(losses))
    starts, sizes = _runs(queries)
    if len(sizes) * sizes.max() > _PADDED_ROWS * len(losses):
        return np.lexsort((losses, queries))
    # Six times as fast as a sort by query and loss.
    order = np.argsort(_padded(losses, sizes), axis=1, kind="stable") + starts[:, np.newaxis]
    rows: Places = order[np.arange(sizes.max()) < sizes[:, np.newaxis]]
    return rows


def _padded(losses: Numbers, sizes: Places) -> Numbers:
    """The losses of each query's rows, shape (queries, most rows); behind its last row a query is padded with what no
    sort puts before a row that stands before it."""
    if (sizes == sizes[0]).all():
        return losses.reshape(len(sizes), -1)
    is_row = np.arange(sizes.max()) < sizes[:, np.newaxis]
    table = np.full(is_row.shape, np.inf)
    table[is_row] = losses
    return table


def with_rank(frame: pl.DataFrame) -> pl.DataFrame:
    """Number the rows of each query from 1, as they stand, in the column `rank`."""
    return frame.with_columns(pl.Series("rank", places(frame) + 1))


def places(frame: pl.DataFrame) -> Places:
    """Number the rows of each query from 0, as they stand."""
    return _counted(query_numbers(frame))


def _counted(queries: Places) -> Places:
    starts, sizes = _runs(queries)
    return np.arange(len(queries)) - np.repeat(starts, sizes)


def _runs(queries: Places) -> tuple[Places, Places]:
    """Where the rows of each query begin, and how many they are: of a number that no row has, 0."""
    sizes = np.bincount(queries)
    return np.cumsum(sizes) - sizes, sizes


def query_numbers(frame: pl.DataFrame) -> Places:
    """The number of each row's query, from 0, as they stand."""
    ids = frame["query_id"]
    if len(ids) and ids[0] == ids[-1]:  # a live query: looking is a hundred times as fast as counting
        return np.zeros(len(ids), np.int64)
    return ids.rle_id().to_numpy().astype(np.int64)


def of_queries(reduce: np.ufunc, values: Numbers, queries: Places) -> Numbers:
    """What the values of each query's rows are reduced to, for each row.

    A sum runs over the rows of one query after another: its last bits, which decide between equals, are the same
    whichever other queries stand beside.

    Args:
        reduce: `np.add`, `np.maximum` ...
        queries: the number of each row's query, ascending.
    """
    if not len(values):
        return values
    starts, sizes = _runs(queries)
    return np.repeat(reduce.reduceat(values, starts), sizes)


def query_runs(frame: pl.DataFrame) -> list[tuple[int, str]]:
    """How many rows stand together, and of which query."""
    ids, (starts, sizes) = frame["query_id"], _runs(query_numbers(frame))
    return [(size, ids[start]) for size, start in zip(sizes.tolist(), starts.tolist(), strict=True)]


def rows_by_size(frame: pl.DataFrame, rows_at_once: int) -> Iterable[npt.NDArray[np.int64]]:
    """Rows of several queries that have equally many, side by side; all rows come once.

    Args:
        frame: candidates, the rows of a query together.
        rows_at_once: about how many are given at a time; a query is never cut.
    Returns:
        Matrices of row numbers, shape (queries, rows of each).
    """
    starts, sizes = _runs(query_numbers(frame))
    for size in np.unique(sizes):
        alike = starts[sizes == size]
        at_once = max(1, rows_at_once // size)
        for first in range(0, len(alike), at_once):
            yield alike[first : first + at_once, np.newaxis] + np.arange(size)


def turn_of(documents: pl.DataFrame, *apart: str) -> pl.Series:
    """For each row of documents the number of the first row of its turn.

    Documents of kind `message` or `step` that begin with the same message are what it was cut into; any other document
    is a turn of its own.

    Args:
        documents: rows of documents, or of candidates with their documents' columns.
        apart: further columns by which rows are of different turns: `query_id`, where several queries found a document.
    """
    is_passage = pl.col("kind").is_in(CUT_KINDS).fill_null(False) & pl.col("seq").is_not_null()
    return first_rows(documents, is_passage, "conversation_id", "session_id", "seq", "kind", *apart)


def session_of(documents: pl.DataFrame, *apart: str) -> pl.Series:
    """For each row of documents the number of the first row of its session; one that has none is alone in one.

    Args:
        documents, apart: as those of `turn_of`.
    """
    is_placed = pl.all_horizontal(pl.col("conversation_id", "session_id").is_not_null())
    return first_rows(documents, is_placed, "conversation_id", "session_id", *apart)


def first_rows(frame: pl.DataFrame, is_placed: pl.Expr, *place: str) -> pl.Series:
    """For each row the number of the first one of its place; a row that stands in none is a place of its own."""
    alone = pl.when(~is_placed).then("_row")
    return frame.with_row_index("_row").select(pl.col("_row").min().over(*place, alone))["_row"].cast(pl.Int64)


_Held = TypeVar("_Held")
_Made = TypeVar("_Made")
_FEW = 2048
"""Ids whose columns are read one by one."""
_KEPT = 16
"""Frames whose tables are kept: of each moment, and of those before it while other threads still ask."""


def documents_of(batch: Batch, ids: pl.Series, columns: Sequence[str]) -> pl.DataFrame:
    """Columns of documents that a batch knows, of those it sees and of its turns.

    Args:
        batch: what queries were asked of.
        ids: of documents, any number of times each.
        columns: of `Batch.documents`, `document_id` among them.

    Returns:
        A row for each id, in their order; null in all columns where the batch does not know the document.
    """
    found = rows_of(batch.documents, ids, columns)
    return found if batch.turns is None else _filled(found, rows_of(batch.turns, ids, columns))


def vectors_of(batch: Batch, ids: pl.Series) -> tuple[Vectors, npt.NDArray[np.int64]]:
    """Ask for the vector of each document once.

    Returns:
        The vectors, and for each id the position of its own.
    """
    listed = ids.to_list()
    places = {document_id: place for place, document_id in enumerate(dict.fromkeys(listed))}
    return batch.document_vectors(list(places)), np.fromiter(map(places.__getitem__, listed), np.int64, len(listed))


def queries_of(frame: pl.DataFrame, batch: Batch) -> pl.Series:
    """Where in the batch the query of each row stands, UInt32."""
    place = {query_id: at for at, query_id in enumerate(batch.queries["query_id"].to_list())}
    runs = query_runs(frame)
    found = np.array([place[query_id] for _, query_id in runs], np.uint32)
    return pl.Series(np.repeat(found, [size for size, _ in runs]))


def texts_of(batch: Batch, ids: pl.Series) -> pl.Series:
    """The texts of documents that a batch sees, one for each id; null of one that it does not see."""
    return batch.documents["text"][_rows(batch.documents, ids)]


def rows_of(documents: pl.DataFrame, ids: pl.Series, columns: Sequence[str]) -> pl.DataFrame:
    """Columns of documents of a frame, a row for each id, in their order; null where it has no such document."""
    rows = _rows(documents, ids)
    if len(ids) > _FEW:
        return documents[list(columns)][rows]
    return pl.DataFrame([documents[name][rows] for name in columns])  # no threads are woken


def _rows(documents: pl.DataFrame, ids: pl.Series) -> pl.Series:
    """The row of each id, null where there is no such document."""
    places, count = places_of(documents), len(documents)
    rows = np.fromiter(map(places.get, ids.to_list(), repeat(count)), np.uint32, len(ids))
    is_known = rows < count
    if is_known.all():  # an array is read several times as fast as a list, and holds no null
        return pl.Series(rows)
    told = zip(rows.tolist(), is_known.tolist(), strict=True)
    return pl.Series([row if known else None for row, known in told], dtype=pl.UInt32)


def _filled(found: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    is_found = found["document_id"].is_not_null()
    if is_found.all():
        return found
    return found.select(pl.when(is_found).then(pl.col(name)).otherwise(others[name]) for name in found.columns)


class KeptBeside(Generic[_Held, _Made]):
    """Makes something of an object, and gives the same for that very one again, until the object is gone.

    Safe to use from several threads; two that ask at once may both make it.
    """

    def __init__(self, make: Callable[[_Held], _Made], kept: int) -> None:
        self._make, self._most = make, kept
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, tuple[weakref.ref[_Held], _Made]] = OrderedDict()

    def __call__(self, held: _Held) -> _Made:
        key = id(held)
        with self._lock:
            if (known := self._kept.get(key)) is not None and known[0]() is held:
                self._kept.move_to_end(key)
                return known[1]
        made = self._make(held)
        with self._lock:
            self._kept[key] = weakref.ref(held), made
            for gone in [other for other, (one, _) in self._kept.items() if one() is None]:
                del self._kept[gone]
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made


def _places(documents: pl.DataFrame) -> dict[str, int]:
    """One table serves a frame and those that it has grown into: a turn more is an id more, not all of them again."""
    ids = documents["document_id"]
    with _growing_lock:
        for known, places in reversed(_growing):
            is_its_own = len(places) == len(known) <= len(ids)  # else another frame has grown out of it
            if is_its_own and ids.head(len(known)).equals(known):
                places.update(zip(ids.slice(len(known)).to_list(), range(len(known), len(ids)), strict=True))
                break
        else:
            places = dict(zip(ids.to_list(), range(len(ids)), strict=True))
        _growing.append((ids, places))
    return places


_growing: deque[tuple[pl.Series, dict[str, int]]] = deque(maxlen=4)
"""The ids of the frames whose tables were made last: of a few memories that grow side by side."""
_growing_lock = threading.Lock()
_places_of = KeptBeside(_places, _KEPT)


def places_of(documents: pl.DataFrame) -> Mapping[str, int]:
    """Where each document stands in a frame, by its id; one that came later stands behind its last."""
    return _places_of(documents)
