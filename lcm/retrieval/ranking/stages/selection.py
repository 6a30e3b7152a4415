"""Stages that drop rows or add some: too many, too weak, expired, noise; what an answer points to; and what repeats
something better, or stands beside it, which counts less or steps back."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain, islice, pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.checks import check_choice, check_range
from lcm.protocols.contract import Contract
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import (
    REASONS_SCHEMA,
    Batch,
    Columns,
    Expansion,
    Numbers,
    Places,
    Stage,
    documents_among,
    numbers_of,
)
from lcm.retrieval.frames import (
    KeptBeside,
    beside,
    best,
    best_first,
    documents_of,
    kept_rows,
    of_queries,
    places,
    query_numbers,
    query_runs,
    ranks_within,
    rows_by_size,
    rows_of,
    session_of,
    texts_of,
    told_of,
    turn_of,
    vectors_of,
    with_rank,
    with_rows,
)
from lcm.retrieval.ranking.pipeline import RELATED, passed
from lcm.retrieval.source.indexes import Lexical, describe, tried
from lcm.writing.noise import are_noise

_KEYS = ["query_id", "document_id"]


@dataclass(frozen=True, slots=True)
class Limit:
    """The first `n` candidates of each query."""

    n: int = 20
    contract = Contract(reads=())

    def __post_init__(self) -> None:
        check_range(self, "n", ge=1)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return best(frame, self.n)

    @property
    def first_by_score(self) -> int:
        """How many rows of each query it lets through, by nothing but their scores."""
        return self.n

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, how many are let through."""
        dropped = with_rank(best_first(frame)).filter(pl.col("rank") > self.n)
        return told_of(dropped, pl.lit(f"the first {self.n} are let through"))


@dataclass(frozen=True, slots=True)
class MinScore:
    """Keep candidates whose score is at least `threshold`; a query may be left with none."""

    threshold: float = 0.3
    contract = Contract(reads_unit_scores=True)

    def __post_init__(self) -> None:
        check_range(self, "threshold")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return kept_rows(frame, ~(Columns(frame).numbers("score", missing=-np.inf) < self.threshold))

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, how far its score is below the threshold."""
        dropped = frame.filter(~(pl.col("score") >= self.threshold).fill_null(False))
        told = pl.format("score {} below {}", pl.col("score").round(3), pl.lit(self.threshold))
        return told_of(dropped, told)


@dataclass(frozen=True, slots=True)
class NotExpired:
    """Drop documents whose `valid_until` is not after the query was asked; most have none.

    Source: memory-lancedb-pro, which leaves expired rows out of what it ranks.
    """

    contract = Contract(reads=("valid_until",))

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        columns = Columns(frame)
        return kept_rows(frame, columns.numbers("valid_until", missing=np.inf) > columns.numbers("asked_at"))

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, when it expired."""
        expired = frame.filter(pl.col("valid_until") <= pl.col("asked_at"))
        return told_of(expired, pl.format("expired on {}", pl.col("valid_until").dt.date()))


@dataclass(frozen=True, slots=True)
class NoiseFilter:
    """Drop documents whose text is noise: see `lcm.writing.noise`. Each group of patterns can be switched off.

    Source: memory-lancedb-pro, filterNoise.
    """

    denials: bool = True
    meta_questions: bool = True
    boilerplate: bool = True
    complaints: bool = False
    """Complaints about the memory are questions about it too."""

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        ids = frame["document_id"].to_list()
        unique = pl.Series(list(dict.fromkeys(ids)), dtype=pl.String)
        texts = texts_of(batch, unique)
        if texts.has_nulls():  # of what the batch does not see
            unique, texts = unique.filter(texts.is_not_null()), texts.drop_nulls()
        is_noise = are_noise(
            texts,
            denials=self.denials,
            meta_questions=self.meta_questions,
            boilerplate=self.boilerplate,
            complaints=self.complaints,
        )
        noise = set(unique.filter(is_noise).to_list())
        return kept_rows(frame, np.array([one not in noise for one in ids], np.bool_))

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, that its text is noise."""
        kept = self(frame, batch).select("query_id", "document_id")
        dropped = frame.join(kept, on=["query_id", "document_id"], how="anti", maintain_order="left")
        return told_of(dropped, pl.lit("its text tells nothing: a denial, a question about memory, or a greeting"))


@dataclass(frozen=True, slots=True)
class Hops:
    """Add the authored documents that the rows of a query point to, each with eta times the score of the best of those
    rows, where that reaches `theta_hop`; best first.

    A target that is a row already stays as it is. What is added points nowhere: one hop, whatever the graph is like.
    A score counts within [0, 1], so that what a hop finds scores less than 1, and less than the row that points to it.

    Source: libravdb memory 1.3.5, mathematical reference, section 7.7, which calls eta lambda; 1.4.4.
    """

    eta: float = 0.5
    theta_hop: float = 0.15
    contract = Contract(follows=("authored",))

    def __post_init__(self) -> None:
        check_range(self, "eta", gt=0, lt=1)
        check_range(self, "theta_hop", ge=0, le=1)

    def expand(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        points = batch.documents["hop_targets"].list.len() > 0
        if not points.any():
            return best_first(frame)
        pointing = batch.documents["document_id", "hop_targets"].filter(points)
        authored = batch.documents.select("document_id").filter(batch.documents["kind"] == "authored")
        score = self.eta * pl.col("score").fill_nan(None).fill_null(0.0).clip(0.0, 1.0)
        found = (
            frame.select("query_id", "asked_at", "document_id", score=score)
            .join(pointing, on="document_id", how="inner", maintain_order="left")
            .drop("document_id")
            .explode("hop_targets")
            .rename({"hop_targets": "document_id"})
            .join(authored, on="document_id", how="semi", maintain_order="left")
            .join(frame, on=_KEYS, how="anti", maintain_order="left")
            .group_by(_KEYS, maintain_order=True)
            .agg(pl.col("asked_at").first(), pl.col("score").max())
            .filter(pl.col("score") >= self.theta_hop)
        )
        if found.is_empty():
            return best_first(frame)
        return best_first(with_rows(frame, describe(found, batch), batch.queries["query_id"]))


@dataclass(frozen=True, slots=True)
class Related:
    """Look the whole text of each row up among the documents of its scope. The first that are no rows of the query
    themselves, and that the stages let through, stand in the row's column `related`, best first; order and scores stay.

    A lookup that fails is logged and counted, and leaves its row with none.

    Source: memory-lancedb-pro 1.1.0-beta.11, neighborEnrichment.
    """

    stages: Mapping[str, Stage | None]
    """By name what a found document passes before it counts, and what gives it its score; None is left out."""
    per_result: int = 0
    """Documents beside a row at most; 0 = none is looked for."""
    pool_size: int = 20
    """Documents that a lookup finds at most; fewer where few are wanted."""
    containment: bool = True
    """Where no word is found, look for the whole text inside the others."""
    contract = Contract(reads=())

    def __post_init__(self) -> None:
        check_range(self, "per_result", ge=0, le=5, is_whole=True)
        check_range(self, "pool_size", ge=1)

    def is_idle(self, before: Sequence[Stage | Expansion], behind: Sequence[Stage | Expansion]) -> bool:
        return self.per_result == 0

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        rows = best_first(frame)
        known = documents_of(batch, rows["document_id"], ["document_id", "text", "scope"])
        in_scope = {scope: _in_scope(batch, scope) for scope in known["scope"].unique()}
        ids = rows.group_by("query_id").agg("document_id")
        shown = {query_id: frozenset(ids) for query_id, ids in ids.iter_rows()}
        place = {query_id: at for at, query_id in enumerate(batch.queries["query_id"])}
        related = [
            self._beside(text, replace(in_scope[scope], queries=batch.queries[place[query_id]]), shown[query_id])
            for query_id, text, scope in zip(rows["query_id"], known["text"], known["scope"], strict=True)
        ]
        return beside(rows, [pl.Series("related", related, RELATED)])

    def _beside(self, text: str, batch: Batch, shown: Collection[str]) -> list[dict[str, Any]]:
        """What is related to a text, of what a batch sees, as `RELATED` holds it."""
        asked = replace(batch, queries=batch.queries.with_columns(text=pl.lit(text)))
        wanted = len(shown) + self.per_result + max(10, 4 * self.per_result)
        source = Lexical(min(wanted, self.pool_size), containment=self.containment)
        found, _ = tried("related", lambda: source.candidates(asked), asked, "an answer stands without")
        if found is None:
            return []
        rows = describe(found, asked)
        for name, stage in self.stages.items():
            rows = rows if stage is None else passed(name, stage, rows, asked)
        others = best_first(rows.filter(~pl.col("document_id").is_in(list(shown))))
        return others.head(self.per_result).select("document_id", "score").to_dicts()


def _in_scope(batch: Batch, scope: str) -> Batch:
    documents = batch.documents.filter(scope=scope)
    is_all = len(documents) == len(batch.documents)
    return batch if is_all else replace(batch, documents=documents, allowed=tuple(documents["document_id"]))


_GATHERED_FLOATS = 2_000_000
"""How many components of vectors are laid out at once: 8 MB, which caches hold."""
_Said = frozenset[tuple[str, str]]
"""Pairs of neighbouring words; the first word stands beside the role that speaks."""
_NOTHING: _Said = frozenset()
_SAID_AT_HAND = 1 << 13
"""Texts whose pairs stay at hand: the documents of a conversation come up again in query after query."""
_READ_AT_ONCE = 128
"""Documents: about twice as many as a query is shown."""
_REPEATING = KeptBeside[pl.DataFrame, dict[float, set[str]]](lambda documents: {}, 64)
"""Of documents, by the least share, those that are like another of them."""


@dataclass(frozen=True, slots=True)
class Crowding:
    """score - penalty * n * the standard deviation of the query's scores, where n documents of one place are better.

    A place is a turn, whose passages are the documents that one message or step was cut into; or a session, so that
    what was told on several occasions is found on more of them. Of equal ones the earlier row is the better. Nothing
    changes where every document is a turn of its own, or stands in no session; nor does the order within one place.

    Source: ours; after the diminishing returns of maximal marginal relevance (Carbonell and Goldstein 1998).
    """

    penalty: float = 1.0
    """In standard deviations; 0: none."""
    within: Literal["turn", "session"] = "turn"
    """The place whose documents count together."""
    contract = Contract(reads=("conversation_id", "kind", "seq", "session_id"))

    def __post_init__(self) -> None:
        check_range(self, "penalty", ge=0)
        check_choice(self, within=Literal["turn", "session"])

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what stands beside something better, by how much its score falls."""
        cost = (frame["score"] - self(frame, batch)["score"]).round(3)
        told = pl.format(f"loses {{}} to better documents of the same {self.within}", "cost")
        return told_of(frame.with_columns(cost=cost).filter(pl.col("cost") > 0), told)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return beside(frame, [pl.Series("score", self.scores(frame), nan_to_null=True)])

    def scores(self, frame: pl.DataFrame) -> Numbers:
        scores, queries = numbers_of(frame["score"]), query_numbers(frame)
        ranks = ranks_within(self._places(frame, queries), scores)
        return scores - self.penalty * ranks * _spreads(scores, queries)

    def _places(self, frame: pl.DataFrame, queries: Places) -> Places:
        """The number of each row's place, of no other query's."""
        numbered = documents_among(frame)
        place_of = turn_of if self.within == "turn" else session_of
        if numbered is None:
            return place_of(frame, "query_id").to_numpy()
        places, of_document = np.unique(place_of(numbered[0]).to_numpy(), return_inverse=True)
        return len(places) * queries + of_document[numbered[1]]


def _spreads(scores: Numbers, queries: Places) -> Numbers:
    """The standard deviation of the finite scores of each row's query; 0 of none."""
    is_finite = np.isfinite(scores)
    count = np.maximum(of_queries(np.add, is_finite.astype(np.float64), queries), 1.0)
    mean = of_queries(np.add, np.where(is_finite, scores, 0.0), queries) / count
    off = np.where(is_finite, scores - mean, 0.0)
    return np.sqrt(of_queries(np.add, off * off, queries) / count)


@dataclass(frozen=True, slots=True)
class Diversity:
    """Walk down the ranks; a document nearer than the threshold to one already taken goes behind all that are taken.

    Near is a cosine strictly above the threshold. Both groups keep their order, nothing is dropped and no score
    changes: the column `deferred` says who steps back, and `best_first` heeds it. A document without a vector is near
    to none.

    Source: memory-lancedb-pro, applyMMRDiversity.
    """

    similarity_threshold: float = 0.85

    contract: ClassVar[Contract] = Contract(compares_vectors=True)

    def __post_init__(self) -> None:
        check_range(self, "similarity_threshold", ge=-1, le=1)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        ordered = best_first(frame)
        return best_first(beside(ordered, [pl.Series("deferred", self._deferred(ordered, batch))]))

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what steps back, the taken document that it is nearest to, and how near."""
        ordered = best_first(frame)
        is_deferred, rows = self._deferred(ordered, batch), []
        vectors, vector_of_row = vectors_of(batch, ordered["document_id"])
        queries, ids = ordered["query_id"].to_list(), ordered["document_id"].to_list()
        for row in np.flatnonzero(is_deferred):
            better = [other for other in range(row) if queries[other] == queries[row] and not is_deferred[other]]
            cosines = vectors[vector_of_row[better]] @ vectors[vector_of_row[row]]
            nearest = int(np.argmax(cosines))
            told = f"cosine {cosines[nearest]:.3f} to a better document, above {self.similarity_threshold:g}"
            rows.append((queries[row], ids[row], told, ids[better[nearest]]))
        return pl.DataFrame(rows, schema=REASONS_SCHEMA, orient="row")

    def _deferred(self, ordered: pl.DataFrame, batch: Batch) -> npt.NDArray[np.bool_]:
        is_deferred = np.zeros(len(ordered), dtype=np.bool_)
        if not len(ordered) or places(ordered).max() == 0:
            return is_deferred
        vectors, vector_of_row = vectors_of(batch, ordered["document_id"])
        # A query's rows are compared in a matrix of their own size: padded, they could round in another way.
        for rows in rows_by_size(ordered, _GATHERED_FLOATS // max(1, vectors.shape[1])):
            is_deferred[rows] = _stepping_back(vectors[vector_of_row[rows]], self.similarity_threshold)
        return is_deferred


def _stepping_back(vectors: Vectors, threshold: float) -> npt.NDArray[np.bool_]:
    """Which rows step back.

    Args:
        vectors: shape (queries, rows, dim), rows in rank order.
        threshold: of the cosine.
    Returns:
        Shape (queries, rows).
    """
    # Copied, for BLAS sends small matrices that share their memory a way that takes ten times as long.
    cosines = np.matmul(vectors, np.ascontiguousarray(vectors.transpose(0, 2, 1)))
    is_near = np.tril(cosines > threshold, -1)
    has_vector = np.diagonal(cosines, axis1=1, axis2=2) > 0
    if not has_vector.all():
        is_near &= has_vector[:, :, np.newaxis] & has_vector[:, np.newaxis]
    later, earlier = _pairs(is_near)
    is_deferred = np.zeros(has_vector.size, dtype=np.bool_)
    # In rounds, each for all ranks at once: near duplicates are few, and chains of them short.
    while len(later):
        is_open = np.zeros(has_vector.size, dtype=np.bool_)
        is_open[later] = True
        is_deferred[later[~is_open[earlier]]] = True
        undecided = ~(is_deferred[later] | is_deferred[earlier])
        later, earlier = later[undecided], earlier[undecided]
    return is_deferred.reshape(has_vector.shape)


def _pairs(is_near: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Of every near pair the later row and the earlier one, counted over all queries."""
    size = is_near.shape[1]
    later, column = np.divmod(np.flatnonzero(is_near), size)
    return later, later - later % size + column


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """Walk down the ranks of each query until `n` documents that differ are found. One that says nothing which a better
    one does not say too, and is `least_shared` of that, is its near duplicate: it goes behind all others (`deferred`),
    and the better one's column `stands_for` names it.

    It says nothing else where the same role speaks and each pair of neighbouring words, signs and all, is in the better
    one: a denial, another number, another speaker or another order is something new.

    Source: ours; the resemblance and containment of Broder (1997), On the resemblance and containment of documents.
    """

    least_shared: float = 0.7
    """Of the better one's pairs of words."""
    n: int = 40
    """As many documents as the ranking lets through."""
    contract = Contract(reads=())

    def __post_init__(self) -> None:
        check_range(self, "least_shared", gt=0, le=1)
        check_range(self, "n", ge=1)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        ordered = best_first(frame)
        likes = list(self._likes(ordered, batch))
        deferred = (
            ordered["deferred"]
            if "deferred" in ordered.columns
            else pl.Series("deferred", np.zeros(len(ordered), np.bool_))
        )
        if not likes:
            none = pl.Series("stands_for", [[]], pl.List(pl.String)).new_from_index(0, len(ordered))
            return beside(ordered, [deferred, none])
        ids = ordered["document_id"].to_list()
        stands_for: list[list[str]] = [[] for _ in ids]
        is_like = np.zeros(len(ids), dtype=np.bool_)
        for row, better in likes:
            stands_for[better].append(ids[row])
            is_like[row] = True
        named = pl.Series("stands_for", stands_for, pl.List(pl.String))
        return beside(ordered, [(deferred | pl.Series(is_like)).alias("deferred"), named])

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of each near duplicate, what stands for it."""
        better = self(frame, batch).select("query_id", pl.col("document_id").alias("like_id"), "stands_for")
        told = pl.lit("says nothing that a better document does not say")
        return better.explode("stands_for").drop_nulls("stands_for").select(
            "query_id", pl.col("stands_for").alias("document_id"), told.alias("reason"), "like_id"
        )  # fmt: skip

    @property
    def first_kept(self) -> int:
        """How many rows of each query it lets stand before it looks no further down their order."""
        return self.n

    def _likes(self, ordered: pl.DataFrame, batch: Batch) -> Iterator[tuple[int, int]]:
        """Each near duplicate and the better one that it is like, as rows."""
        ids, first = ordered["document_id"], 0
        alike = self._alike(batch, ids.filter(places(ordered) < 2 * self.n).unique())
        for length, _ in query_runs(ordered) if alike else ():
            of_query = ids[first : first + length]
            if not alike.isdisjoint(of_query.head(2 * self.n).to_list()):
                yield from ((first + row, first + better) for row, better in self._found(_read(batch, of_query)))
            first += length

    def _alike(self, batch: Batch, ids: pl.Series) -> set[str]:
        """Those of some documents that are like another of them, whichever is the better: without one, the first `n`
        of a query differ, and nobody need walk down its ranks.

        Where they are most of those that a batch sees, it is told of all, once for all rankings of these.
        """
        if 2 * len(ids) < len(batch.documents):
            return self._repeating(batch, ids)
        known = _REPEATING(batch.documents)
        if self.least_shared not in known:
            known[self.least_shared] = self._repeating(batch, batch.documents["document_id"])
        return known[self.least_shared]

    def _repeating(self, batch: Batch, ids: pl.Series) -> set[str]:
        said = list(_read(batch, ids))
        times = Counter(chain.from_iterable(said))
        told = [
            pair
            for pair in zip(ids.to_list(), said, strict=True)
            if min(map(times.__getitem__, pair[1]), default=1) > 1
        ]
        # Each is like itself.
        return {name for name, one in told if any(islice(filter(partial(self._is_like, one), said), 1, None))}

    def _found(self, said_by: Iterable[_Said]) -> Iterator[tuple[int, int]]:
        """Each near duplicate and the better one that it is like, as numbers of documents, which come best first."""
        kept: list[tuple[int, _Said]] = []
        for row, said in enumerate(said_by):
            if len(kept) == self.n:
                return
            better = next((place for place, other in kept if self._is_like(said, other)), None)
            if better is None:
                kept.append((row, said))
            else:
                yield row, better

    def _is_like(self, said: _Said, better: _Said) -> bool:
        return len(said) >= max(1.0, self.least_shared * len(better)) and said <= better


def _read(batch: Batch, ids: pl.Series) -> Iterator[_Said]:
    """What each document says, read as far as it is asked for: few are looked at of many."""
    for part in ids.to_frame().iter_slices(_READ_AT_ONCE):
        seen = rows_of(batch.documents, part.to_series(), ["role", "text"])
        for role, text in zip(seen["role"].to_list(), seen["text"].to_list(), strict=True):
            yield _NOTHING if text is None else _said(role or "", text)


@lru_cache(_SAID_AT_HAND)
def _said(role: str, text: str) -> _Said:
    return frozenset(pairwise([role, *text.split()]))
