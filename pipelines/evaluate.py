"""Evaluate a memory system: compose, replay, measure, keep, log, show."""

from collections.abc import Sequence

from omegaconf import DictConfig

from eval.experiment.run_folder import begin_run
from eval.tracking.tracking import Tracking, TrackingError
from pipelines.config import building, command_line
from pipelines.point import experiment_of, measured
from pipelines.sweep import sweep
from pipelines.views.terminal import console, progress, show_run, warn


def main(arguments: Sequence[str]) -> int:
    """`lcm evaluate [GROUP=CHOICE ...] [KEY=VALUE ...] [-m]`."""
    command = command_line.command(arguments)
    if not command.is_run:
        command_line.run_task(evaluate, command)
        return 0
    if command.is_multirun:
        return sweep(command)

    def checked(config: DictConfig) -> None:
        building.refuse_unused(config, command.overrides)
        evaluate(config)

    folder = command_line.claimed_folder(command)
    try:
        command_line.run_task(checked, command, folder)
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()
    return 0


def evaluate(config: DictConfig) -> None:
    """One run: the story of the whole project."""
    folder = command_line.run_dir()
    begin_run(folder)
    tracking: Tracking = building.build(config, "tracking")
    experiment = experiment_of(config)  # a mistake in it stops before anything is logged
    with tracking.logger() as log:
        with progress() as show:
            summary = measured(config, experiment, folder, show)
        show_run(summary, folder)
        try:
            where = log(folder)
        except TrackingError as error:
            warn(str(error))
        else:
            if where:
                console().print(f"Logged: {where}", highlight=False, markup=False)
