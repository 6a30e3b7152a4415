"""What an installation of lcm weighs, and which of its requirements drags in what.

    pip install . && python experiments/install_size.py

Sizes are those of the files that each distribution has installed. Prints a table in Markdown: what a requirement weighs
with all that no other requirement needs, so that leaving it out would free as much.
"""

from collections.abc import Collection
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = "lcm-harness"
HERE: dict[str, Distribution] = {canonicalize_name(one.metadata["Name"]): one for one in distributions()}


@cache
def megabytes(name: str) -> float:
    paths = (Path(str(file.locate())) for file in HERE[name].files or ())
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


@cache
def required(name: str) -> frozenset[str]:
    """Extras left out."""
    told = map(Requirement, HERE[name].requires or ())
    needed = (one for one in told if one.marker is None or one.marker.evaluate({"extra": ""}))
    return frozenset(canonicalize_name(one.name) for one in needed) & HERE.keys()


def reached(names: Collection[str]) -> set[str]:
    """These, and all that they need."""
    found: set[str] = set()
    left = list(names)
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            left += required(name)
    return found


def main() -> None:
    direct = required(ROOT)
    everything = reached([ROOT])
    print(f"{len(everything)} packages, {sum(map(megabytes, everything)):,.0f} MB\n")
    print("| requirement | its own MB | MB with what it alone drags in | which is |\n|---|--:|--:|---|")
    alone = {name: reached([name]) - reached(direct - {name}) for name in direct}
    weight = {name: sum(map(megabytes, only)) for name, only in alone.items()}
    for name in sorted(direct, key=lambda name: (-weight[name], -megabytes(name))):
        dragged = sorted(alone[name] - {name}, key=megabytes, reverse=True)
        print(f"| {name} | {megabytes(name):.1f} | {weight[name]:.1f} | {', '.join(dragged[:5])} |")


if __name__ == "__main__":
    main()
