"""What rankings begin with, kept: candidate pools on disk, and the rows behind the steps that rankings share."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import takewhile
from typing import Any

import polars as pl

from eval.cache.stage_cache import Fingerprint, FrameCache, Unidentified, digest
from lcm.protocols.contract import Contract, contract_of
from lcm.protocols.retrieval import DOCUMENT_NUMBER, Batch, Expansion, Ranker, Source, Stage
from lcm.records.document import SCOPE_CLASSES
from lcm.retrieval.frames import KeptBeside
from lcm.retrieval.ranking.pipeline import passed
from lcm.retrieval.source.indexes import describe


@dataclass(frozen=True, slots=True)
class CachedSource:
    """A source whose candidates are found again where the same was asked of the same memory."""

    source: Source
    frames: FrameCache
    memory_key: str
    """The digest of all that the memory has ingested."""

    @property
    def contract(self) -> Contract:
        return contract_of(self.source)

    def candidates(self, batch: Batch) -> pl.DataFrame:
        key = self._key(batch)
        return self.source.candidates(batch) if key is None else self._pool(key, batch)

    def described(self, batch: Batch) -> pl.DataFrame:
        """The candidates with their documents' columns beside them, as all points of a sweep begin."""
        key = self._key(batch)
        if key is None:
            return describe(self.source.candidates(batch), batch)
        candidates = self._pool(key, batch)
        return self.frames.at_hand("described", key, lambda: _numbered(describe(candidates, batch)))

    def begun(
        self, steps: Sequence[tuple[str, Stage | Expansion]], batch: Batch
    ) -> tuple[int, pl.DataFrame, Counter[str]]:
        """The rows behind the steps that this ranking has in common with the one before it, over the same candidates:
        the points of a sweep, and the trials of a study, mostly differ in late steps alone.

        They are kept from the second such ranking on, so that one by itself keeps nothing.
        """
        key = self._key(batch)
        keys = [] if key is None else _keys_of_steps(key, steps)
        if not keys or self.frames.cache is None:
            return 0, self.described(batch), Counter()
        cache = self.frames.cache
        before: list[str] = cache.in_memory("steps before", keys[0], lambda: ([], 0))
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, keys, strict=False))) - 1
        before[:] = keys
        done, kept = next(
            ((n, kept) for n in range(shared, 0, -1) if (kept := cache.held("steps", keys[n])) is not None), (0, None)
        )
        frame, incidents = (self.described(batch), Counter[str]()) if kept is None else kept
        if done >= shared:
            return done, frame, incidents

        def made() -> tuple[tuple[pl.DataFrame, Counter[str]], int]:
            found, apart = frame, replace(batch, incidents=Counter())
            for name, step in steps[done:shared]:
                found = passed(name, step, found, apart)
            return (found, incidents + apart.incidents), int(found.estimated_size())

        return shared, *cache.in_memory("steps", keys[shared], made)

    def _key(self, batch: Batch) -> str | None:
        """The digest of all that the candidates depend on; None = something in the source has no identity."""
        identity = Fingerprint()
        try:
            settings = identity.of(self.source)
        except Unidentified:
            return None
        asked = [_digest_of(batch.queries), batch.scopes, batch.is_in_session, batch.embedding_error is None]
        return digest([self.memory_key, settings, asked, _digest_of_ids(batch.documents)], identity.modules)

    def _pool(self, key: str, batch: Batch) -> pl.DataFrame:
        def made() -> tuple[pl.DataFrame, Counter[str]]:
            before = Counter(batch.incidents)
            frame = self.source.candidates(batch)
            incidents = batch.incidents - before
            batch.incidents.subtract(incidents)
            return frame, incidents

        frame, incidents = self.frames.frame("pools", key, made, in_memory=True)
        batch.incidents.update(incidents)
        return frame


_digest_of = KeptBeside[pl.DataFrame, Any](lambda frame: Fingerprint().of(frame), 64)
_digest_of_ids = KeptBeside[pl.DataFrame, Any](
    lambda frame: Fingerprint().of(frame.select("document_id").hash_rows(seed=0).to_numpy()), 64
)


def _numbered(described: pl.DataFrame) -> pl.DataFrame:
    """Described candidates with `DOCUMENT_NUMBER`."""
    number = described["document_id"].rank("dense") * len(SCOPE_CLASSES) + described["scope_class"].to_physical()
    return described.hstack([(number.rank("dense") - 1).alias(DOCUMENT_NUMBER)])


def with_cached_pools(ranking: Ranker, frames: FrameCache, memory_key: str) -> Ranker:
    """The same ranking, every source in it, however deep, looking into the cache first."""
    changed: Ranker = _rebuilt(ranking, lambda source: CachedSource(source, frames, memory_key))
    return changed


def _keys_of_steps(key: str, steps: Sequence[tuple[str, Stage | Expansion]]) -> list[str]:
    """The digests of what stands before the first step, and behind each, up to one that has no identity."""
    keys, told = [digest([key], ())], list[Any]()
    for name, step in steps:
        try:
            told.append([name, Fingerprint().of(step)])
        except Unidentified:
            break
        keys.append(digest([key, told], ()))
    return keys


def _rebuilt(part: Any, wrapped: Callable[[Source], Source]) -> Any:
    if not is_dataclass(part) or isinstance(part, type):
        return part
    changes: dict[str, Any] = {}
    for one in fields(part):
        value = getattr(part, one.name)
        if one.name == "source" and callable(getattr(value, "candidates", None)):
            changes[one.name] = wrapped(value)
        elif is_dataclass(value) and not isinstance(value, type) and _holds_source(value):
            changes[one.name] = _rebuilt(value, wrapped)
    return replace(part, **changes) if changes else part


def _holds_source(part: Any) -> bool:
    return any(one.name == "source" for one in fields(part))
