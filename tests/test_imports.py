"""Imports point one way: pipelines -> eval -> lcm; heavy and foreign things are imported in one place each."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = [
    str(path.relative_to(ROOT))
    for package in ("lcm", "eval", "pipelines")
    for path in sorted((ROOT / package).rglob("*.py"))
]
FORBIDDEN = {
    "lcm": {"eval", "pipelines", "hydra", "omegaconf", "mlflow"},
    "eval": {"pipelines", "hydra"},
    "pipelines": {"tests"},
}
ONLY_IN = {
    "hydra": {
        "pipelines/config/composition.py",
        "pipelines/config/building.py",
        "pipelines/config/command_line.py",
        "pipelines/config/explanation.py",
    },
    "mlflow": {"eval/tracking/mlflow_log.py", "eval/tracking/registry.py"},
}


@cache
def imported(module: str) -> frozenset[str]:
    """The top-level packages that a module imports anywhere, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / module).read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} line {node.lineno}: imports are absolute here"
            found.add(str(node.module).partition(".")[0])
    return frozenset(found)


def test_imports_point_one_way() -> None:
    wrong = {module: imported(module) & FORBIDDEN[Path(module).parts[0]] for module in MODULES}
    assert {module: packages for module, packages in wrong.items() if packages} == {}


@pytest.mark.parametrize("package", ONLY_IN)
def test_a_package_is_imported_in_one_place(package: str) -> None:
    assert {module for module in MODULES if package in imported(module)} == ONLY_IN[package]


@pytest.mark.parametrize("module", ["lcm.memory.memory", "eval.experiment.experiment", "pipelines.evaluate"])
def test_importing_brings_in_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{'torch', 'transformers', 'mlflow', 'optimum'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("module", ["lcm.memory.memory", "lcm.protocols"])
def test_the_library_knows_neither_the_harness_nor_its_configuration(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({FORBIDDEN['lcm']} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
