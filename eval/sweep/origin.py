"""Origin: what the numbers of a point come from, and so whether they need to be found again."""

import hashlib
import importlib.util
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.cache.fingerprint import Unidentified, content_of, libraries, source_digest
from eval.run import config_hash
from lcm.consent import is_trusted

_log = logging.getLogger(__name__)
_OURS = ("lcm", "eval")
_ALWAYS = frozenset({"eval.experiment.experiment", "eval.run"})
_BESIDE = ("cache", "executor", "report", "stages", "tracking")
"""What changes no number. Latencies do depend on how many queries are timed."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a sweep point's numbers come from; two points of the same origin have the same numbers."""

    config_hash: str
    """Of all settings but those that change no number."""
    dataset_digest: str
    code: str
    """Digest of the source of every component that the configuration names, and of the libraries under it."""
    files: str
    """Digest of every file that a setting names by itself, by its folder or by a pattern; but for the dataset's, whose
    own digest tells more."""


def origin_of(resolved: Mapping[str, Any], dataset_digest: str, told: str = "") -> Origin:
    """Args:
    resolved: the configuration, every interpolation worked out.
    told: what an external memory says of itself, name and version: it has no source to look at.
    """
    settings = _that_count(resolved)
    modules = frozenset(target.rpartition(".")[0] for target in _targets(settings))
    ours = frozenset(module for module in modules if module.partition(".")[0] in _OURS)
    sources = [source_digest(ours | _ALWAYS), str(libraries()), *(_source(one) for one in sorted(modules - ours))]
    code = hashlib.sha256("\x00".join([*sources, *filter(None, [told])]).encode()).hexdigest()[:16]
    named = {text: _content(text) for key in settings if key != "dataset" for text in _texts(settings[key])}
    files = config_hash({text: content for text, content in named.items() if content})
    return Origin(config_hash(settings), dataset_digest, code, files)


def point_name(resolved: Mapping[str, Any]) -> str:
    """What the folder of a point is called: 12 hex digits of its settings, whatever stands beside it in a grid."""
    return config_hash(_that_count(resolved))[:12]


def _that_count(resolved: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in resolved.items() if key not in _BESIDE}


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        for inner in node.values():
            yield from _texts(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _texts(inner)


def _targets(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if "_target_" in node:
            yield str(node["_target_"])
        for inner in node.values():
            yield from _targets(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _targets(inner)


def _content(text: str) -> list[str]:
    """What a setting names, as far as that is few enough files to be meant by it."""
    try:
        return content_of(text)
    except Unidentified as error:
        _log.warning("setting %r: %s; what changes in them is not seen", text, error)
        return []


def _source(module: str) -> str:
    """The source of a module from outside, by itself; of one that is trusted, for looking for it runs its package."""
    if not is_trusted(f"{module}."):
        return ""
    try:
        found = importlib.util.find_spec(module)
    except ImportError:  # of a target that is no module's
        return ""
    return "" if found is None or not found.has_location else Path(str(found.origin)).read_text(errors="replace")
