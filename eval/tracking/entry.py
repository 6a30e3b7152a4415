"""What a summary says, in the form that MLflow takes: metrics, parameters and tags."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from eval.run import Run, leaves
from eval.tracking.headline import headline_measures, headline_sections
from lcm.redaction import redacted, redacted_record

_UNNAMEABLE = re.compile(r"[^\w\-./: ]", re.ASCII)  # what MLflow takes in no metric's name
_LONGEST = 6000  # letters of a parameter
_LONGEST_NAME = 64  # of a part of a metric's name: MLflow takes 250 in all


def metric_name(measure: str) -> str:
    """`recall@10` as MLflow can write it, `recall_at_10`; `measure_name` maps back."""
    return measure.replace("@", "_at_")


def measure_name(metric: str) -> str:
    return metric.replace("_at_", "@")


_SOURCES = {
    "run": "lcm evaluate", "sweep": "lcm evaluate -m", "study": "lcm tune", "comparison": "lcm compare",
    "regression": "lcm regress", "transfer": "lcm transfer", "preset": "lcm export",
}  # fmt: skip
"""Kind of a summary -> the command that makes it."""


def tags(summary: Mapping[str, Any]) -> dict[str, str]:
    kind = summary.get("kind", "run")
    told = {"kind": kind, "mlflow.source.name": _SOURCES.get(kind, "lcm"), "mlflow.source.type": "LOCAL"}
    told |= summary.get("tags", {})
    if commit := summary.get("commit"):
        told["mlflow.source.git.commit"] = commit.removesuffix("+")
    if "config_hash" in summary:
        told["config_hash"] = summary["config_hash"]
    if "dataset" in summary:
        told |= dataset_tags(summary["dataset"])
    return redacted_record({**told, "commit": summary.get("commit") or "unknown"})


def dataset_tags(identity: Mapping[str, str]) -> dict[str, str]:
    """How MLflow finds runs on the same dataset, and those whose questions were generated."""
    told = {"dataset_digest": identity["digest"]}
    return {**told, "generated_questions": identity["generated"]} if "generated" in identity else told


def metrics(summary: Mapping[str, Any], objectives: Collection[str] = ()) -> Iterator[tuple[str, float]]:
    """The headlines of a run, or the numbers that another kind names under `metrics`.

    Args:
        objectives: measures that the run is chosen by.
    """
    yield from _numbers("", summary.get("metrics", {}))
    measures = summary.get("measures", {})
    yield from _numbers("", {name: measures[name] for name in headline_measures(measures, objectives)})
    if "measures" in summary:
        for name, section in headline_sections(summary):
            yield from _numbers(f"{name}/" if name else "", section)


def params(folder: Path, summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What of a run's configuration is not the default, or what another kind names under `params`. Of a run that does
    not say what differs: all settings, one parameter a leaf."""
    told = summary.get("params", summary.get("changed"))
    if told is None:
        config = Run(folder).config
        told = dict(leaves(config)) if config else {}
    return ((redacted(_parameter_name(key)), redacted(str(value))[:_LONGEST]) for key, value in told.items())


def _numbers(prefix: str, node: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The numbers below a node by their path; a mean is its value, for its interval stands in the tables."""
    names = _names(node)
    for key, child in node.items():
        name = prefix + names[key]
        if not isinstance(child, Mapping):
            if child is not None:
                yield name, float(child)
        elif "value" in child:
            if child["value"] is not None:
                yield name, float(child["value"])
        else:
            yield from _numbers(f"{name}/", child)


def _parameter_name(key: str) -> str:
    """`dataset@distractors.beam` as MLflow can write it."""
    return _UNNAMEABLE.sub("_", metric_name(key))


def _names(keys: Iterable[str]) -> dict[str, str]:
    """Key -> its name in MLflow, which is a path there; keys may be words of data, as categories are."""
    names: dict[str, str] = {}
    for key in keys:
        name = _UNNAMEABLE.sub("_", metric_name(key))
        if any(part in ("", ".", "..") for part in name.split("/")):
            name = re.sub(r"/|\.\.|^\.$|^$", "_", name)
        if len(name) > _LONGEST_NAME or name in names.values():
            name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:8]}"
        names[key] = name
    return names
