"""A memory that is a Python class, named by its dotted path: it works in a process of its own, so that it may hang,
crash or print without harm."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval.external import object_host
from eval.external.line_process import LineProcess
from eval.external.stdio import beside, given
from lcm.checks import check_range
from lcm.consent import is_trusted
from lcm.errors import LcmError

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class PythonObject:
    """Makes an object for every workspace, by this Python, in a process that hears of nothing else."""

    target: str = ""
    """The dotted path of a class of a package that is trusted: trust=[PACKAGE]."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What it is made with: JSON."""
    environment: Sequence[str] = ()
    """Names of variables that it is given besides PATH and the locale; HOME is an empty folder unless it is named."""
    timeout_s: float = 60.0
    """For each call."""
    start_s: float = 120.0
    """For the first call of a workspace, while modules are imported."""
    reply_mib: float = 16.0
    """A reply may be no larger."""

    def __post_init__(self) -> None:
        check_range(self, "timeout_s", "start_s", "reply_mib", gt=0)

    @property
    def modules(self) -> Sequence[str]:
        return [self.target.rpartition(".")[0]]

    def open(self) -> LineProcess:
        package = self.target.partition(".")[0]
        if not package:
            raise LcmError("external.target names no class: write external.target=PACKAGE.MODULE.CLASS")
        if not is_trusted(self.target):
            raise LcmError(
                f"external.target: {self.target!r} is code of {package}: if you trust it to run, say trust=[{package}]"
            )
        command = [sys.executable, "-m", object_host.__name__, self.target, json.dumps(dict(self.settings))]
        variables = {"PYTHONPATH": beside(sys.path), **given(self.environment)}
        return LineProcess(command, variables, self.timeout_s, self.start_s, int(self.reply_mib * _MIB))
