"""What a folder is called where runs are listed, and what is said of it there."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.measures.names import HEADLINE, SYSTEM_ARM, kind_of
from eval.run import point_record
from eval.table import written
from eval.tracking.tables import FOLDER
from lcm.encoding import well_formed
from lcm.given import plain_bytes
from lcm.redaction import redacted

NOTE = "mlflow.note.content"
"""The tag that MLflow shows as the description of a run."""
DEFAULT = "default"
_SEPARATOR = " · "
_LONGEST_NAME, _LONGEST_NOTE = 120, 4900  # letters; a tag takes 5,000 of a server that is not new
_COLUMNS = 5
_SELF_EVIDENT = ("system", "dataset", "experiment", "arms")
"""What the name of a run says already, or what is no part of its system."""


def run_name(summary: Mapping[str, Any], folder: Path, *, is_nested: bool) -> str:
    """A run by its system, its dataset and what else was asked for; below a sweep or study by what was swept."""
    label = point_record(folder).get("label") if is_nested else None
    if label:
        return _shortened(redacted(str(label)))
    if "dataset" in summary and "overrides" in summary:
        named = title([system_name(summary), str(summary["dataset"]["name"])], summary["overrides"])
        return _shortened(redacted(named))
    if "title" in summary:
        return _shortened(redacted(str(summary["title"])))
    place = folder.resolve()
    what = summary["name"] if "name" in summary else summary["dataset"]["name"]
    return _shortened(redacted(f"{what} {place.parent.name} {place.name}"))


def system_name(summary: Mapping[str, Any]) -> str:
    """The preset of a run's system, or of all of it."""
    changed = summary.get("changed", {})
    return str(changed.get("system") or changed.get("experiment") or DEFAULT)


def title(about: Iterable[str], overrides: Iterable[str], more: Iterable[str] = ()) -> str:
    """As `unified · locomo · fusion.k=30`: what it is about, what else was asked for of the system, and more."""
    others = (one.lstrip("+~") for one in overrides)
    others = (one for one in others if one.partition("=")[0] not in _SELF_EVIDENT)
    return _SEPARATOR.join(
        [*about, *(one for one in others if not one.startswith("measures") and "/" not in one), *more]
    )


def note(summary: Mapping[str, Any], folder: Path, tables: Sequence[str]) -> str:
    """A description in Markdown: the page that the folder holds, or what the run is and found."""
    pages = sorted(folder.glob("*.md"))
    if "measures" in summary and not pages:
        text = _of_run(summary, folder, tables)
    else:
        text = "\n".join(_whole(page) for page in pages[:1])
    return _cut(well_formed(redacted(text)))


def _of_run(summary: Mapping[str, Any], folder: Path, tables: Sequence[str]) -> str:
    counts, dataset = summary["counts"], summary["dataset"]
    told = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in counts.items())
    what = f"**{_plain(system_name(summary))}** on **{_plain(dataset['name'])}** ({_plain(dataset['protocol'])})"
    lines = [f"{what}: {told}", "", *_table(summary), ""]
    lines += [f"- {_plain(said)}" for said in (*summary.get("notes", ()), *summary.get("flags", ()))]
    if "overrides" in summary:
        changed = [_code(f"{key}={value}") for key, value in summary["changed"].items()]
        lines.append(f"- differs from the default by: {', '.join(changed) or 'nothing'}")
        lines.append(f"- repeat: {_code(shlex.join(['lcm', 'evaluate', *summary['overrides']]))}")
    page = ["report.html"] if (folder / "report.html").is_file() else []
    files = [*page, *(f"{FOLDER}/{name}" for name in tables), "summary.json"]
    return "\n".join([*lines, f"- in full, among the artifacts: {', '.join(map(_code, files))}"])


def _table(summary: Mapping[str, Any]) -> list[str]:
    """The arms by the most telling measures."""
    arms = {SYSTEM_ARM: summary["measures"], **summary.get("arms", {})}
    names = [name for name in (*HEADLINE, *summary["measures"]) if name in summary["measures"]]
    shown = list(dict.fromkeys(names))[:_COLUMNS]
    if not shown:
        return []
    rows = [["arm", *map(_plain, shown)], ["---", *["---:"] * len(shown)]]
    rows += [[_plain(arm), *(_cell(measures.get(name), name) for name in shown)] for arm, measures in arms.items()]
    return [f"| {' | '.join(row)} |" for row in rows]


def _cell(entry: Mapping[str, Any] | None, name: str) -> str:
    if entry is None or entry["value"] is None:
        return "-"
    is_cost = kind_of(name) == "tokens"
    bounds = "" if is_cost or entry["low"] is None else f" [{entry['low']:.3f}, {entry['high']:.3f}]"
    return f"{written(entry['value'], is_cost)}{bounds}"


def _whole(page: Path) -> str:
    """A page without the pictures that lie beside it, which no description can show."""
    lines = plain_bytes(page).decode("utf-8", "replace").splitlines()
    return "\n".join(line for line in lines if not line.startswith("!["))


def _plain(text: str) -> str:
    """Words of data, so that they are no Markdown: neither a column, nor a link or a picture from elsewhere."""
    marks = str.maketrans({"|": r"\|", "<": "&lt;", "[": r"\[", "]": r"\]", "`": r"\`", "*": r"\*"})
    return " ".join(str(text).split()).translate(marks)


def _code(text: str) -> str:
    one_line = " ".join(str(text).split()).replace("`", "'")
    return f"`{one_line}`"


def _cut(text: str) -> str:
    if len(text) <= _LONGEST_NOTE:
        return text
    return text[:_LONGEST_NOTE].rpartition("\n")[0] + "\n\n(cut here: the whole page is among the artifacts)"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"
