"""Sweep: every point of a multirun, composed and built before the first one runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from eval.run_folder import SUMMARY, read_summary
from eval.tracking.tracking import Tracking, TrackingError
from lcm.errors import LcmError
from pipelines import configuration
from pipelines.point import PARTS, evaluated
from pipelines.terminal import console, progress, show_points, show_run, warn


def sweep(command: configuration.Command) -> int:
    """`lcm evaluate -m`: run every point; returns the exit code."""
    points = checked_points(command)
    folder = configuration.claimed_folder(command)
    try:
        configuration.run_task(_evaluate, command, folder)
    finally:
        show_points([(label, _measures(folder / below)) for label, below in points], folder)
    return 0


def _evaluate(config: DictConfig) -> None:
    folder = configuration.run_dir()
    tracking: Tracking = configuration.build(config, "tracking")
    with tracking.logger() as log:
        with progress() as show:
            summary = evaluated(config, folder, show)
        show_run(summary, folder)
        try:
            where = log(folder)
        except TrackingError as error:
            warn(str(error))
        else:
            if where:
                console().print(f"Logged: {where}", highlight=False, markup=False)


def checked_points(command: configuration.Command) -> list[tuple[str, Path]]:
    """Compose and build every run of a command, so that a typo in the last one stops the first.

    Returns:
        What tells each run from the others, and its folder below the folder of the command.
    Raises:
        LcmError: naming every run that cannot be built.
    """
    wanted = configuration.overrides_of_points(command)
    common = set(wanted[0]).intersection(*wanted)
    points: list[tuple[str, Path]] = []
    wrong: dict[str, list[str]] = {}
    errors: list[LcmError] = []
    for number, overrides in enumerate(wanted):
        label = " ".join(override for override in overrides if override not in common) or " ".join(overrides)
        try:
            point = configuration.point(command, overrides, number)
            for part in PARTS:
                configuration.build(point.config, part)
            configuration.flag(point.config, "cache")
            configuration.refuse_unused(point.config, overrides)
        except LcmError as error:
            errors.append(error)
            wrong.setdefault(str(error), []).append(label)
        else:
            points.append((label, point.folder))
    if errors:
        told = (_blamed(message, labels, len(wanted)) for message, labels in wrong.items())
        raise LcmError("; ".join(told)) from errors[0]
    return points


def _blamed(message: str, labels: Sequence[str], points: int) -> str:
    """The message, with the runs that it is about unless it is about all."""
    return message if len(labels) == points else f"{message} (in {', '.join(labels)})"


def _measures(folder: Path) -> dict[str, Any] | None:
    """A run's measures, or None where it did not finish."""
    return read_summary(folder)["measures"] if (folder / SUMMARY).is_file() else None
