"""What a folder is called where runs are listed, and what MLflow is told of it: all from its summary."""

import hashlib
import json
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.configuration import leaves
from eval.measures.names import CONTEXT_MEASURES, HEADLINE, RANKING_MEASURES, REPAIRED, SYSTEM_ARM, WHOLE, kind_of
from eval.measures.retrieval import DEFAULT_NAMES
from eval.run import EMBEDDING, Run, point_record
from eval.shape import sections
from eval.table import Table, mean_cell, plain_markdown, titled
from lcm.encoding import well_formed
from lcm.given import plain_bytes
from lcm.redaction import redacted, redacted_record

TABLES = "tables"
"""The folder of the tables among the artifacts of a run."""
NOTE, SHOWN_TABLES = "mlflow.note.content", "mlflow.loggedArtifacts"
"""Tags: the description of a run, and the tables that the viewer shows."""
DEFAULT = "default"
_SOURCES = {
    "run": "lcm evaluate", "sweep": "lcm evaluate -m", "study": "lcm tune", "comparison": "lcm compare",
    "regression": "lcm regress", "transfer": "lcm transfer", "preset": "lcm export",
}  # fmt: skip
"""Kind of a summary -> the command that makes it."""
_SELF_EVIDENT = ("system", "dataset", "experiment", "arms")
"""What the name of a run says already, or what is no part of its system."""
_UNNAMEABLE = re.compile(r"[^\w\-./: ]", re.ASCII)  # what MLflow takes in no metric's name
_BOUNDS = ("value", "low", "high", "n")
_COLUMNS = 5
_LONGEST_NAME, _LONGEST_NOTE, _LONGEST_PARAM = 120, 4900, 6000  # letters; a server that is not new takes tags of 5,000
_LONGEST_PART = 64  # of a metric's name, of which MLflow takes 250 in all
_SESSION = "session."
_USUAL = {*DEFAULT_NAMES, "judged@5", "judged@10"}
_TOLD = {*HEADLINE, *WHOLE, f"{REPAIRED}recall@10", f"{REPAIRED}nDCG@10"}


def run_name(summary: Mapping[str, Any], folder: Path, *, is_nested: bool) -> str:
    """A run by its system, its dataset and what else was asked for; below a sweep or study by what was swept."""
    name = point_record(folder).get("label") if is_nested else None
    if not name and "dataset" in summary and "overrides" in summary:
        name = title([system_name(summary), str(summary["dataset"]["name"])], summary["overrides"])
    if not name and "title" in summary:
        name = summary["title"]
    if not name:
        place = folder.resolve()
        name = (
            f"{summary['name'] if 'name' in summary else summary['dataset']['name']} {place.parent.name} {place.name}"
        )
    name = redacted(str(name))
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def system_name(summary: Mapping[str, Any]) -> str:
    """The preset of a run's system, or of all of it."""
    changed = summary.get("changed", {})
    return str(changed.get("system") or changed.get("experiment") or DEFAULT)


def title(about: Iterable[str], overrides: Iterable[str], more: Iterable[str] = ()) -> str:
    """As `unified · locomo · fusion.k=30`: what it is about, what else was asked for of the system, and more."""
    asked = (one.lstrip("+~") for one in overrides)
    others = (one for one in asked if one.partition("=")[0] not in _SELF_EVIDENT)
    return " · ".join([*about, *(one for one in others if not one.startswith("measures") and "/" not in one), *more])


def note(summary: Mapping[str, Any], folder: Path, names: Iterable[str]) -> str:
    """A description in Markdown: the page that the folder holds, or what the run is and found."""
    pages = sorted(folder.glob("*.md"))
    if "measures" in summary and not pages:
        text = _note_of_run(summary, folder, names)
    else:  # without the pictures that lie beside it, which no description can show
        lines = plain_bytes(pages[0]).decode("utf-8", "replace").splitlines() if pages else []
        text = "\n".join(line for line in lines if not line.startswith("!["))
    text = well_formed(redacted(text))
    if len(text) <= _LONGEST_NOTE:
        return text
    return text[:_LONGEST_NOTE].rpartition("\n")[0] + "\n\n(cut here: the whole page is among the artifacts)"


def _note_of_run(summary: Mapping[str, Any], folder: Path, names: Iterable[str]) -> str:
    counts, dataset = summary["counts"], summary["dataset"]
    told = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in counts.items())
    system, name, protocol = map(plain_markdown, (system_name(summary), dataset["name"], dataset["protocol"]))
    arms = {SYSTEM_ARM: summary["measures"], **summary.get("arms", {})}
    shown = [*dict.fromkeys([*(one for one in HEADLINE if one in arms[SYSTEM_ARM]), *arms[SYSTEM_ARM]])][:_COLUMNS]
    means = [
        (arm, *(mean_cell(measures.get(one), is_cost=kind_of(one) == "tokens") for one in shown))
        for arm, measures in arms.items()
    ]
    table = [Table(titled("arm", shown, "mean"), means).markdown(), ""] if shown else []
    lines = [f"**{system}** on **{name}** ({protocol}): {told}", "", *table]
    lines += [f"- {plain_markdown(said)}" for said in (*summary.get("notes", ()), *summary.get("flags", ()))]
    if "overrides" in summary:
        changed = [_code(f"{key}={value}") for key, value in summary["changed"].items()]
        lines.append(f"- differs from the default by: {', '.join(changed) or 'nothing'}")
        lines.append(f"- repeat: {_code(shlex.join(['lcm', 'evaluate', *summary['overrides']]))}")
    page = ["report.html"] if (folder / "report.html").is_file() else []
    files = [*page, *(f"{TABLES}/{name}" for name in names), "summary.json"]
    return "\n".join([*lines, f"- in full, among the artifacts: {', '.join(map(_code, files))}"])


def _code(text: str) -> str:
    one_line = " ".join(str(text).split()).replace("`", "'")
    return f"`{one_line}`"


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
    return redacted_record({**told, "commit": commit or "unknown"})


def dataset_tags(identity: Mapping[str, str]) -> dict[str, str]:
    """How MLflow finds runs on the same dataset, and those whose questions were generated."""
    told = {"dataset_digest": identity["digest"]}
    return {**told, "generated_questions": identity["generated"]} if "generated" in identity else told


def params(folder: Path, summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What of a run's configuration is not the default, or what another kind names under `params`. Of a run that does
    not say what differs: all settings, one parameter a leaf."""
    told = summary.get("params", summary.get("changed"))
    if told is None:
        config = Run(folder).config
        told = dict(leaves(config)) if config else {}
    for key, value in told.items():
        yield redacted(_UNNAMEABLE.sub("_", metric_name(key))), redacted(str(value))[:_LONGEST_PARAM]


def metric_name(measure: str) -> str:
    """`recall@10` as MLflow can write it: `recall_at_10`."""
    return measure.replace("@", "_at_")


def metrics(summary: Mapping[str, Any], objectives: Collection[str] = ()) -> Iterator[tuple[str, float]]:
    """The headlines of a run, or the numbers that another kind names under `metrics`.

    What is no headline stands in the tables that are logged beside them, and in the run's files.
    """
    yield from _numbers("", summary.get("metrics", {}))
    measures = summary.get("measures", {})
    yield from _numbers("", {name: measures[name] for name in headline_measures(measures, objectives)})
    if "measures" in summary:
        for name, section in _headline_sections(summary):
            yield from _numbers(f"{name}/" if name else "", section)


def headline_measures(measured: Iterable[str], objectives: Collection[str] = ()) -> list[str]:
    """Of the measures of queries those that are headlines.

    That is what a run is told by, and every measure that nobody gets who has not asked for it: one from outside, or one
    at another cutoff than by default.
    """
    there = list(measured)
    told = {*_TOLD, *objectives}
    stand_ins = {f"{_SESSION}{name}" for name in told if name not in there}  # where no message is judged
    return [
        name
        for name in there
        if name in told | stand_ins or kind_of(name) in ("retained", "expansions") or _is_asked_for(name)
    ]


def _is_asked_for(name: str) -> bool:
    kind = kind_of(name)
    is_usual = kind in RANKING_MEASURES and name.removeprefix(REPAIRED).removeprefix(_SESSION) in _USUAL
    return kind not in CONTEXT_MEASURES and not is_usual


def _headline_sections(summary: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What a run tells of other things than queries: its counts, how concentrated the system's answers are, what became
    of candidates, contexts and searches, how often something was survived, and the times of a query and of the whole
    run."""
    yield "count", summary.get("counts", {})
    yield "served", summary.get("served", {}).get(SYSTEM_ARM, {})
    yield "decision", summary.get("decisions", {})
    for name, section in sections(summary).items():
        yield ("summary" if name == "summary_quality" else name), section
    yield "", {"incidents": sum(summary.get("incidents", {}).values())}
    timing = summary.get("timing", {})
    total_ms = timing.get("latency_ms", {}).get("total", {})
    yield "latency", {f"total_{name}": total_ms[name] for name in ("p50_ms", "p95_ms") if name in total_ms}
    yield EMBEDDING, timing.get(EMBEDDING, {})
    yield "seconds", {"total": timing.get("seconds", {}).get("total")}


def _numbers(prefix: str, node: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The numbers below a node by their path; a mean is its value, for its interval stands in the tables."""
    names = _names(node)
    for key, child in node.items():
        value = child.get("value", child) if isinstance(child, Mapping) else child
        if isinstance(value, Mapping):
            yield from _numbers(f"{prefix}{names[key]}/", value)
        elif value is not None:
            yield prefix + names[key], float(value)


def _names(keys: Iterable[str]) -> dict[str, str]:
    """Key -> its name in MLflow, which is a path there; keys may be words of data, as categories are."""
    names: dict[str, str] = {}
    for key in keys:
        name = _UNNAMEABLE.sub("_", metric_name(key))
        if any(part in ("", ".", "..") for part in name.split("/")):
            name = re.sub(r"/|\.\.|^\.$|^$", "_", name)
        if len(name) > _LONGEST_PART or name in names.values():
            name = f"{name[:_LONGEST_PART]}-{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:8]}"
        names[key] = name
    return names


def tables(summary: Mapping[str, Any]) -> dict[str, str]:
    """Name of a file -> its text, as MLflow's own viewer shows it: `arms.json` and `categories.json`, a column a
    measure, and `intervals.json`, every mean with its interval. Those without rows are left out."""
    arms = {SYSTEM_ARM: summary.get("measures", {}), **summary.get("arms", {})}
    categories = summary.get("categories", {})
    places = {(arm, "all"): measures for arm, measures in arms.items()}
    places |= {(SYSTEM_ARM, category): measures for category, measures in categories.items()}
    means = [(*place, name, mean) for place, measures in places.items() for name, mean in measures.items()]
    intervals = [[*about, *(mean[bound] for bound in _BOUNDS)] for *about, mean in means]
    found = {
        "arms": _wide("arm", arms),
        "categories": _wide("category", categories),
        "intervals": (["arm", "category", "measure", *_BOUNDS], intervals),
    }
    return {
        f"{name}.json": json.dumps({"columns": columns, "data": rows}, ensure_ascii=False)
        for name, (columns, rows) in found.items()
        if rows
    }


def _wide(heading: str, groups: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    names = list(dict.fromkeys(name for measures in groups.values() for name in measures))
    told = {group: measures for group, measures in groups.items() if measures}
    rows = [[group, *(measures.get(name, {}).get("value") for name in names)] for group, measures in told.items()]
    return [heading, *names], rows


def shown_tables(names: Sequence[str]) -> str:
    """The value of `SHOWN_TABLES`, as `MlflowClient.log_table` writes it, which would read each table back."""
    return json.dumps([{"path": f"{TABLES}/{name}", "type": "table"} for name in names])
