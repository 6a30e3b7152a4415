"""The lower widths of an index, kept in step with the full width or known to be dirty."""

import importlib.metadata
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lcm.errors import StoreError
from lcm.protocols.models import Vectors
from lcm.retrieval.vector_index.exact import ExactIndex
from lcm.retrieval.vector_index.row_order import RowOrder
from lcm.retrieval.vector_index.tier_cache import GraphSettings, TierCache
from lcm.retrieval.vector_index.tier_files import read_tier, source_digest, tier_path, write_tier
from lcm.retrieval.vector_index.tier_rotation import Rotation, RotationRule, learn

_log = logging.getLogger(__name__)


class TierStack:
    """Index tiers, narrowest first, and which document each of their rows belongs to.

    Nothing that fails here reaches the caller: the tier is dirty then, a warning says why, and `incidents` counts it.
    """

    def __init__(
        self,
        tiers: Sequence[TierCache],
        rule: RotationRule | None,
        graph: GraphSettings,
        settings: Mapping[str, Any],
        incidents: Counter[str],
    ) -> None:
        """
        Args:
            tiers: still empty.
            rule: when to learn a rotation; None = vectors are cut as they are.
            graph: settings of the graphs that files hold.
            settings: what the rows and the graph of a tier depend on, besides its width.
            incidents: counts what failed.
        """
        self.tiers = tiers
        self.order = RowOrder()
        self._rule = rule
        self._graph = graph
        self._settings = settings
        self._incidents = incidents

    def is_ready(self, tier: TierCache) -> bool:
        """Whether a tier can answer: it is not dirty, and has the rotation that it needs."""
        return tier.dirt is None and (self._rule is None or tier.rotation is not None)

    def add(self, ids: Sequence[str], rows: Vectors, full: ExactIndex) -> None:
        """Take in gridded rows that the full width has taken in; derive dirty tiers again."""
        self.flush()
        self.order.add(ids)
        total = self.order.count + len(ids)
        stale = [
            tier
            for tier in self.tiers
            if tier.dirt is not None or (self._rule is not None and self._rule.is_due(tier.rotation, total))
        ]
        for tier in self.tiers:
            if tier not in stale and self.is_ready(tier):
                self._try(tier, partial(tier.add, rows))
        self._derive(stale, full)

    def flush(self, derived: Collection[TierCache] = ()) -> None:
        """Follow what was removed, and bring the rows of one document together: once for many changes.

        Args:
            derived: tiers that are about to be derived anew: they lack the rows that came last.
        """
        order = self.order.flush()
        if order is not None:
            for tier in self.tiers:
                if self.is_ready(tier) and tier not in derived:
                    self._try(tier, partial(tier.keep, order))

    def write(self, path: Path, full: ExactIndex) -> None:
        """Write every tier, a dirty one as nothing but the mark that it is."""
        self.flush()
        source = source_digest(*full.contents())
        for tier in self.tiers:
            self._write(path, tier, source)

    def read(self, path: Path, full: ExactIndex) -> None:
        """Fill the tiers, still empty, from their files; derive the others from the full width, and write those."""
        ids, vectors = full.contents()
        source = source_digest(ids, vectors)
        self.order = RowOrder(ids)
        lost = []
        for tier in self.tiers:
            try:
                read_tier(path, tier, self._file_settings(tier), source, self._graph)
            except StoreError as err:
                if self._rule is None or self._rule.is_due(None, len(vectors)):
                    _log.warning("%s: derived from the full width", err)
                    self._incidents["index_tier_file"] += 1
                    tier.dirt = str(err)
                    lost.append(tier)
        self._derive(lost, full)
        for tier in lost:
            self._write(path, tier, source)

    def _derive(self, tiers: Sequence[TierCache], full: ExactIndex) -> None:
        if not tiers:
            return
        self.flush(tiers)
        _, vectors = full.contents()
        learnt: list[Rotation] = []

        def derive(tier: TierCache) -> None:
            if self._rule is not None and self._rule.is_due(tier.rotation, len(vectors)):
                if not learnt:
                    learnt.append(learn(vectors))
                tier.rotation = learnt[0].first(tier.width)
            if self._rule is None or tier.rotation is not None:
                tier.rebuild(vectors)
            tier.dirt = None

        for tier in tiers:
            self._try(tier, partial(derive, tier))

    def _try(self, tier: TierCache, change: Callable[[], None]) -> None:
        try:
            change()
        except (RuntimeError, MemoryError, np.linalg.LinAlgError) as err:
            _log.warning("the index tier of width %d could not follow (%s): it waits to be derived", tier.width, err)
            self._incidents["index_tier_insert"] += 1
            tier.dirt = str(err) or type(err).__name__

    def _write(self, path: Path, tier: TierCache, source: str) -> None:
        try:
            if tier.dirt is None and not self.is_ready(tier):
                tier_path(path, tier.width).unlink(missing_ok=True)
            else:
                write_tier(path, tier, self._file_settings(tier), source)
        except OSError as err:
            _log.warning("the index tier of width %d was not written (%s): it can be derived", tier.width, err)
            self._incidents["index_tier_file"] += 1

    def _file_settings(self, tier: TierCache) -> dict[str, Any]:
        return {**self._settings, "width": tier.width, "hnswlib": importlib.metadata.version("hnswlib")}
