"""The shape of the tree: which way imports point, where code lies, that all is reached, and how long files are."""

import ast
import importlib
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
CONF = ROOT / "conf"

FORBIDDEN = {
    "lcm": {"eval", "pipelines", "hydra", "omegaconf", "mlflow"},
    "eval": {"pipelines", "hydra", "omegaconf"},
    "pipelines": {"tests"},
}
ONLY_IN = {
    "hydra": {f"pipelines.config.{name}" for name in ("check", "command_line", "composition", "overrides")},
    "starlette": {"eval.loopback", "eval.judging.page", "eval.serving.browser"},
    "uvicorn": {"eval.loopback"},
    "mcp": {"lcm.plugins.mcp_server", "eval.external.mcp"},
    "mlflow": {
        "eval.tracking.place",
        "eval.tracking.mlflow_log",
        "eval.tracking.mlflow_traces",
        "eval.tracking.registry",
    },
}
HEAVY = {"torch", "transformers", "mlflow", "optimum"}

FLOORS = {
    package: rooms.split()
    for package, rooms in {
        "lcm": """
            redaction errors faults limits consent checks clock collection encoding javascript text files given
            given_parquet derived records protocols token_estimator language_model transcript store writing retrieval
            compaction context memory plugins __main__
        """,
        "eval": """
            significance stopwatch table loopback download mirror executor questions dataset cache replay answering
            shape configuration measures run models external judging arms experiment ladder tracking comparison
            regression batch study leaderboard report serving
        """,
        "pipelines": "config views steps commands",
    }.items()
}
"""The rooms of a package from the ground up: each imports only what lies below it."""

ORIGINALS = re.compile("lancedb|lossless_?claw|libravdb|openclaw", re.IGNORECASE)
FORMATS = {"lcm.transcript.openclaw", "OpenClawReader"}
"""A format of transcripts bears the name of the program that writes it."""

LIBRARY = {
    "lcm.transcript.frame": "docs/transcripts.md",
}
"""What a host or a notebook imports, and the page that says how: no command needs it."""

MOST_LINES = 600


@cache
def modules() -> Mapping[str, Path]:
    """Every module of the product by its dotted name."""
    paths = (path for package in FORBIDDEN for path in sorted((ROOT / package).rglob("*.py")))
    named = ((".".join(path.relative_to(ROOT).with_suffix("").parts), path) for path in paths)
    return {name.removesuffix(".__init__"): path for name, path in named}


DOORS = ("lcm", "eval")
"""Packages whose `__init__` gives names of what lies inside, when these are asked for: it is above all floors."""


@cache
def imports() -> Mapping[str, set[str]]:
    """Of each module all that it imports anywhere, within functions and for types alone too, by dotted names."""
    found: dict[str, set[str]] = {}
    for module, path in modules().items():
        found[module] = names = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module} line {node.lineno}: imports are absolute here"
                within = (f"{node.module}.{alias.name}" for alias in node.names)
                names.update(name if name in modules() else str(node.module) for name in within)
    return found


def own(module: str) -> set[str]:
    """The modules of this project that a module imports; the version, which lies in a door, is of no floor."""
    return imports()[module] & modules().keys() - {module, *DOORS}


def targets(node: object) -> Iterator[str]:
    """What a configuration names as classes, at any depth."""
    if isinstance(node, dict):
        yield from (str(value) for key, value in node.items() if key == "_target_")
        for child in node.values():
            yield from targets(child)
    elif isinstance(node, list):
        for child in node:
            yield from targets(child)


@cache
def configurations() -> Mapping[Path, object]:
    return {path: yaml.load(path.read_text(), yaml.BaseLoader) for path in sorted(CONF.rglob("*.yaml"))}


def room(module: str) -> str:
    """What of its package a module lies in; the commands of `pipelines` stand side by side on top."""
    package, name, *inside = module.split(".")
    return "commands" if package == "pipelines" and not inside and name not in FLOORS["pipelines"] else name


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Some circle of a graph; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return []


def test_packages_import_one_way() -> None:
    wrong = [
        f"{module} imports {name}"
        for module in modules()
        for name in sorted(imports()[module])
        if name.split(".")[0] in FORBIDDEN[module.split(".")[0]]
    ]
    assert not wrong


def test_no_import_runs_up_the_floors() -> None:
    up, unplaced = [], set()
    for package, floors in FLOORS.items():
        inside = [name for name in modules() if name.startswith(f"{package}.")]
        unplaced |= {f"{package}.{room(name)}" for name in inside if room(name) not in floors}
        up += [
            f"{name} imports {other}"
            for name in inside
            for other in sorted(own(name))
            if other.startswith(f"{package}.")
            and {room(name), room(other)} <= set(floors)
            and floors.index(room(other)) > floors.index(room(name))
        ]
    assert not unplaced
    assert not up


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert not circle({module: own(module) for module in modules()})


def test_below_plugins_nothing_is_named_after_an_original() -> None:
    named = []
    for module, path in modules().items():
        if module.split(".")[0] == "pipelines" or module.startswith("lcm.plugins"):
            continue
        names = {module} | {
            str(node.name)
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        named += [f"{module}: {name}" for name in sorted(names - FORMATS) if ORIGINALS.search(name)]
    assert not named


def test_the_code_of_a_group_lies_in_the_module_or_folder_of_its_name() -> None:
    groups = {path.name for path in CONF.iterdir() if path.is_dir()}
    wrong = []
    nulls, others = set(), set()
    for path, node in configurations().items():
        target = node.get("_target_") if isinstance(node, dict) else None
        if target is None or path.parent.name not in groups:
            continue
        (nulls if path.stem == "none" else others).add(target)
        *folders, module, _ = target.split(".")
        if path.parent.name not in (module, *[name for name in folders if name in groups][-1:]):
            wrong.append(f"{path.relative_to(ROOT)}: {target} lies in nothing called {path.parent.name}")
    assert not wrong
    assert not nulls & others, "the null choice is a class of its own"


def test_every_module_is_reached() -> None:
    """From a command, from a configuration, or from a page that tells a host to import it."""
    named = (target.rpartition(".")[0] for node in configurations().values() for target in targets(node))
    waiting = [*named, *LIBRARY, "lcm.__main__", *(module for module in modules() if module.startswith("pipelines"))]
    reached: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module in modules() and module not in reached:
            reached.add(module)
            waiting += own(module)
    packages = {name for name, path in modules().items() if path.name == "__init__.py"}
    assert sorted(modules().keys() - reached - packages) == []


def test_the_library_is_documented() -> None:
    missing = [
        f"{page} does not name {name}" for name, page in LIBRARY.items() if name not in (ROOT / page).read_text()
    ]
    assert not missing
    assert LIBRARY.keys() <= modules().keys()


def test_files_are_short() -> None:
    tests = (ROOT / "tests").rglob("*.py")
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in (*modules().values(), *tests)
    }
    too_long = {name for name, lines in lengths.items() if lines > MOST_LINES}
    assert sorted(too_long) == []


def test_a_foreign_package_is_imported_in_one_place() -> None:
    found = defaultdict(set)
    for module in modules():
        for package in ONLY_IN.keys() & {name.split(".")[0] for name in imports()[module]}:
            found[package].add(module)
    assert found == ONLY_IN


@pytest.mark.parametrize("package", DOORS)
def test_a_door_gives_what_a_type_checker_sees(package: str) -> None:
    door = importlib.import_module(package)
    told = ast.parse(Path(door.__file__ or "").read_text())
    seen = {
        alias.name: node.module
        for block in told.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == door.DOOR
    assert all(getattr(door, name).__name__ == name for name in door.DOOR)
    assert door.DOOR.keys() < set(dir(door))
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Nothing'"):
        getattr(door, "Nothing")  # noqa: B009


def test_importing_brings_in_nothing_heavy() -> None:
    """Nor does the library bring in the harness or its configuration."""
    unwanted = {
        "lcm.protocols.retrieval": HEAVY | FORBIDDEN["lcm"],
        "lcm.memory.memory": HEAVY | FORBIDDEN["lcm"],
        "eval.experiment.experiment": HEAVY | FORBIDDEN["eval"],
        "pipelines.evaluate": HEAVY,
    }
    brought = {}
    for module, names in unwanted.items():
        code = f"import json, sys, {module}; print(json.dumps(sorted({names} & set(sys.modules))))"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        brought[module] = json.loads(done.stdout)
    assert brought == {module: [] for module in unwanted}
