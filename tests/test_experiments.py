"""The scripts behind the figures import what is there: nothing else runs them but who repeats a figure."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

EXPERIMENTS = sorted((ROOT / "experiments").glob("*.py"))
PACKAGES = ("lcm", "eval", "pipelines", "benchmarks", "tests")


@cache
def defined(module: str) -> frozenset[str]:
    """The names at the top of a module, or the modules of a package."""
    path = ROOT / module.replace(".", "/")
    inside = {one.stem for one in path.glob("*")} if path.is_dir() else set()
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    names = set(inside)
    for node in ast.parse(source.read_text()).body if source.is_file() else ():
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
        else:
            names.update(one.id for one in ast.walk(node) if isinstance(one, ast.Name))
    return frozenset(names)


@pytest.mark.parametrize("script", EXPERIMENTS, ids=lambda script: script.stem)
def test_what_a_script_imports_is_there(script: Path) -> None:
    missing = [
        f"line {node.lineno}: {alias.name} of {node.module}"
        for node in ast.walk(ast.parse(script.read_text()))
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in PACKAGES
        for alias in node.names
        if alias.name not in defined(str(node.module))
    ]
    assert not missing
