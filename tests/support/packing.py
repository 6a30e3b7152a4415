"""What is packed as people's files are."""

import gzip
from collections.abc import Callable

import pyarrow as pa  # type: ignore[import-untyped]

PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda content: gzip.compress(content, mtime=0),
    "zst": lambda content: pa.Codec("zstd").compress(content, asbytes=True),
}
"""By the ending of the name."""
