"""What a summary says, in the form that MLflow takes: metrics, parameters and tags."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from eval.experiment.run_folder import CONFIG

_UNNAMEABLE = re.compile(r"[^\w\-./: ]", re.ASCII)  # what MLflow takes in no metric's name
_LONGEST = 6000  # letters of a parameter


def metric_name(measure: str) -> str:
    """`recall@10` as MLflow can write it, `recall_at_10`; `measure_name` maps back."""
    return measure.replace("@", "_at_")


def measure_name(metric: str) -> str:
    return metric.replace("_at_", "@")


def run_name(summary: Mapping[str, Any], folder: Path) -> str:
    """What it is called where runs are listed."""
    place = folder.resolve()
    what = summary["dataset"]["name"] if "dataset" in summary else summary["name"]
    return f"{what} {place.parent.name} {place.name}"


def tags(summary: Mapping[str, Any]) -> dict[str, str]:
    told = {"kind": summary.get("kind", "run"), **summary.get("tags", {})}
    if "config_hash" in summary:
        told["config_hash"] = summary["config_hash"]
    if "dataset" in summary:
        told["dataset_digest"] = summary["dataset"]["digest"]
    return {**told, "commit": summary.get("commit") or "unknown"}


def metrics(summary: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Every number of a summary. Of a run these are its measures; other kinds name theirs under `metrics`."""
    for name, value in summary.get("metrics", {}).items():
        if value is not None:
            yield _UNNAMEABLE.sub("_", metric_name(name)), float(value)
    yield from _named("", summary.get("measures", {}))
    for arm, measures in summary.get("arms", {}).items():
        yield from _named(f"arm/{arm}/", measures)
    for category, measures in summary.get("categories", {}).items():
        yield from _named(f"category/{category}/", measures)
    for key, value in summary.get("counts", {}).items():
        yield f"count/{key}", float(value)
    for key, value in summary.get("compression", {}).items():
        yield f"compression/{key}", float(value)
    for arm, measures in summary.get("summary_quality", {}).items():
        yield from _named(f"summary/{arm}/", measures)
    for action, times in summary.get("decisions", {}).items():
        yield f"decision/{action}", float(times)
    for what, times in summary.get("incidents", {}).items():
        yield f"incident/{_UNNAMEABLE.sub('_', what)}", float(times)
    timing = summary.get("timing", {})
    for part, values in timing.get("latency_ms", {}).items():
        yield from ((f"latency/{part}_{key}", float(value)) for key, value in values.items())
    for phase, value in timing.get("seconds", {}).items():
        yield f"seconds/{phase}", float(value)


def params(folder: Path, summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The resolved configuration, one parameter a leaf, or what another kind names under `params`."""
    leaves = summary["params"].items() if "params" in summary else _leaves("", _config(folder))
    return ((key, str(value)[:_LONGEST]) for key, value in leaves)


def _config(folder: Path) -> Any:
    # libyaml's loader, for the file is read of every run
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((folder / CONFIG).read_text(), Loader=loader)  # noqa: S506  # a safe loader


def _named(prefix: str, measures: Mapping[str, Mapping[str, float | None]]) -> Iterator[tuple[str, float]]:
    for measure, entry in measures.items():
        for key, suffix in (("value", ""), ("low", ".low"), ("high", ".high")):
            value = entry[key]
            if value is not None:
                yield f"{_UNNAMEABLE.sub('_', prefix)}{metric_name(measure)}{suffix}", float(value)


def _leaves(prefix: str, node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from _leaves(f"{prefix}.{key}" if prefix else str(key), value)
    else:
        yield prefix, node
