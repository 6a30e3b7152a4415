"""The doors by which a hostile preset comes in: each writes it where a command reads it, and gives that command."""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from eval.run import CONFIG
from lcm.derived import SUMS, seal
from pipelines.config.overrides import quoted
from tests.support.hostile_presets import CANARY, FOLDER, HostilePreset

QUICK = (
    *("system=hybrid", "embedder=hashing", "arms=none", "tracking=none", "report=false"),
    *("measures.latency.queries=0", "means.resamples=20"),
)
_SWEEP = ("evaluate", "-m", "decay=none,weibull", "hydra.sweep.dir=sweep", *QUICK)
_STUDY = (
    "tune",
    "hydra.run.dir=study",
    "study.trials=1",
    *(one for one in QUICK if one not in ("arms=none", "system=hybrid")),
)
_NONE = "tracking=none"
_ANOTHER = ("system=hybrid", "embedder=hashing", "decay=weibull")
_ALONE = (_NONE, "report=false")


def prepared() -> tuple[tuple[str, ...], ...]:
    """The commands that make what some doors change, in the folder that is copied for each preset."""
    return ("evaluate", *QUICK, "hydra.run.dir=run"), _SWEEP, _STUDY, ("export", "run", "to=exported", _NONE)


def hostile_commands(preset: HostilePreset, here: Path, canary: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(Door, the arguments of `lcm` in the folder `here`), each written when it is asked for.

    Args:
        here: a copy of the folder in which the commands of `prepared` ran.
        canary: what the preset would make.
    """
    (path, text), *_ = [
        (path, text.replace(CANARY, str(canary)).replace(FOLDER, str(here))) for path, text in preset.files.items()
    ]
    group = path.partition("/")[0]
    node = _node(text if path.endswith(".yaml") else "", group)
    leaves = dict(_leaves(node, ""))
    if leaves:
        yield "command line", ("evaluate", *(f"++{key}={quoted(value)}" for key, value in leaves.items()), *QUICK)
        for name, content in (
            ("sweep", {"hydra": {"sweeper": {"params": {f"++{key}": quoted(value) for key, value in leaves.items()}}}}),
            ("space", {key: {"choices": [value, None]} for key, value in leaves.items()}),
        ):
            header = "# @package _global_\n" if name == "sweep" else ""
            _written(here / "given" / name / "evil.yaml", header + yaml.safe_dump(content))
        searched = f"hydra.searchpath=[file://{here / 'given'}]"
        yield "sweep file", ("evaluate", "-m", "sweep=evil", searched, *QUICK)
        yield "tune space", ("tune", "space=evil", searched, "study.trials=1", "hydra.run.dir=other", *QUICK)
    for folder in (here / "run", *(found.parent for found in here.glob("sweep/*/config.yaml")), here / "study"):
        _planted(folder, node, text)
    shutil.copyfile(here / "run" / CONFIG, here / "study" / "best.yaml")
    yield "baseline of regress, both sides measured", ("regress", "run", "run", "into=compared", *_ALONE)
    yield "baseline of regress", ("regress", "run", *_ANOTHER, "into=compared-now", *_ALONE)
    global_ = text if text.startswith("# @") else f"# @package _global_\n{group}:\n{_indented(text)}"
    _written(here / "given-preset" / "system" / "theirs.yaml", global_)
    yield "preset of regress", ("regress", "run", "given-preset", "into=compared-preset", *_ALONE)
    yield "runs of a comparison", ("compare", "run", "sweep", "into=compared-runs", *_ALONE)
    yield "run of a comparison with a system", ("compare", "run", " ".join(_ANOTHER), "into=compared-system", *_ALONE)
    yield "run folder whose page is made", ("report", "run")
    yield "run folder whose losses are told", ("why", "run")
    yield "run folder that is logged", ("log", "run", _NONE)
    yield "run folder that is exported", ("export", "run", "to=out", _NONE)
    yield "run folder that is judged", ("judge", "run", "into=qrels", "report=true")
    yield "run folder that is begun again", ("evaluate", "hydra.run.dir=run", *QUICK)
    yield "sweep folder", _SWEEP
    yield "study folder", _STUDY
    _written(here / "exported" / "system" / "exported.yaml", global_)
    yield "preset that is imported", ("import", "exported")
    yield "preset that is exported again", ("export", "exported", "to=again", _NONE)
    kept = json.loads((here / "exported" / "provenance.json").read_text())
    kept["overrides_beside"] = [f"++{key}={quoted(value)}" for key, value in leaves.items()]
    _written(here / "exported" / "provenance.json", json.dumps(kept))
    yield "overrides of a preset that is imported", ("import", "exported/provenance.json")
    plugin = json.loads((here / "exported" / "lancedb_pro.json").read_text())
    _written(here / "lancedb_pro.json", json.dumps(plugin | node))
    yield "plugin's file", ("import", "lancedb_pro.json")


READ_ONLY = {
    "runs of a comparison": {"eval.tracking.tracking.NoTracking"},
    "baseline of regress, both sides measured": {
        "eval.regression.regression.Regression",
        "eval.tracking.tracking.NoTracking",
    },
    "run folder that is logged": {"eval.tracking.tracking.NoTracking"},
    "run folder that is exported": {"eval.tracking.tracking.NoTracking"},
    "preset that is imported": set[str](),
    "preset that is exported again": {"eval.tracking.tracking.NoTracking"},
    "overrides of a preset that is imported": set[str](),
    "plugin's file": set[str](),
}
"""Door -> all that its command may look up: none of it comes from what is read."""


def _node(text: str, group: str) -> dict[str, Any]:
    """What a YAML of a group says, as plain data; nothing where it is no plain YAML."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
    if not isinstance(found, dict):
        return {}
    return json.loads(json.dumps(found if group in ("experiment", "sweep") else {group: found}))


def _leaves(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(node, Mapping) and node:
        for name, inner in node.items():
            yield from _leaves(inner, f"{path}.{name}" if path else name)
    elif path:
        yield path, node


def _planted(folder: Path, node: Mapping[str, Any], text: str) -> None:
    """A configuration that says it in a run's folder, with sums that are right."""
    path = folder / CONFIG
    config = path.read_text()
    path.write_text(
        yaml.safe_dump(_merged(yaml.safe_load(config), node)) if node else f"{config}evil:\n{_indented(text)}"
    )
    if (folder / SUMS).is_file():
        seal(folder, [line.split("  ", 1)[1] for line in (folder / SUMS).read_text().splitlines()])


def _merged(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, Mapping):
        return one | {name: _merged(one.get(name), inner) for name, inner in other.items()}
    return other


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def _written(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
