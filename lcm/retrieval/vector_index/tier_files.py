"""The files of lower index tiers: each beside the full width's, and bound to its content.

A tier that is dirty when it is saved leaves a file that says so. A file that is missing, damaged, of other settings or
of another content is no loss: the tier is derived again.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lcm.errors import StoreError
from lcm.protocols.models import Vectors
from lcm.retrieval.saved_file import Blob, read_index, write_index
from lcm.retrieval.vector_index.row_graph import RowGraph
from lcm.retrieval.vector_index.row_vectors import pack, unpack
from lcm.retrieval.vector_index.tier_cache import GraphSettings, TierCache
from lcm.retrieval.vector_index.tier_rotation import Rotation


def tier_path(path: Path, width: int) -> Path:
    """Where the tier of a width is kept, for an index that is kept at `path`."""
    return path.with_name(f"{path.name}.{width}")


def source_digest(ids: Sequence[str], vectors: Vectors) -> str:
    """What the full width holds."""
    digest = hashlib.sha256(json.dumps(list(ids)).encode())
    digest.update(pack(vectors))
    return digest.hexdigest()


def write_tier(path: Path, tier: TierCache, settings: Mapping[str, Any], source: str) -> None:
    content: dict[str, Any] = {"source": source, "dirt": tier.dirt, "learnt_from": 0}
    blobs: dict[str, Blob] = {}
    if tier.dirt is None:
        blobs = {
            "rows": pack(tier.rows),
            "graph": tier.graph.to_bytes(),
            "graph_rows": tier.graph.rows_bytes(),
        }
        if tier.rotation is not None:
            content["learnt_from"] = tier.rotation.learnt_from
            blobs["axes"] = tier.rotation.axes.astype("<f8").tobytes()
    write_index(tier_path(path, tier.width), settings, content, blobs)


def read_tier(path: Path, tier: TierCache, settings: Mapping[str, Any], source: str, graph: GraphSettings) -> None:
    """Fill a tier from its file.

    Raises:
        StoreError: if the tier must be derived again, with the reason.
    """
    file = tier_path(path, tier.width)
    content, blobs = read_index(file, settings)
    if content["dirt"] is not None:
        raise StoreError(f"the index tier {str(file)!r} was left dirty ({content['dirt']})")
    if content["source"] != source:
        raise StoreError(f"the index tier {str(file)!r} was derived from other vectors")
    rotation = None
    if "axes" in blobs:
        axes = np.frombuffer(blobs["axes"], "<f8").astype(np.float64).reshape(tier.width, -1)
        rotation = Rotation(axes, content["learnt_from"])
    restored = RowGraph.from_bytes(graph, tier.width, blobs["graph"], blobs["graph_rows"])
    tier.restore(unpack(blobs["rows"], tier.width).copy(), restored, rotation)
