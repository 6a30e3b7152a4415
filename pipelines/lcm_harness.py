"""The two doors of an installed lcm: the command `lcm`, and `import lcm_harness as lcm` of a program.

They open where `lcm`, `eval` and `pipelines` are this project's own.

The names are common: another distribution, or a folder on PYTHONPATH, may stand before them or have written over them.
Installed, this file lies beside those packages under the name of the distribution, which nobody else has; it imports
nothing of them before it has looked where they lie.
"""

import sys
from importlib import import_module
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

DISTRIBUTION = "lcm-harness"
"""The distribution: on PyPI, `lcm` is another project."""
PACKAGES = {"lcm": "store/schema_1.sql", "eval": "run.py", "pipelines": "cli.py"}
"""Package -> a file by which it is known to be ours; our packages have an `__init__.py` that is empty or names us."""


DOOR = {
    **dict.fromkeys(("Comparison", "Sweep", "compare", "evaluate", "memory", "sweep"), "pipelines.library"),
    **dict.fromkeys(("LcmError", "Memory", "Message", "Query", "System", "Transcript", "read_transcripts"), "lcm"),
    "Run": "eval",
}
"""Name that a program finds here -> the module that it comes from."""


def __getattr__(name: str) -> object:
    if name not in DOOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if told := collision():
        raise ImportError(told)
    return getattr(import_module(DOOR[name]), name)


def __dir__() -> list[str]:
    return sorted(DOOR)


def main() -> None:
    """Run `lcm`, or say on one line which package is another's."""
    if told := collision():
        sys.stderr.write(f"lcm: {told}\n")
        sys.exit(2)
    from pipelines.cli import main as run

    run()


def collision() -> str | None:
    """Whose package stands where one of ours should, and what to do; None where all are ours, in one folder."""
    found = {package: _folder(package) for package in PACKAGES}
    foreign = next((package for package, folder in found.items() if not _is_ours(package, folder)), None)
    if foreign is None:
        parents = sorted({str(folder.parent) for folder in found.values() if folder is not None})
        told = f"parts of {DISTRIBUTION} lie in {' and '.join(parents)}: leave one on PYTHONPATH"
        return told if len(parents) > 1 else None
    owners = sorted(set(packages_distributions().get(foreign, [])) - {DISTRIBUTION})
    whose = f" of the distribution {', '.join(owners)}" if owners else ""
    return (
        f"the package {foreign!r} that Python finds is not {DISTRIBUTION}'s but {found[foreign] or 'missing'}{whose}: "
        f"take its folder off PYTHONPATH, or install {DISTRIBUTION} into an environment of its own"
    )


def _folder(package: str) -> Path | None:
    spec = find_spec(package)
    places = [*(spec.submodule_search_locations or ()), spec.origin] if spec is not None else []
    return next((Path(place) for place in places if place is not None), None)


def _is_ours(package: str, folder: Path | None) -> bool:
    """Another's `__init__.py`, written over ours, says something, and not that."""
    if folder is None or not (folder / PACKAGES[package]).is_file():
        return False
    first = folder / "__init__.py"
    return first.is_file() and (not first.stat().st_size or DISTRIBUTION in first.read_text("utf-8", "replace"))
