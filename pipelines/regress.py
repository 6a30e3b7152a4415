"""Compare a candidate with a baseline, query by query, and say whether anything became worse."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from eval.experiment.run_folder import SUMMARY
from eval.regression.comparison import Comparison
from eval.regression.comparison_folder import MARKDOWN, write_comparison
from eval.regression.limit import limit_of
from eval.regression.regression import Regression
from eval.regression.side import read_side
from eval.tracking.tracking import Log, Tracking, TrackingError
from lcm.errors import LcmError
from pipelines.compared_sides import Compared, compared_sides
from pipelines.config import building, command_line, composition, plugin_environment
from pipelines.views.comparison_table import show_comparison
from pipelines.views.terminal import console, progress, warn

HELP = """lcm regress BASELINE [CANDIDATE] [into=FOLDER] [name=NAME] [GROUP=CHOICE] [KEY=VALUE]

Has the candidate become worse than the baseline? Both are compared query by query: a permutation test and a bootstrap
interval for each measure, over all queries and in each category, corrected for their number (Holm). What is tolerated
stands in conf/regress.yaml: regress.measures.recall@10.tolerance=0.02, and for another measure
regress.measures={MRR:{tolerance:0.01,detectable:0.05}}. docs/regress.md tells more.

Each side is one of:
  a folder that `lcm evaluate` wrote, or its summary.json beside per_query.parquet and queries.parquet
  an MLflow run id, or a registered alias such as champion, NAME@champion (tracking.uri=...; name=NAME, unified)
  a preset that `lcm export` wrote, a folder or a YAML file: evaluated now, on the other side's dataset
Without a candidate, what the overrides describe is evaluated now, on the baseline's dataset unless they name one:
  lcm regress champion system=unified fusion.dense_weight=0.5

into=FOLDER takes report.md, report.xml (JUnit), report.json and verdict.parquet; logged to MLflow as tracking says.
--cfg job shows every key.
Exit code 0: fine; 1: regressed; 2: it could not be told, or the two cannot be compared."""

_PIPELINE = "regress"
_OURS = ("baseline", "candidate", "into", "name")
_NAME = "unified"
_LIMIT = re.compile(r"regress\.measures\.(.+)\.(tolerance|detectable)")


def main(arguments: Sequence[str]) -> int:
    """`lcm regress BASELINE [CANDIDATE] [KEY=VALUE ...]`."""
    if {"-h", "--help"} & set(arguments):
        console().print(HELP, highlight=False, markup=False)
        return 0
    if not any(arguments):  # as in a script whose variable is not set: a gate must not pass then
        raise LcmError("lcm regress needs a baseline: a run folder, the id of an MLflow run, or NAME@ALIAS")
    is_look = "--cfg" in arguments
    arguments = [argument for argument in arguments if not is_look or argument not in ("--cfg", "job")]
    ours, overrides = _settings(arguments)
    given = [*plugin_environment.environment_overrides(overrides, _PIPELINE), *overrides]
    config = composition.composed(given, _PIPELINE)
    if is_look:
        console().print(building.resolved_text(config), highlight=False, markup=False)
        return 0
    if "baseline" not in ours:
        raise LcmError("name a baseline: a run folder, an MLflow run id, an alias such as champion, or a preset")
    regression = _regression(config)
    tracking: Tracking = building.build(config, "tracking")
    now = datetime.now(UTC)
    into = _folder(ours.get("into"), now)
    asked = Compared(
        baseline=ours["baseline"],
        candidate=ours.get("candidate"),
        name=ours.get("name", _NAME),
        uri=(config.get("tracking") or {}).get("uri"),
        overrides=tuple(given),
    )
    try:
        with tracking.logger() as log:
            comparison = _compared(asked, regression, into)
            write_comparison(into, comparison, _flat(config), building.resolved_text(_judging(config)), now)
            show_comparison(comparison, into / MARKDOWN)
            _tell(log, into)
    finally:
        if not any(into.iterdir()):
            into.rmdir()
    return comparison.exit_code


def _compared(asked: Compared, regression: Regression, into: Path) -> Comparison:
    with progress() as show:
        found = compared_sides(asked, into, show)
    baseline, candidate = (read_side(side.folder, side.name) for side in found)
    return regression.compare(baseline, candidate)


def _regression(config: DictConfig) -> Regression:
    """How it is judged.

    Limits are looked at one by one: of what does not fit its type, configuration shows the whole map of them.
    """
    measures = building.resolved(_judging(config))["regress"]["measures"]
    for measure, settings in measures.items() if isinstance(measures, dict) else ():
        try:
            if settings is not None:
                limit_of(str(measure), settings)
        except ValueError as error:
            raise LcmError(f"regress.{error}") from None
    regression: Regression = building.build(config, "regress")
    return regression


def _tell(log: Log, into: Path) -> None:
    try:
        where = log(into)
    except TrackingError as error:
        warn(str(error))
    else:
        if where:
            console().print(f"Logged: {where}", highlight=False, markup=False)


def _settings(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The sides and our own keys, and what is left for the configuration."""
    ours: dict[str, str] = {}
    overrides: list[str] = []
    for argument in arguments:
        key, is_setting, value = argument.partition("=")
        if is_setting and key in _OURS and not Path(argument).exists():
            if not value:
                raise LcmError(f"{key}= has no value: write {key}=VALUE, or leave it out")
            ours[key] = value
        elif is_setting and not Path(argument).exists():
            overrides.append(_readable(argument))
        elif argument.startswith("-"):
            raise LcmError(f"no such option: {argument!r}; `lcm regress --help` tells more")
        elif free := [side for side in ("baseline", "candidate") if side not in ours]:
            ours[free[0]] = argument
        else:
            raise LcmError(f"{argument}: two sides are named already, {ours['baseline']} and {ours['candidate']}")
    return ours, overrides


def _readable(override: str) -> str:
    """An override as Hydra takes it, which reads `@` in a key as something else and refuses a measure that is new."""
    key, _, value = override.lstrip("+").partition("=")
    if key.startswith("hydra.run."):
        raise LcmError(f"{override}: write into=FOLDER")
    if found := _LIMIT.fullmatch(key):
        return f"+regress.measures={{{found[1]}:{{{found[2]}:{value}}}}}"
    return f"+{key}={value}" if key == "regress.measures" else override


def _folder(into: str | None, now: datetime) -> Path:
    """Make the folder of the comparison."""
    wanted = Path(into) if into else Path("runs") / f"{now:%Y-%m-%d}" / f"{now:%H-%M-%S}-regress"
    if (wanted / SUMMARY).exists():
        raise LcmError(f"into={wanted} holds a complete run or comparison: name another folder, or remove that first")
    try:
        return command_line.made_folder(wanted, may_exist=into is not None)
    except OSError as error:
        raise LcmError(f"into={wanted} cannot be made ({error.strerror}); name another") from error


def _judging(config: DictConfig) -> DictConfig:
    """The part of the configuration that a comparison depends on, beside its sides."""
    return OmegaConf.masked_copy(config, "regress")


def _flat(config: DictConfig) -> dict[str, Any]:
    plain = building.resolved(_judging(config))["regress"]
    flat: dict[str, Any] = {}
    for key, value in plain.items():
        if key == "measures":
            for measure, limits in value.items():
                flat |= {f"measures.{measure}.{name}": limit for name, limit in (limits or {}).items()}
        elif key != "_target_":
            flat[key] = value
    return flat
