"""Every field of a component is read, so no key of a YAML is dead: found by reading the code, not by running it.

That a field has an effect is its unit test's matter, and `tests/test_knobs.py` turns every leaf of every YAML.
"""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

from pipelines.config import building
from tests.conftest import ROOT
from tests.test_configuration import NODES

READ_BY_ITS_HOLDER = {
    **{
        f"{estimator}.image_tokens": "lcm/transcript/message_tokens.py"
        for estimator in ("CodePoints", "Recorded", "ScriptAware", "ScriptChars", "Utf16Units", "Utf8Bytes")
    },
    "RoutedRanking.hybrid": "lcm/retrieval/ranking/routed.py",
    "RoutedRanking.tag": "lcm/retrieval/ranking/routed.py",
    "RoutedRanking.vector": "lcm/retrieval/ranking/routed.py",
}
"""Field -> the module that reads it, where that is neither of the class's own package nor imports the class."""
BY_NAME = {"lcm/retrieval/ranking/routed.py": {"hybrid", "tag", "vector"}}
"""Module -> fields that it reads by a name that the code computes."""


def reads(tree: ast.AST, is_checking: bool = False) -> Iterator[str]:
    """Yield the attributes that code loads, and `*_suffix` for one that it loads by an f-string; a check in
    `__post_init__` (the test of an `if`, a `raise`, a call of `check_...`) is no reading."""
    match tree:
        case ast.Attribute(attr=name, ctx=ast.Load()):
            yield name
        case ast.Call(func=ast.Name("getattr"), args=[_, ast.JoinedStr(values=[*_, ast.Constant(value=suffix)]), *_]):
            yield f"*{suffix}"
    for name, child in ast.iter_fields(tree):
        for one in child if isinstance(child, list) else [child]:
            if isinstance(one, ast.AST) and not (is_checking and is_check(tree, name, one)):
                yield from reads(one, is_checking or getattr(one, "name", None) == "__post_init__")


def is_check(parent: ast.AST, name: str, node: ast.AST) -> bool:
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith("check_")
    return is_call or isinstance(node, ast.Raise) or (isinstance(parent, ast.If) and name == "test")


@cache
def read_in(module: Path) -> frozenset[str]:
    return frozenset(reads(ast.parse(module.read_text())))


@cache
def modules() -> dict[Path, str]:
    return {
        path: path.read_text() for package in ("lcm", "eval", "pipelines") for path in (ROOT / package).rglob("*.py")
    }


def dead_fields(kind: type) -> list[str]:
    """Return the fields that no module of the class's package reads, nor one that imports the class."""
    own = {Path(inspect.getfile(one)) for one in kind.__mro__ if one is not object}
    near = {
        path
        for path, text in modules().items()
        if path.parent in {one.parent for one in own}
        or f"import {kind.__name__}" in text
        or f", {kind.__name__}" in text
    }
    found = set().union(*map(read_in, own | near))
    return [
        f"{kind.__name__}.{field.name}"
        for field in fields(kind)
        if not any(field.name == name or (name[0] == "*" and field.name.endswith(name[1:])) for name in found)
    ]


def test_every_field_of_a_component_is_read() -> None:
    kinds = {building.component(node["_target_"]) for _, node in NODES.values()}
    dead = [name for kind in kinds if isinstance(kind, type) for name in dead_fields(kind)]
    assert sorted(dead) == sorted(READ_BY_ITS_HOLDER)
    for field, module in READ_BY_ITS_HOLDER.items():
        assert field.partition(".")[2] in read_in(ROOT / module) | BY_NAME.get(module, set()), field
