"""Knobs: every leaf of every YAML, with the configuration around it and another value for it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from pipelines.config import conf_folder
from tests.support.knobs.changed import CHANGED
from tests.support.knobs.families import FURTHER_VECTORS
from tests.support.knobs.frames import FRAMES

SMALL: Mapping[str, Any] = {
    "language_model": "none",
    "annotation": "none",
    "extraction": "verbatim",
    "admission": "none",
    "deduplication": "none",
    "embedder": "hashing",
    "source": "hybrid",
    "fusion": "weighted_sum",
    "reranker": "none",
    "decay": "none",
    "recovery": "none",
    "ranking": "hybrid",
    "reinforcement": "none",
    "session": "default",
    "summarizer": "truncate",
    "guidance": "none",
    "summary_expansion": "none",
    "compaction": "none",
    "scheduling": "synchronous",
    "summary_documents": "none",
    "authored": "none",
    "assembly": "lossless",
    "arms": "none",
    "executor": "none",
    "tracking": "none",
    "measures": "retrieval",
    "cache": False,
}
"""What stands around every knob, so that nothing slow runs and no default is relied on."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One leaf of one YAML."""

    place: str
    """`group/choice`, or `config` for the root's own keys."""
    path: str
    value: Any

    def __str__(self) -> str:
        return f"{self.place}:{self.path}"

    @property
    def group(self) -> str:
        return self.place.partition("/")[0]

    @property
    def key(self) -> str:
        """What to write on the command line."""
        return self.path if self.place == "config" else f"{self.group}.{self.path}"

    def frame(self) -> dict[str, Any]:
        """The overrides that stand around this knob, which is itself not among them."""
        choice = {} if self.place == "config" else {self.group: self.place.partition("/")[2]}
        framed = {**SMALL, **choice} | FRAMES.get(self.place, {}) | FRAMES.get(str(self), {})
        return {key: value for key, value in framed.items() if key != self.key}

    def another(self, here: Path) -> Any:
        """Another value than the YAML's."""
        if str(self) in CHANGED:
            value = CHANGED[str(self)]
            return value(here) if callable(value) else value
        match self.value:
            case bool():
                return not self.value
            case int() | float():
                return type(self.value)(self.value / 2) or self.value + 1
            case list() if self.path.endswith("spared_kinds"):
                return ["message"]
            case list() if len(self.value) > 1:
                return self.value[:-1]
            case None if self.path.endswith("seconds_a_turn"):
                return 0.0
            case None if self.path.endswith("expansion"):
                return {"_target_": "lcm.retrieval.source.indexes.QueryExpansion"}
            case None if self.path.endswith("further_vectors"):
                return FURTHER_VECTORS
            case str() if "_prefix" in self.path or self.path == "experiment":
                return f"another {self.value}"
        raise AssertionError(f"CHANGED must name another value for {self}, now {self.value!r}")


def knobs() -> Iterator[Knob]:
    """Every leaf of every YAML, but for presets and searches, which set what others define."""
    for path in sorted(conf_folder.conf_dir().glob("*/*.yaml")):
        if path.parent.name not in ("system", "experiment", "sweep", "space"):
            own = {key: node for key, node in _plain(path).items() if key != "defaults"}
            yield from _leaves(f"{path.parent.name}/{path.stem}", "", own)
    root = _plain(conf_folder.conf_dir() / "config.yaml")
    yield from _leaves("config", "", {key: root[key] for key in root if key not in ("defaults", "hydra")})


def _plain(path: Path) -> Any:
    return OmegaConf.to_container(OmegaConf.load(path))


def _leaves(place: str, path: str, node: Any) -> Iterator[Knob]:
    if isinstance(node, dict):
        for name, child in node.items():
            if name != "_target_":
                yield from _leaves(place, f"{path}.{name}" if path else name, child)
        if not node and path:  # a map to fill
            yield Knob(place, path, node)
    elif not (isinstance(node, str) and node.startswith("${") and not node.startswith("${oc.env")):
        yield Knob(place, path, node)


KNOBS = list(knobs())
PLACES = list(dict.fromkeys(knob.place for knob in KNOBS))
