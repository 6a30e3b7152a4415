"""What a summary says, in the form that MLflow takes: metrics, parameters and tags."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from eval.experiment.run_folder import leaves, read_config, sections
from lcm.redaction import redacted, redacted_record

_UNNAMEABLE = re.compile(r"[^\w\-./: ]", re.ASCII)  # what MLflow takes in no metric's name
_PREFIXES = {
    "measures": "", "arms": "arm/", "categories": "category/", "counts": "count/", "decisions": "decision/",
    "incidents": "incident/",
}  # fmt: skip
_SECTION_PREFIXES = {"summary_quality": "summary/"}  # others have their own names
_LONGEST = 6000  # letters of a parameter
_LONGEST_NAME = 64  # of a part of a metric's name: MLflow takes 250 in all


def metric_name(measure: str) -> str:
    """`recall@10` as MLflow can write it, `recall_at_10`; `measure_name` maps back."""
    return measure.replace("@", "_at_")


def measure_name(metric: str) -> str:
    return metric.replace("_at_", "@")


def run_name(summary: Mapping[str, Any], folder: Path) -> str:
    """What it is called where runs are listed."""
    place = folder.resolve()
    what = summary["dataset"]["name"] if "dataset" in summary else summary["name"]
    return redacted(f"{what} {place.parent.name} {place.name}")


def tags(summary: Mapping[str, Any]) -> dict[str, str]:
    told = {"kind": summary.get("kind", "run"), **summary.get("tags", {})}
    if "config_hash" in summary:
        told["config_hash"] = summary["config_hash"]
    if "dataset" in summary:
        told |= dataset_tags(summary["dataset"])
    return redacted_record({**told, "commit": summary.get("commit") or "unknown"})


def dataset_tags(identity: Mapping[str, str]) -> dict[str, str]:
    """How MLflow finds runs on the same dataset, and those whose questions were generated."""
    told = {"dataset_digest": identity["digest"]}
    return {**told, "generated_questions": identity["generated"]} if "generated" in identity else told


def metrics(summary: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Every number of a summary. Of a run these are its measures; other kinds name theirs under `metrics`."""
    names = _names(summary.get("metrics", {}))
    for name, value in summary.get("metrics", {}).items():
        if value is not None:
            yield names[name], float(value)
    for key, prefix in _PREFIXES.items():
        yield from _numbers(prefix, summary.get(key, {}))
    for name, section in sections(summary).items():
        yield from _numbers(_SECTION_PREFIXES.get(name, f"{name}/"), section)
    timing = summary.get("timing", {})
    for name, section in timing.items():
        if name != "seconds":
            for part, values in section.items():
                yield from _numbers(f"{name.removesuffix('_ms')}/{part}_", values)
    yield from _numbers("seconds/", timing.get("seconds", {}))


def params(folder: Path, summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The resolved configuration, one parameter a leaf, or what another kind names under `params`."""
    told = summary["params"].items() if "params" in summary else leaves(read_config(folder))
    return ((redacted(key), redacted(str(value))[:_LONGEST]) for key, value in told)


def _numbers(prefix: str, node: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The numbers below a node by their path; of a mean its value under its own name, and its interval beside that."""
    names = _names(node)
    for key, child in node.items():
        name = prefix + names[key]
        if not isinstance(child, Mapping):
            if child is not None:
                yield name, float(child)
        elif "value" in child:
            for part, suffix in (("value", ""), ("low", ".low"), ("high", ".high")):
                if child[part] is not None:
                    yield f"{name}{suffix}", float(child[part])
        else:
            yield from _numbers(f"{name}/", child)


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
