"""An embedder whose rows are kept on disk: for components that embed words and queries on the side."""

from lcm.files import cache_dir
from lcm.protocols.models import Embedder
from lcm.retrieval.embedder.cache import CachedEmbedder


def kept(embedder: Embedder) -> CachedEmbedder:
    """`embedder`, looked up first in the folder where evaluations keep their embeddings; the rows are the same."""
    return CachedEmbedder(embedder, cache_dir() / "embeddings")
