"""Sixty small defects, planted one at a time in a copy of the checkout: does the fast part of the tests find each?

    .venv/bin/python tests/support/mutants.py            # all sixty: an hour or two
    .venv/bin/python tests/support/mutants.py weibull    # those of one module
    .venv/bin/python tests/support/mutants.py --list     # what would be planted

A seed chooses them among all that can be planted in ten modules: a comparison turned, a constant moved, a sign changed,
a condition negated, a call dropped. A defect is tried on the tests that mirror its module, the conformance laws and the
golden vectors, each stopped by its first failure.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = (
    *("weighted_sum", "diversity", "weibull", "temporal_query", "amac", "planning", "escalation"),
    *("assembly/pairing", "query_text", "significance"),
)
"""Each one module of `lcm` or `eval`, wherever it lies; with its folder where two have the name."""
OF_EACH = 6
SEED = 20260105
COPIED = ("lcm", "eval", "pipelines", "conf", "data", "docs", "tests", "pyproject.toml", "README.md", "Makefile")
TURNED = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """A piece of a line replaced by another."""

    path: Path
    line: int
    start: int
    end: int
    new: str

    def text(self, source: str) -> str:
        lines = source.encode().split(b"\n")  # columns of the syntax tree count bytes
        line = lines[self.line - 1]
        lines[self.line - 1] = line[: self.start] + self.new.encode() + line[self.end :]
        return b"\n".join(lines).decode()

    def __str__(self) -> str:
        line = (ROOT / self.path).read_text().split("\n")[self.line - 1].encode()
        return (
            f"{self.path}:{self.line}: {line.strip().decode()}  [{line[self.start : self.end].decode()} -> {self.new}]"
        )


def mutants(path: Path) -> Iterator[Mutant]:
    """All that can be planted in a module, in the order of its text."""
    source = (ROOT / path).read_text()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                yield from _between(path, source, left, right, op)
            case ast.BinOp(left=left, op=op, right=right):
                yield from _between(path, source, left, right, op)
            case ast.Constant(value=bool() as value):
                yield _instead(path, node, str(not value))
            case ast.Constant(value=int() | float() as value):
                yield _instead(path, node, repr(value + 1))
            case ast.If(test=test) | ast.IfExp(test=test) if test.lineno == test.end_lineno:
                yield _instead(path, test, f"not ({ast.get_source_segment(source, test)})")
            case ast.Expr(value=ast.Call() as call) if call.lineno == call.end_lineno:
                yield _instead(path, call, "pass")


def _between(path: Path, source: str, left: ast.expr, right: ast.expr, op: ast.AST) -> Iterator[Mutant]:
    """The operator turned, where it stands on one line with what is beside it."""
    if type(op) in TURNED and left.end_lineno == right.lineno and left.end_col_offset is not None:
        between = source.split("\n")[right.lineno - 1].encode()[left.end_col_offset : right.col_offset].decode()
        if between.strip(" ") and not set(between) & set("()"):
            yield Mutant(path, right.lineno, left.end_col_offset, right.col_offset, f" {TURNED[type(op)]} ")


def _instead(path: Path, node: ast.expr, new: str) -> Mutant:
    assert node.end_col_offset is not None
    return Mutant(path, node.lineno, node.col_offset, node.end_col_offset, new)


def chosen() -> list[Mutant]:
    rng = random.Random(SEED)
    found = []
    for name in MODULES:
        (path,) = [path for package in ("lcm", "eval") for path in (ROOT / package).rglob(f"{name}.py")]
        all_of_it = sorted(mutants(path.relative_to(ROOT)), key=lambda mutant: (mutant.line, mutant.start, mutant.new))
        found += rng.sample(all_of_it, OF_EACH)
    return found


def is_killed(mutant: Mutant, copy: Path, mark: str) -> bool:
    """Whether a test fails, or never ends, with the defect in the copy."""
    sound = (ROOT / mutant.path).read_text()
    (copy / mutant.path).write_text(mutant.text(sound))
    own = copy / "tests" / mutant.path.parent
    mirrors = [*own.glob(f"test_{mutant.path.stem}*.py"), *([own] if len(mutant.path.parts) > 2 else [])]
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        for part in (mirrors, [copy / "tests" / "conformance", copy / "tests" / "golden"]):
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
            options = ["-m", mark] if mark else []
            done = subprocess.run(
                [*command, *options, *map(str, part)], cwd=copy, env=environment, capture_output=True, timeout=300
            )
            if done.returncode == 1:
                return True
            if done.returncode != 0:
                return b"Error" in done.stdout  # the defect stops the tests from being collected
    except subprocess.TimeoutExpired:
        return True
    finally:
        (copy / mutant.path).write_text(sound)
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="plant only what is in these")
    parser.add_argument("--list", action="store_true", help="plant nothing")
    parser.add_argument(
        "--mark", default="not full and not slow", help="pytest's expression for the part of the tests to run"
    )
    asked = parser.parse_args()
    planted = [mutant for mutant in chosen() if not asked.modules or mutant.path.stem in asked.modules]
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in COPIED if not asked.list else ():
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, Path(folder, name))
        for mutant in planted:
            killed = asked.list or is_killed(mutant, Path(folder), asked.mark)
            survived += not killed
            print("" if asked.list else "killed  " if killed else "SURVIVED", mutant, flush=True)
    print(f"{len(planted)} mutants" + ("" if asked.list else f", {survived} survived"))


if __name__ == "__main__":
    main()
