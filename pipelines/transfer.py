"""lcm transfer PRESET target=PLUGIN [for=VERSION] external.command=[PROGRAM,ARGUMENT] [KEY=VALUE ...] [into=FOLDER]

Does a tuned preset hold where it goes? Default and tuned settings are evaluated here and in an external memory
(docs/external.md) that is given what `lcm export` writes for the plugin: four evaluations of the same questions. Told
are the gain here, the gain there, the share of the gain that reappears there with its interval, and each tuned setting
that was lost on the way: what the plugin cannot be told, and what the memory says that it ignores.

PRESET is what `lcm export` takes, the folder of a run, a sweep (its best point) or a preset, an MLflow run or
NAME@ALIAS; or a system by its name (lancedb_pro_tuned), or settings: 'system=lancedb_pro fusion.dense_weight=0.9'.

  target=PLUGIN     lancedb_pro, lossless_claw or libravdb: whose configuration the memory takes
  for=VERSION       what that version's manifest takes, as of `lcm export`; target=libravdb@1.10 says the same
  external.KEY=...  how the memory is reached, as for `lcm evaluate system=external`; ranking.k=20 and the like too
  from=SETTINGS     what the preset was tuned from; else system=PLUGIN
  measures=A,B      what is told; else recall@10, nDCG@10
  cluster=workspace all questions of a workspace are drawn and change sides together
  into=FOLDER       takes transfer.json, and default and tuned as presets; else below runs/
  --json            transfer.json on standard output, and nothing else there

dataset=, embedder= and what decides how is measured hold for all four. What was evaluated before is found again. Where
the gain here is not beyond chance, no share is told; where no measure has a number there, the exit code is 2. Logged to
MLflow as tracking says (tracking=none: it is not)."""

import json
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from eval.comparison.pairing import Pairing
from eval.comparison.transfer import JSON, told_measures, transferred, write_transfer
from eval.external.session import Told
from eval.run import Run
from eval.table import Column, number, signed
from lcm.errors import LcmError
from lcm.plugins.settings.environment import parsed
from lcm.plugins.settings.tables import TABLES, Table, named_table
from lcm.plugins.settings.translation import differences, reachable
from pipelines.config import building, composition
from pipelines.config.arguments import told_apart
from pipelines.config.command_line import new_folder_of
from pipelines.config.overrides import group_of, key_of
from pipelines.config.presets import override, restored_choices, searched
from pipelines.evaluate import UNTOLD
from pipelines.export import YAML, ExportSource, export, source_of
from pipelines.steps.plugin_reach import is_of
from pipelines.steps.sides import SHARED, evaluated_side
from pipelines.views.output import output
from pipelines.views.progress import progress
from pipelines.views.terminal import brief, kept, log_and_report, say, show_table, tell_json


@dataclass(frozen=True, slots=True)
class TunedSetting:
    """A key at which tuned and default configuration differ, and what became of it."""

    key: str
    default: Any
    tuned: Any
    lost: str = ""
    """Why it does not hold there; empty: the memory is told of it."""


def tuned_settings(
    default: Mapping[str, Any],
    tuned: Mapping[str, Any],
    table: Table,
    not_expressible: Sequence[Mapping[str, Any]],
    ignored: Sequence[str],
) -> list[TunedSetting]:
    """What was tuned, key by key, between configurations with every reference worked out.

    Args:
        not_expressible: of the tuned one, as its export tells.
        ignored: paths of the plugin's settings that the memory says it ignores.
    """

    def reasons(key: str) -> Iterator[str]:
        for entry in not_expressible:
            if any(is_of(key, other) for other in str(entry["key"]).split(", ")):
                yield f"cannot be told: {entry['reason']}"
        for row in (row for path in ignored for row in table.rows if is_of(row.path, path)):
            if any(is_of(key, one.path) for one in row.keys):
                yield f"the memory ignores {row.path}"

    before, after = (restored_choices(dict(one))[0].config for one in (default, tuned))
    return [
        TunedSetting(one.key, one.theirs, one.ours, next(reasons(one.key), ""))
        for group in reachable(after)
        for one in differences(group, after[group], before.get(group))
    ]


_OWN = ("target", "for", "from", "measures", "cluster", "into")
_OF_ALL = (*SHARED, "distractors", "means", "executor", "stages", "cache", "embedder")
_THERE = ("external", "ranking")
_SETTINGS = "ranking.settings"
_SIDES = ("default", "tuned")


@dataclass(frozen=True, slots=True)
class TransferRequest:
    """A command line of `lcm transfer`."""

    preset: str
    target: str
    """The plugin, with the version that is meant behind an @, where one is named."""
    tuned_from: str
    of_all: tuple[str, ...]
    there: tuple[str, ...]
    tracking: tuple[str, ...]
    measures: tuple[str, ...]
    cluster: Literal["none", "workspace"]
    into: str | None


class Exported(NamedTuple):
    """A preset on its way: ours, and what the memory is given."""

    source: ExportSource
    overrides: tuple[str, ...]
    """That choose it here."""
    settings: Mapping[str, Any]
    """That the memory is told."""
    provenance: Mapping[str, Any]
    """Of its export into the plugin."""


def main(arguments: Sequence[str]) -> int:
    """`lcm transfer PRESET target=PLUGIN external.command=[...] [KEY=VALUE ...]`."""
    asked = read_command(arguments)
    tracking = building.build(composition.composed(asked.tracking), "tracking")
    now = datetime.now(UTC)
    with (
        new_folder_of("transfer", asked.into, now) as into,
        tracking.logger() as log,
        tempfile.TemporaryDirectory() as scratch,
    ):
        named = zip(_SIDES, (asked.tuned_from, asked.preset), strict=True)
        sources = {name: _source(one, tracking, Path(scratch) / name) for name, one in named}
        exported = [
            _exported(source, Path(scratch) / f"preset-{name}", f"transfer_{name}", asked.target)
            for name, source in sources.items()
        ]
        record = _transferred(asked, exported, into, Path(scratch), now)
        if output().is_json:
            tell_json(record)
        else:
            show_transfer(record, into / JSON)
        log_and_report(log, into)
    return 0 if any(one["here"] and one["there"] for one in record["gains"]) else UNTOLD


def read_command(arguments: Sequence[str]) -> TransferRequest:
    """Tell the preset, the command's own settings and overrides apart; no setting may be of one side alone."""
    if option := next((argument for argument in arguments if argument.startswith("-")), None):
        raise LcmError(f"no such option: {option!r}; `lcm transfer --help` tells more")
    told = told_apart(arguments, _OWN)
    if empty := next((key for key, value in told.settings.items() if not value), None):
        raise LcmError(f"{empty}= has no value: write {empty}=VALUE, or leave it out")
    groups = {one: group_of(one) for one in told.overrides}
    known = (*_OF_ALL, *_THERE, "tracking")
    presets = [*told.words, *(one for one, group in groups.items() if group not in known)]
    if len(presets) != 1:
        what = " ".join(presets) or "none"
        raise LcmError(f"name one preset, settings of it in quotation marks as one word; got: {what}")
    target = _target(told.settings)
    there = tuple(one for one, group in groups.items() if group in _THERE)
    if not any(groups[one] == "external" for one in there):
        raise LcmError("external.command=[PROGRAM,ARGUMENT] says which memory it goes to: it is missing")
    if own := next((one for one in there if key_of(one).startswith(_SETTINGS)), None):
        raise LcmError(f"{own}: the memory is told the preset's own settings; leave it out")
    return TransferRequest(
        preset=presets[0],
        target=target,
        tuned_from=told.settings.get("from", f"system={named_table(target).name}"),
        of_all=tuple(one for one, group in groups.items() if group in _OF_ALL),
        there=there,
        tracking=tuple(one for one, group in groups.items() if group == "tracking"),
        measures=tuple(told.names("measures")),
        cluster=cast(Any, told.choice("cluster", ("none", "workspace"), "none")),
        into=told.settings.get("into"),
    )


def _target(told: Mapping[str, str]) -> str:
    """The plugin, and its version where one is named."""
    target, version = told.get("target", ""), told.get("for")
    plugin, _, own = target.partition("@")
    if plugin not in TABLES:
        raise LcmError(f"target={target}: whose configuration does the memory take? {', '.join(TABLES)}")
    if own and version is not None:
        raise LcmError(f"target={target} for={version}: name one version, target={plugin} for={version}")
    target = target if version is None else f"{target}@{version}"
    named_table(target)
    return target


def _source(named: str, tracking: Any, scratch: Path) -> ExportSource:
    if "=" in named and not Path(named).exists():
        return source_of(None, shlex.split(named), tracking, scratch)
    return source_of(named, (), tracking, scratch)


def _exported(source: ExportSource, folder: Path, name: str, target: str) -> Exported:
    plugin = named_table(target).name
    told = export(source, folder, name, (YAML, target))["targets"][plugin]
    settings: dict[str, Any] = {"config": json.loads((folder / f"{plugin}.json").read_text())}
    for file in told["files"]:
        if file.endswith(".env"):
            settings["variables"] = parsed((folder / file).read_text(), file)
    return Exported(source, (searched(folder), f"system={name}"), settings, told)


def _transferred(
    asked: TransferRequest, exported: Sequence[Exported], into: Path, scratch: Path, began: datetime
) -> dict[str, Any]:
    default, tuned = exported
    given = (default.source.config, tuned.source.config, named_table(asked.target), tuned.provenance["not_expressible"])
    settings = tuned_settings(*given, ())
    if settings and all(one.lost for one in settings):  # before anything is evaluated
        raise LcmError(
            f"of what {asked.preset} sets otherwise than {asked.tuned_from} ({len(settings)} settings) {asked.target} "
            "can be told nothing, so nothing can hold there: name another target, or from=SETTINGS"
        )
    here, there, memory = [], [], Told()
    with progress() as show:
        for name, one in zip(_SIDES, exported, strict=True):
            side, _ = evaluated_side(f"{name} here", (*one.overrides, *asked.of_all), show)
            here.append(side)
        measures = told_measures(here[0], here[1], asked.measures)
        for name, one in zip(_SIDES, exported, strict=True):
            of_side = ("system=external", *asked.of_all, *asked.there, override(_SETTINGS, one.settings))
            side, parts = evaluated_side(f"{name} there", of_side, show)
            there.append(side)
            memory = parts["memory"].ranking.told(parts["stages"])
    found = transferred((here[0], here[1]), (there[0], there[1]), measures, Pairing(cluster=asked.cluster))
    found = replace(found, notes=tuple(_notes(tuned, here[1], there, memory)))
    told = {
        "target": asked.target,
        "plugin": f"{tuned.provenance['plugin']} {tuned.provenance['version']}",
        "preset": asked.preset,
        "from": asked.tuned_from,
        "memory": " ".join(filter(None, memory[:2])),
        "sides": {
            place: {name: str(side.folder) for name, side in zip(_SIDES, sides, strict=True)}
            for place, sides in (("here", here), ("there", there))
        },
        "settings": [asdict(one) for one in tuned_settings(*given, memory.ignores or ())],
        "ignores_told": memory.ignores is not None,
    }
    for name in _SIDES:
        shutil.copytree(scratch / f"preset-{name}", into / name, dirs_exist_ok=True)
    name, dataset = f"{asked.preset} to {asked.target}", here[0].summary["dataset"]
    return write_transfer(into, name, found, told, dataset, began.timestamp())


def _notes(tuned: Exported, here: Run, there: Sequence[Run], memory: Told) -> list[str]:
    notes = [f"{side.name}: {flag}" for side in there for flag in side.of_external]
    notes += [f"{side.name}: survived: {side.incidents}" for side in there if side.incidents]
    plugin, version = tuned.provenance["plugin"], tuned.provenance["version"]
    if memory.name == plugin and memory.version not in ("", version):
        told = f"the memory is {plugin} {memory.version} and is told what is exported for {version}"
        notes.append(f"{told}: keys and defaults may differ; for=VERSION exports for another")
    if refused := tuned.provenance["refused_by_version"]:
        notes.append(f"{plugin} {version} refuses, and the memory is not told: {', '.join(refused)}")
    if memory.ignores is None:
        notes.append("the memory does not say which settings it ignores: what is told of is not known to hold")
    tuned_on = (tuned.source.summary.get("dataset") or {}).get("digest")
    if tuned_on == here.summary["dataset"]["digest"]:
        notes.append("the preset was measured on this very dataset: if it was tuned on it, the gain here is too good")
    return notes


def show_transfer(record: Mapping[str, Any], page: Path) -> None:
    """Gains in both places and the share that reappears; then each setting that was lost."""
    where = record["memory"] or "the external memory"
    say(f"{record['preset']} against {record['from']}: here, and in {where} as {record['plugin']}")
    titles = ("here", "gain here", "there", "gain there", "share that reappears")
    show_table(("measure", Column("n", "number"), *titles), map(_row, record["gains"]))
    say(f"gains and the share with {record['confidence']:.0%} intervals")
    for one in record["gains"]:
        if one["share"] is None:
            say(f"{one['measure']}: no share is told: {one['why_untold']}")
    settings = record["settings"]
    lost = [one for one in settings if one["lost"]]
    say(f"of {len(settings)} tuned settings {len(settings) - len(lost)} went along, {len(lost)} were lost")
    if lost:
        rows = ((one["key"], brief(one["default"]), brief(one["tuned"]), one["lost"]) for one in lost)
        show_table(("lost", "default", "tuned", "why"), rows)
    for note in record["notes"]:
        say(f"note: {note}")
    kept(page)


def _row(gains: Mapping[str, Any]) -> tuple[Any, ...]:
    places = [cell for place in ("here", "there") for cell in _cells(gains[place])]
    low, high = ("open" if end is None else f"{end:.0%}" for end in (gains["low"], gains["high"]))
    share = "-" if gains["share"] is None else f"{gains['share']:.0%} [{low}, {high}]"
    return gains["measure"], gains["queries"], *places, share


def _cells(row: Mapping[str, Any] | None) -> tuple[str, str]:
    if row is None:
        return "n/a", "n/a"
    ends = "" if row["low"] is None else f" [{signed(row['low'], False)}, {signed(row['high'], False)}]"
    means = f"{number(row['baseline'], False)} -> {number(row['candidate'], False)}"
    return means, f"{signed(row['difference'], False)}{ends}"
