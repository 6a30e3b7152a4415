"""An exported preset on disk: choices that Hydra finds by `hydra.searchpath`, plugin files, where it comes from."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from eval.configuration import leaves
from eval.run import CONFIG, write_json, write_summary
from lcm.errors import LcmError
from lcm.files import write_text
from pipelines.config.preset_choices import Reference, RestoredConfig

PROVENANCE = "provenance.json"
PROTOCOL = ("dataset", "replay", "measures", "arms")
"""Groups of what is measured rather than of the system; tracking is of neither."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def check_name(name: str, choices: Mapping[str, Iterable[str]]) -> None:
    """A choice of ours would be taken before one of the same name in another folder.

    Raises:
        LcmError: if the name cannot be a choice's, or is one's already.
    """
    if not _NAME.fullmatch(name):
        raise LcmError(f"name={name!r} must be letters, digits and underscores, a letter first")
    taken = [group for group, known in choices.items() if name in known]
    if taken:
        raise LcmError(f"name={name} is a choice of {', '.join(taken)} already: take another name")


def write_choices(
    folder: Path, name: str, preset: RestoredConfig, groups: Sequence[str], beside: Sequence[str], what: str
) -> None:
    """Write `system/NAME.yaml`, `experiment/NAME.yaml`, and a file for each group that no choice of ours is.

    Args:
        preset: the configuration with its references.
        groups: of the system, in the order of the configuration.
        beside: overrides of what no group holds; the experiment is whole with them.
        what: one sentence that says where the numbers come from.
    """
    known = [group for group in preset.choices if group in groups or group in PROTOCOL]
    for group in known:
        if preset.choices[group] is None:
            _write(folder / group / f"{name}.yaml", f"# {what}\n{_yaml(preset.config[group])}")
    chosen = {group: f"/{group}: {preset.choices[group] or name}" for group in known}
    here = f"hydra.searchpath=[file://{folder.absolute()}]"
    for kind, lines, more in (
        ("system", [chosen[group] for group in known if group in groups], ()),
        ("experiment", [*(chosen[group] for group in known if group in PROTOCOL), f"/system: {name}"], beside),
    ):
        command = shlex.join(["lcm", "evaluate", f"{kind}={name}", here, *more])
        head = f"# @package _global_\n# {what}\n# {command}\ndefaults:\n"
        text = "".join(f"  - override {line}\n" for line in lines)
        _write(folder / kind / f"{name}.yaml", head + text)


def write_provenance(
    folder: Path, name: str, config: Mapping[str, Any], config_text: str, provenance: Mapping[str, Any]
) -> None:
    """Write the configuration, where it comes from, and last the summary: a folder with a summary is complete."""
    write_text(folder / CONFIG, config_text)
    write_json(folder / PROVENANCE, provenance)
    summary = {
        "kind": "preset",
        "name": name,
        "config_hash": provenance["config_hash"],
        "commit": provenance["commit"],
        **({"dataset": provenance["dataset"]} if provenance["dataset"] else {}),
        "metrics": dict(_metrics(provenance["measures"])),
        "params": dict(leaves(config)),
        "tags": {
            "preset": name,
            "lcm_version": provenance["lcm"],
            "source": provenance["source"]["kind"],
            **{
                f"not_expressible/{target}": str(len(told["not_expressible"]))
                for target, told in provenance["targets"].items()
            },
        },
    }
    write_summary(folder, summary)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


def _yaml(node: Any) -> str:
    return str(yaml.safe_dump(escaped(node), sort_keys=False, allow_unicode=True, width=120))


def escaped(node: Any) -> Any:
    """Plain data as OmegaConf reads it back.

    A text with `${` in it that refers to nothing is marked as words; a reference is left to refer.
    """
    if isinstance(node, Mapping):
        return {name: escaped(child) for name, child in node.items()}
    if isinstance(node, list):
        return [escaped(child) for child in node]
    if isinstance(node, Reference):
        return str(node)
    if isinstance(node, str):
        return re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + r"\${", node)
    return node


def _metrics(measures: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, float]]:
    for measure, entry in measures.items():
        for key, suffix in (("value", ""), ("low", ".low"), ("high", ".high")):
            if entry.get(key) is not None:
                yield f"{measure}{suffix}", entry[key]
