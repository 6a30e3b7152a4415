"""lcm import FILE ... [plugin=NAME] [to=FOLDER] [name=NAME]

Read the configuration of memory-lancedb-pro, lossless-claw or libravdb memory: its JSON file, the host's openclaw.json
that holds it, and for lossless-claw a file of LCM_* variables beside it, which stand above. Or read a preset that
`lcm export` wrote: its folder, its provenance.json or its system/NAME.yaml.

Without to=FOLDER the overrides for `lcm evaluate` are printed; with it they become system/NAME.yaml there, for
lcm evaluate system=NAME 'hydra.searchpath=[file://FOLDER]'. plugin=lancedb_pro, lossless_claw or libravdb says whose
file it is, where neither its name nor its keys tell; plugin=libravdb@1.10 of which version.
What nothing here stands for is named. Exit code 2: the file is not valid; one line says where and by which rule."""

import json
import math
import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from eval.configuration import leaves
from eval.run import SUMMARY, Run
from lcm.errors import LcmError
from lcm.given import read_whole
from lcm.plugins.settings.environment import settings
from lcm.plugins.settings.tables import ABSENT, TABLES, VERSIONS, Table, at, misfit, named_table
from lcm.plugins.settings.translation import ImportedSettings, differences, read
from pipelines.config import conf_folder, presets
from pipelines.config.arguments import told_apart
from pipelines.config.conf_folder import nodes
from pipelines.config.presets import PROVENANCE, RECALL
from pipelines.config.trust import check_settable, today
from pipelines.export import YAML, ExportSource, export
from pipelines.views.terminal import kept, say


@dataclass(frozen=True, slots=True)
class ImportedPreset:
    """What was read."""

    config: dict[str, Any]
    """Ours, every reference worked out."""
    overrides: tuple[str, ...]
    """That make it."""
    origin: dict[str, Any]
    notes: Mapping[str, str] = field(default_factory=dict)
    """What could not be taken over as it stands -> why."""
    searching: tuple[str, ...] = ()
    """Overrides for the commands that search, beside the choice of the plugin's own recall."""


def main(arguments: Sequence[str]) -> int:
    """`lcm import FILE ... [KEY=VALUE ...]`."""
    command = told_apart(arguments, ("plugin", "to", "name"), is_configured=False)
    own, files = command.settings, [Path(word) for word in command.words]
    if not files:
        raise LcmError("name a file to import")
    if absent := next((path for path in files if not path.exists()), None):
        raise LcmError(
            f"{absent}: no such file or folder; name a plugin's own configuration, the openclaw.json that holds it, or "
            "a preset that `lcm export` wrote"
        )
    name = own.get("name") or files[0].resolve().stem.replace("-", "_")
    found = imported_preset(files[0]) if _is_preset(files[0]) else imported_plugin(files, own.get("plugin"))
    for setting, why in found.notes.items():
        say(f"Not taken over as it stands: {setting}: {why}")
    if (untold := _untold(files[0])) and not _is_preset(files[0]):
        say(
            f"What the plugin was not told when this was exported: {untold} keys, in {files[0].parent / PROVENANCE}; "
            f"`lcm import {files[0].parent}` brings them back"
        )
    needed = {str(value) for key, value in leaves(found.config) if key.endswith("api_key_env") and value}
    for variable in sorted(needed):
        if not os.environ.get(variable):
            say(f"Needs a key: set the environment variable {variable}")
    if own.get("to"):
        to = Path(own["to"])
        presets.check_name(name, conf_folder.groups())
        export(ExportSource(found.config, found.origin), to, name, (YAML,))
        kept(to / "system" / f"{name}.yaml", verb="Imported")
    if found.searching:
        told = shlex.join([f"{RECALL}=lossless_claw", *found.searching])
        say(f"lcm grep, describe, expand and expand-query: {told}")
    if not own.get("to"):
        say(shlex.join(["lcm", "evaluate", *found.overrides]))
    return 0


def imported_plugin(files: Sequence[Path], plugin: str | None = None) -> ImportedPreset:
    """Read a plugin's files."""
    documents = [_document(path) for path in files if path.suffix != ".env"]
    if len(documents) > 1:
        raise LcmError(f"{files[0]} and {files[1]} are two configurations: name one")
    table, document = _whose(documents[0] if documents else {}, files[0], plugin)
    by_variable: dict[str, Any] = {}
    for path in files:
        if path.suffix == ".env":
            by_variable |= settings(table, _text(path), str(path))
    try:
        found = read(table, document, by_variable)
    except (LcmError, ValueError) as error:
        raise LcmError(f"{', '.join(map(str, files))}: {error}") from error
    config, overrides = presets.plugin_default(table, found)
    searching = _changed(found, [f"{RECALL}={table.name}"], config, RECALL) if RECALL in config else ()
    config.pop(RECALL, None)
    resolved = OmegaConf.to_container(OmegaConf.create(config), resolve=True)
    told = {
        **found.ignored,
        **found.changed,
        **{path: f"taken over, though {why}" for path, why in found.without_effect.items()},
    }
    overrides = [*overrides, *_changed(found, overrides, config)]
    origin = {"kind": "plugin", "plugin": table.plugin, "files": [str(path) for path in files]}
    return ImportedPreset(resolved, tuple(overrides), origin, told, tuple(searching))  # type: ignore[arg-type]


def imported_preset(path: Path) -> ImportedPreset:
    """Compose an exported preset again."""
    if not path.exists():
        raise LcmError(f"{path}: no such file; name the folder of a preset, or a plugin's JSON file")
    folder = path if path.is_dir() else path.parent.parent if path.parent.name == "system" else path.parent
    if path.is_file() and not (folder / "system").is_dir():
        raise LcmError(f"{path} is of no preset: name the folder that `lcm export` wrote, or its system/NAME.yaml")
    systems = [path] if path.parent.name == "system" else sorted((folder / "system").glob("*.yaml"))
    if len(systems) != 1:
        raise LcmError(f"{folder} holds {len(systems)} files system/*.yaml: export it with target=yaml, or name one")
    name = systems[0].stem
    choice = f"experiment={name}" if (folder / "experiment" / f"{name}.yaml").is_file() else f"system={name}"
    was = json.loads(_text(folder / PROVENANCE)) if (folder / PROVENANCE).is_file() else None
    beside = was["overrides_beside"] if was is not None and choice.startswith("experiment=") else []
    check_settable([str(one).partition("=")[0] for one in beside], f"{folder / PROVENANCE}: overrides_beside")
    config = today(presets.composed_of(folder, choice, *beside))
    told = {}
    if was is not None and (now := presets.hash_of(config)) != was["config_hash"]:
        exported = Run(folder).config  # whose components may have had other names then
        if not exported or presets.hash_of(today(exported)) != now:
            before = f"its configuration was {was['config_hash']} when it was exported"
            told[choice] = f"{before} and is {now} now: choices have changed"
    overrides = (presets.searched(folder), choice, *beside)
    return ImportedPreset(config, overrides, {"kind": "preset", "folder": str(folder)}, told)


def _untold(path: Path) -> int:
    """How many keys a plugin's file, which lies where it was exported to, does not tell of; 0 of any other file."""
    beside = path.parent / PROVENANCE
    with suppress(ValueError, KeyError, TypeError):  # of a file that is not what is read here
        return len(json.loads(_text(beside))["targets"][path.stem]["not_expressible"]) if beside.is_file() else 0
    return 0


def _is_preset(path: Path) -> bool:
    return path.is_dir() or path.name in (PROVENANCE, SUMMARY) or path.suffix in (".yaml", ".yml")


def _changed(
    found: ImportedSettings, overrides: Sequence[str], config: Mapping[str, Any], pipeline: str = conf_folder.EVALUATE
) -> list[str]:
    """The values that differ from what the choices hold, as overrides for a pipeline."""
    default = presets.with_references(overrides, pipeline)
    changed = []
    for key in found.values:
        value = at(config, key)
        is_meant = value is not ABSENT and (key.partition(".")[0] == RECALL) == (pipeline == RECALL)
        if is_meant and list(differences(key, value, at(default, key))):
            changed.append(presets.override(key, value))
    return changed


def _whose(document: Any, path: Path, plugin: str | None) -> tuple[Table, Mapping[str, Any]]:
    """Which plugin's configuration it is; of a host's file, the part that is the plugin's."""
    named = None if plugin is None else named_table(plugin)
    name = None if named is None else named.name
    if not isinstance(document, Mapping):
        raise LcmError(f"{path} must hold an object, got {type(document).__name__}")
    if isinstance(plugins := document.get("plugins"), Mapping):
        held = {}
        for table in TABLES.values():
            entry = at(plugins, f"entries.{table.plugin}.config")
            entry = at(plugins, f"configs.{table.plugin}") if entry is ABSENT else entry
            if entry is not ABSENT and name in (None, table.name):
                held[table.name] = entry
        if len(held) != 1:
            raise LcmError(
                f"{path} holds configurations of {', '.join(held) or 'no plugin known here'}: say plugin=NAME"
            )
        ((name, document),) = held.items()
    elif name is None:
        name = next((one for one in TABLES if path.stem.replace("-", "_").startswith(one)), None)
    if name is None:
        shared = {one: len(document.keys() & table.schema()["properties"].keys()) for one, table in TABLES.items()}
        best = [one for one, n in shared.items() if n and n == max(shared.values())]
        if len(best) != 1:
            raise LcmError(f"{path}: nothing tells whose configuration it is: say plugin={' or '.join(TABLES)}")
        name = best[0]
    taking = (table for table in VERSIONS[name].values() if misfit(document, table.schema()) is None)
    return named or next(taking, TABLES[name]), document  # the first version of all where no manifest takes it


def _document(path: Path) -> Any:
    try:
        document = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise LcmError(f"{path} is no JSON: {error}") from error
    for key, value in nodes(document):  # Python's reader takes `NaN`, which JSON does not have, and 1e999 for infinity
        if isinstance(value, float) and not math.isfinite(value):
            raise LcmError(f"{path}: {key or 'the document'} must be a finite number, got {json.dumps(value)}")
    return document


def _text(path: Path) -> str:
    try:
        return read_whole(path).decode()
    except UnicodeDecodeError as error:
        raise LcmError(f"{path} is no UTF-8 text: {error}") from error
