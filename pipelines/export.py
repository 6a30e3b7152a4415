"""lcm export [SOURCE | GROUP=CHOICE KEY=VALUE ...] to=FOLDER [name=NAME] [target=yaml,lancedb_pro,...]
           [for=VERSION] [register=NAME] [alias=champion] [tracking.uri=URI]

Write a configuration down for use elsewhere. SOURCE is the folder of a run, of a sweep (its best point is taken,
if it is significantly better than the default; SWEEP/3 is its point 3) or of an exported preset, a system by its name
(lancedb_pro_tuned), the id of an MLflow run, or a registered NAME@ALIAS; without one, overrides say what is exported,
as for `lcm evaluate`.

  target=yaml          system/NAME.yaml and experiment/NAME.yaml, with files of their own for changed groups; for
                       lcm evaluate system=NAME 'hydra.searchpath=[file://FOLDER]'
  target=lancedb_pro   lancedb_pro.json, the configuration of memory-lancedb-pro
  target=lossless_claw lossless_claw.json and lossless_claw.env, of lossless-claw
  target=libravdb      libravdb.json and libravdb.env (for its daemon), of libravdb memory

  target=libravdb for=1.10   the configuration that this version's manifest takes; target=libravdb@1.10 says the same.
                       What it refuses is named, key by key, and so are the known versions where it is none of them

All four are written unless targets are named. What a plugin has no setting for is named on the terminal and in
provenance.json, with the reason. The preset is logged to MLflow (tracking=none: it is not), and register=NAME makes it
the next version of a registered name, alias=champion the one that the alias stands for from now on."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from eval.dataset.dataset import generated_label
from eval.run import CONFIG, Run, commit, folder_kind, point_record, read_summary, write_json
from eval.study.settings import check_pick
from eval.study.sweep import best_point, numbered_point
from eval.tracking import registry
from eval.tracking.mlflow_log import Mlflow
from eval.tracking.place import quieten
from lcm import __version__
from lcm.errors import LcmError
from lcm.files import write_text
from lcm.given import plain_bytes
from lcm.plugins.settings.environment import daemon_environment, rendered, variables
from lcm.plugins.settings.tables import ABSENT, TABLES, Table, at, check, named_table
from lcm.plugins.settings.translation import differences, written
from pipelines.config import building, command_line, composition, conf_folder, contracts, presets
from pipelines.config.arguments import told_apart
from pipelines.config.overrides import group_of
from pipelines.config.presets import RECALL, Choices, RestoredConfig
from pipelines.config.trust import today
from pipelines.steps.plugin_reach import keys_of_memory, lost_keys, not_expressible, reach
from pipelines.views.terminal import brief, kept, say, show_table

YAML = "yaml"


@dataclass(frozen=True, slots=True)
class ExportSource:
    """What is exported."""

    config: dict[str, Any]
    """Every reference worked out."""
    origin: dict[str, Any]
    summary: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    """Of a run on disk."""
    run_id: str | None = None
    tuned: tuple[str, ...] = ()
    """The keys of the memory that a sweep or a study varied, or that overrides set by name; empty where that is not
    known."""


def main(arguments: Sequence[str]) -> int:
    """`lcm export [SOURCE] to=FOLDER [KEY=VALUE ...]`."""
    told = told_apart(arguments, ("to", "name", "target", "for", "register", "alias"))
    sources, own = told.words, told.settings
    of_tracking = [one for one in told.overrides if group_of(one) == "tracking"]
    overrides = [one for one in told.overrides if one not in of_tracking]
    if len(sources) > 1 or (sources and overrides):
        raise LcmError(f"name one source, or overrides alone, got: {' '.join([*sources, *overrides])}")
    if not own.get("to"):
        raise LcmError("to=FOLDER says where the preset is written: it is missing")
    targets = _targets(own.get("target", ",".join([YAML, *TABLES])).strip("[]").split(","), own.get("for"))
    if own.get("alias") and not own.get("register"):
        raise LcmError(f"alias={own['alias']} needs a registered name: add register=NAME")
    to = Path(own["to"])
    name = own.get("name") or to.resolve().name.replace("-", "_")
    presets.check_name(name, conf_folder.groups())
    tracking = building.build(composition.composed(of_tracking), "tracking")
    if own.get("register") and not isinstance(tracking, Mlflow):
        raise LcmError("register= needs MLflow: leave tracking=none out")
    if isinstance(tracking, Mlflow):
        quieten(tracking.timeout_s)  # what is exported may be fetched from there
    with tempfile.TemporaryDirectory() as scratch:
        source = source_of(sources[0] if sources else None, overrides, tracking, Path(scratch))
        written_for = export(source, to, name, targets)["targets"]
        for line in filter(None, (entry["tuned"] for entry in written_for.values())):
            say(line)
        for target, entry in written_for.items():
            _show(target, entry)
        kept(to, f" ({', '.join(targets)})", "Exported")
        if isinstance(tracking, Mlflow):
            run_id = _log(source, to, name, tracking)
            if registered := own.get("register"):
                number = registry.register(tracking.address, registered, run_id, tags={"preset": name})
                say(f"Registered: {registered} version {number}")
                if alias := own.get("alias"):
                    registry.promote(tracking.address, registered, number, alias)
                    say(f"Promoted: {registered}@{alias} is version {number}")
    return 0


def _targets(named: Sequence[str], version: str | None) -> tuple[str, ...]:
    """The targets, each with the version that it is for, where one is asked for."""
    names = [one.partition("@")[0] for one in named]
    for name in names:
        if name not in (YAML, *TABLES):
            raise LcmError(f"target={name}: no such target; choose of: {', '.join([YAML, *TABLES])}")
        if names.count(name) > 1:
            raise LcmError(f"target={name} is named twice: its files have one place")
    if version is not None:
        plugins = [one for one in named if one != YAML]
        if len(plugins) != 1 or "@" in plugins[0]:
            raise LcmError(f"for={version} is of one plugin: name it, target=libravdb for={version}")
        named = [one if one == YAML else f"{one}@{version}" for one in named]
    for one in named:
        if "@" in one and one.startswith(YAML):
            raise LcmError(f"target={one}: {YAML} has no versions")
        if one != YAML:
            named_table(one)
    return tuple(named)


def export(source: ExportSource, to: Path, name: str, targets: Sequence[str]) -> dict[str, Any]:
    """Write a preset; returns its provenance, with what each target cannot express."""
    if to.exists() and any(to.iterdir()):
        raise LcmError(f"to={to} is not empty: name another folder, or remove that one first")
    to.mkdir(parents=True, exist_ok=True)
    source = replace(source, config=today(source.config))
    preset, choices = presets.restored_choices(source.config)
    beside = _beside(source.config)
    provenance = {
        "name": name,
        "lcm": __version__,
        "exported_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": source.origin,
        "commit": source.summary.get("commit") or commit(),
        "dataset": source.summary.get("dataset"),
        "config_hash": presets.hash_of(source.config),
        "measures": source.summary.get("measures", {}),
        "interval": source.summary.get("interval"),
        "overrides_beside": beside,
        "targets": {
            table.name: _write_plugin(table, to, name, source, preset, choices)
            for table in (named_table(target) for target in targets if target != YAML)
        },
    }
    if YAML in targets:
        groups = [group for group in presets.system_groups(source.config) if group != RECALL]
        presets.write_choices(to, name, preset, groups, beside, _sentence(source))
        again = presets.hash_of(presets.composed_of(to, f"experiment={name}", *beside))
        whole = provenance["config_hash"]
        if again != whole:
            raise LcmError(
                f"{to}: experiment={name} does not compose to what was exported ({again} instead of {whole}): what "
                "stands below memory, and is no reference to a group, cannot be exported"
            )
    evaluated = {key: value for key, value in source.config.items() if key != RECALL}
    text = yaml.safe_dump(evaluated, sort_keys=False, allow_unicode=True)
    presets.write_provenance(to, name, evaluated, text, provenance)
    return provenance


def _beside(config: Mapping[str, Any]) -> list[str]:
    """What no choice of a group can hold, as overrides: keys of the root that are not as they are by default."""
    default = presets.with_references([])
    known = (*conf_folder.groups(), "memory", "stages")
    return [
        presets.override(found.key, at(config, found.key))
        for key, value in config.items()
        if key not in known
        for found in differences(key, value, default.get(key, ABSENT))
    ]


def _write_plugin(
    table: Table, to: Path, name: str, source: ExportSource, preset: RestoredConfig, choices: Choices
) -> dict[str, Any]:
    """Write a plugin's files, and tell what they do not say, of the keys that were tuned in a line."""
    config, tuned = source.config, source.tuned
    told = written(table, config, preset.config, choices)
    check(told.document, table.schema(), table.plugin)
    write_json(to / f"{table.name}.json", told.document)
    files = [f"{table.name}.json"]
    lines = variables(table, told.document, told.by_variable)
    if table.name == "libravdb":
        lines = daemon_environment(told.document)
    if lines:
        files.append(f"{table.name}.env")
        what = f"{name}: {table.plugin} {table.version}"
        write_text(to / files[-1], rendered(lines, what))
    missing = not_expressible(table, config, preset, told)
    lost = lost_keys(tuned, config, preset, missing)
    return {
        "plugin": table.plugin,
        "version": table.version,
        "files": files,
        "tuned": reach(table, tuned, lost, "tuned settings") if tuned else None,
        "not_expressible": missing,
        "refused_by_version": list(table.refuses),
        "taken_from_version": table.taken_from or None,
    }


def source_of(named: str | None, overrides: Sequence[str], tracking: Any, scratch: Path) -> ExportSource:
    """What is exported: a folder, a system by its name, an MLflow run or a registered name, fetched into `scratch`;
    overrides where none is named."""
    if named in conf_folder.groups()["system"] and not Path(named).exists():
        named, overrides = None, [f"system={named}", *overrides]
    if named is None:
        command = command_line.command(overrides)
        plain = [one for one in command.overrides if group_of(one) != RECALL]
        config = composition.composed(plain)
        contracts.refuse_unused(config, plain)
        resolved = building.resolved(config)
        if searching := [one for one in command.overrides if group_of(one) == RECALL]:
            resolved[RECALL] = presets.with_references(searching, RECALL)[RECALL]
        tuned = keys_of_memory(command.overrides, resolved)
        return ExportSource(resolved, {"kind": "overrides", "overrides": list(overrides)}, tuned=tuned)
    numbered = numbered_point(Path(named))
    folder = Path(named) if numbered is None else numbered[0]
    if folder.is_dir():
        run_id = None
        if folder_kind(folder) == "sweep":
            folder, label = best_point(folder)
            say(f"The sweep's best point: {label}: {folder}")
        elif folder_kind(folder) == "study":
            check_pick(str(folder), read_summary(folder), folder)
        if isinstance(tracking, Mlflow):
            run_id = registry.logged_run(tracking.address, folder)
        return _of_folder(folder, {"kind": "folder", "folder": str(folder), "run_id": run_id}, run_id)
    run_id, folder = registry.fetch_named(named, tracking.address, scratch, named)
    if folder_kind(folder) == "study":
        check_pick(named, read_summary(folder))
    if folder_kind(folder) == "sweep":
        raise LcmError(f"{named} is a sweep, whose points are runs of their own: name one, or the sweep's folder")
    return _of_folder(folder, {"kind": "mlflow", "asked": named, "run_id": run_id}, run_id)


def _of_folder(folder: Path, origin: dict[str, Any], run_id: str | None) -> ExportSource:
    run = Run(folder)
    summary, config = run.summary, run.config
    if not config:
        raise LcmError(f"{folder} has no {CONFIG}: name the folder of a run, or of an exported preset")
    if summary.get("kind") == "preset":
        path = folder / presets.PROVENANCE
        try:
            was = json.loads(plain_bytes(path))
            summary = {key: was[key] for key in ("commit", "dataset", "measures", "interval") if was[key]}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LcmError(f"{path} is damaged ({error}); export the preset again") from error
    return ExportSource(config, origin, summary, folder, run_id, keys_of_memory(_tuned(folder, summary), config))


def _tuned(folder: Path, summary: Mapping[str, Any]) -> list[str]:
    """What tells a point from the others of its sweep, what a study searched, else what a run was asked for."""
    if summary.get("kind") == "study":
        return [key.removeprefix("best.") for key in summary.get("params", {}) if key.startswith("best.")]
    label = str(point_record(folder).get("label", ""))
    return label.split(" ") if "=" in label else list(summary.get("overrides", ()))


def _log(source: ExportSource, to: Path, name: str, tracking: Mlflow) -> str:
    """Log the preset: with the run that it is of, else as a run of its own; returns the id of that."""
    run_id = source.run_id
    if run_id is None and source.folder is not None:
        tracking.log(source.folder)
        run_id = registry.logged_run(tracking.address, source.folder)
    if run_id is None:
        tracking.log(to)
        run_id = registry.logged_run(tracking.address, to)
        assert run_id is not None
    else:
        registry.attach(tracking.address, run_id, to, f"presets/{name}")
    say(f"Logged: with MLflow run {run_id} at {tracking.address}")
    return run_id


def _show(target: str, told: Mapping[str, Any]) -> None:
    missing = told["not_expressible"]
    plugin = f"{told['plugin']} {told['version']}"
    if refused := told["refused_by_version"]:
        say(f"{target}: {plugin} refuses, and the file leaves out: {', '.join(refused)}")
    if older := told["taken_from_version"]:
        say(f"{target}: of {plugin} a part of the manifest is known; all else is taken to be as in {older}")
    if not missing:
        say(f"{target}: {plugin} can be told of everything")
        return
    say(f"{target}: not expressible in {plugin}")
    rows = ((one["key"], _brief(one["value"]), _brief(one["plugin_value"]), one["reason"]) for one in missing)
    show_table(("key", "here", "there", "why"), rows)


def _brief(value: Any) -> str:
    return "" if value is None else brief(value)


def _sentence(source: ExportSource) -> str:
    told = source.summary.get("measures", {}).get("recall@10")
    measured = f"; recall@10 {told['value']:.3f} on {source.summary['dataset']['name']}" if told else ""
    label = generated_label(source.summary.get("dataset", {}))
    measured += f" ({label})" if measured and label else ""
    origin = source.origin.get("run_id") or source.origin.get("folder") or " ".join(source.origin.get("overrides", []))
    return f"Exported from {origin or 'the default configuration'}{measured}."
