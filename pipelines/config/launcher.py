"""Launching: points are handed to a launcher of Hydra's, joblib or ray.

Hydra has no public way to call a launcher but `hydra.main`, which would compose every point a second time and take the
whole command line: hence the one name here that is Hydra's own, `Callbacks`, without which no launcher can be set up.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra import initialize_config_dir
from hydra._internal.callbacks import Callbacks
from hydra.compose import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.types import HydraContext
from omegaconf import DictConfig, OmegaConf

from eval.worker_process import begin_worker
from lcm.faults import MachineFaultError
from pipelines.config.composition import explained, quoted
from pipelines.config.conf_folder import conf_dir, config_name
from pipelines.config.trust import check_called


@dataclass(frozen=True, slots=True)
class _Job:
    """What a launcher runs, maybe in another process: the task with the folder that is meant for it."""

    task: Callable[[DictConfig, Path], None]
    caller: int | None
    """The process that waits for it, where workers are its children."""

    def __call__(self, config: DictConfig) -> str | None:
        """Returns what the machine refuses, which is no error of the job that Hydra need tell."""
        if self.caller != os.getpid():
            begin_worker(self.caller)
        try:
            self.task(config, Path(HydraConfig.get().runtime.output_dir))
        except MachineFaultError as fault:
            return str(fault)
        return None


def launch(
    task: Callable[[DictConfig, Path], None], settings: Sequence[str], jobs: dict[Path, Sequence[str]], pipeline: str
) -> None:
    """Hand jobs to the launcher that `hydra/launcher` names; returns when all are done.

    Args:
        task: called once a job, maybe in another process: importable there by its name.
        settings: overrides of Hydra's own, `hydra/launcher` among them, and of what all jobs choose.
        jobs: folder -> overrides; all folders lie in one.
    Raises:
        The first error that is the launcher's own, or a job's; MachineFaultError where the machine refuses.
    """
    (place,) = {folder.parent.resolve() for folder in jobs}
    beside = [*settings, f"hydra.sweep.dir={quoted(str(place))}"]
    with explained(beside, pipeline), initialize_config_dir(version_base="1.3", config_dir=str(conf_dir())):
        config = compose(config_name(pipeline), beside, return_hydra_config=True)
        check_called(OmegaConf.to_container(config.hydra, resolve=False))  # type: ignore[arg-type]
        context = HydraContext(config_loader=GlobalHydra.instance().config_loader(), callbacks=Callbacks(config))
        has_children = "ray" not in config.hydra.launcher._target_  # Ray ends its workers with its driver
        job = _Job(task, os.getpid() if has_children else None)
        launcher = Plugins.instance().instantiate_launcher(hydra_context=context, task_function=job, config=config)
        each = [[*own, f"hydra.sweep.subdir={quoted(folder.name)}"] for folder, own in jobs.items()]
        for returned in launcher.launch(each, initial_job_idx=0):
            if (refusal := returned.return_value) is not None:  # raises what the job raised
                raise MachineFaultError(refusal)
