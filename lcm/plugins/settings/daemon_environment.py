"""Settings of the plugin as the variables of its daemon, which reads no plugin configuration itself.

Source: libravdb memory 1.4.4, whose own mapping nothing calls since the plugin only connects to a daemon.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from lcm.javascript import stringify

_TEXTS = {
    "dbPath": "DB_PATH",
    "embeddingRuntimePath": "ONNX_RUNTIME",
    "embeddingBackend": "EMBEDDING_BACKEND",
    "embeddingProfile": "EMBEDDING_PROFILE",
    "fallbackProfile": "FALLBACK_PROFILE",
    "embeddingModelPath": "EMBEDDING_MODEL",
    "embeddingTokenizerPath": "EMBEDDING_TOKENIZER",
    "summarizerBackend": "SUMMARIZER_BACKEND",
    "summarizerProfile": "SUMMARIZER_PROFILE",
    "summarizerRuntimePath": "SUMMARIZER_RUNTIME",
    "summarizerModelPath": "SUMMARIZER_MODEL_PATH",
    "summarizerTokenizerPath": "SUMMARIZER_TOKENIZER",
    "compactModel": "SUMMARIZER_MODEL",
    "summarizerModel": "SUMMARIZER_MODEL",  # wins over the older name
    "ollamaUrl": "SUMMARIZER_ENDPOINT",
    "summarizerEndpoint": "SUMMARIZER_ENDPOINT",  # likewise
}
_NUMBERS: dict[str, tuple[str, Callable[[float], bool]]] = {
    "embeddingDimensions": ("EMBEDDING_DIMENSIONS", lambda number: number > 0),
    "gatingTechNorm": ("GATING_TECH_NORM", lambda number: number > 0),
    "ingestionGateThreshold": ("GATING_THRESHOLD", lambda number: number >= 0),
    "gatingCentroidK": ("GATING_CENTROID_K", lambda number: number > 0),
    "lifecycleJournalMaxEntries": ("LIFECYCLE_JOURNAL_MAX_ENTRIES", lambda number: number > 0),
}
_WEIGHTS = ("w1c", "w2c", "w3c", "w1t", "w2t", "w3t")


def daemon_environment(config: Mapping[str, Any]) -> dict[str, str]:
    """The variables, with their prefix `LIBRAVDB_`; what is blank, or a number that the daemon would not take, is left
    out."""
    found: dict[str, str] = {}
    for key, name in _TEXTS.items():
        if isinstance(value := config.get(key), str) and value.strip():
            found[name] = value
    if isinstance(is_normal := config.get("embeddingNormalize"), bool):
        found["EMBEDDING_NORMALIZE"] = "true" if is_normal else "false"
    for key, (name, is_usable) in _NUMBERS.items():
        if _is_number(value := config.get(key)) and is_usable(value):
            found[name] = stringify(value)
    if isinstance(weights := config.get("gatingWeights"), Mapping):
        for key in _WEIGHTS:
            if _is_number(value := weights.get(key)):
                found[f"GATING_{key.upper()}"] = stringify(value)
    return {f"LIBRAVDB_{name}": value for name, value in found.items()}


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
