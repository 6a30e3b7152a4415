"""Run every golden vector that has an adapter; a claimed system must have one for each of its `must` files."""

import gzip
import hashlib
import importlib
import json
import math
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.golden import predicates

HERE = Path(__file__).parent
SYSTEMS = ("lancedb_pro", "lossless_claw", "libravdb")
NEWER = {
    "f6e63af3450be7fb3bb8cdb4898e5010afcb87a7": "lancedb_pro_beta11",
    "4214b4809a819ec847fd7ba1463cab131e304d34": "lossless_claw_0_15",
}
"""The preset of a system's newer version, by the commit on which its vectors were measured."""
DEFAULT_TOLERANCE = 1e-9


def folders() -> list[Path]:
    """The bound vectors' folder, then those that LCM_GOLDEN_DIR names, one or several."""
    return [HERE, *(Path(named) for named in os.environ.get("LCM_GOLDEN_DIR", "").split(os.pathsep) if named)]


def files() -> Iterator[tuple[str, str, Path]]:
    """(system, file name, path) of every vector file found; of files with the same content the first.

    A folder is named after the system or after the preset of its version; the commit decides.
    """
    seen = set()
    for folder in folders():
        for named in (*SYSTEMS, *NEWER.values()):
            for path in sorted((folder / named).glob("*.json*")):
                raw = content(path)
                system = NEWER.get(json.loads(raw)["source_commit"], named)
                found = (system, path.name.split(".")[0], hashlib.sha256(raw).digest())
                if found not in seen:
                    yield *found[:2], path
                seen.add(found)


def adapter(system: str, name: str) -> Callable[[Any], Any] | None:
    """The function of that name in a module of the system's folder of adapters."""
    return adapters(system).get(name)


@cache
def adapters(system: str) -> dict[str, Callable[[Any], Any]]:
    modules = [
        importlib.import_module(f"tests.golden.adapters.{system}.{path.stem}")
        for path in sorted((HERE / "adapters" / system).glob("*.py"))
    ]
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__
    }


def content(path: Path) -> bytes:
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


def read(path: Path) -> dict[str, Any]:
    return json.loads(content(path))


def mismatch(found: Any, expected: Any, tolerance: float, where: str = "") -> str | None:
    """The first place where two values differ by more than the tolerance (relative above 1), or None."""
    if isinstance(expected, str) and expected in ("NaN", "Infinity", "-Infinity") and isinstance(found, float):
        return None if repr(found) == repr(float(expected)) else f"{where}: {found!r}, expected {expected}"
    if isinstance(expected, bool) or isinstance(found, bool) or expected is None or isinstance(expected, str):
        same = type(found) is type(expected) and found == expected
        return None if same else f"{where}: {found!r}, expected {expected!r}"
    if isinstance(expected, int | float):
        if not isinstance(found, int | float) or math.isnan(found):
            return f"{where}: {found!r}, expected {expected!r}"
        bound = tolerance * max(1.0, abs(expected))
        return None if abs(found - expected) <= bound else f"{where}: {found!r}, expected {expected!r}"
    if isinstance(expected, list):
        if not isinstance(found, list | tuple) or len(found) != len(expected):
            return f"{where}: {found!r}, expected {expected!r}"
        pairs = [(f, e, f"{where}[{i}]") for i, (f, e) in enumerate(zip(found, expected, strict=True))]
    else:
        if not isinstance(found, dict) or set(found) != set(expected):
            return f"{where}: {found!r}, expected {expected!r}"
        pairs = [(found[key], value, f"{where}.{key}") for key, value in expected.items()]
    return next((text for f, e, at in pairs if (text := mismatch(f, e, tolerance, at))), None)


def deviations(system: str, name: str, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for entry in entries if (entry["system"], entry["file"]) == (system, name)]


def check(vectors: dict[str, Any], run: Callable[[Any], Any], declared: list[dict[str, Any]]) -> dict[str, float]:
    """Run every case; returns the share of deviating cases per defect."""
    tolerance = vectors.get("tolerance", DEFAULT_TOLERANCE)
    wrong, counts = [], {entry["defect"]: 0 for entry in declared}
    for number, case in enumerate(vectors["cases"]):
        found = run(case["input"])
        entry = next((e for e in declared if getattr(predicates, e["predicate"])(case["input"])), None)
        if entry is not None:
            counts[entry["defect"]] += 1
            getattr(predicates, entry["instead"])(case["input"], found, case["expected"])
        elif text := mismatch(found, case["expected"], tolerance):
            wrong.append(f"case {number}{text}")
    assert not wrong, f"{len(wrong)} of {len(vectors['cases'])} cases differ: " + "; ".join(wrong[:5])
    return {defect: count / len(vectors["cases"]) for defect, count in counts.items()}


BOUND = [(system, name, path) for system, name, path in files() if adapter(system, name)]


@pytest.mark.parametrize(
    ("system", "name", "path"),
    BOUND,
    ids=[f"{system}-{name}-{path.parent.parent.name}" for system, name, path in BOUND],
)
def test_golden(system: str, name: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = adapter(system, name)
    assert run is not None
    declared = deviations(system, name, yaml.safe_load((HERE / "deviations.yaml").read_text()))
    shares = check(read(path), run, declared)
    with capsys.disabled():
        for entry in declared:
            share = shares[entry["defect"]]
            print(f"\n{system}/{name}: {share:.1%} of cases deviate on purpose ({entry['defect']})")
            if path.is_relative_to(HERE):
                assert share == pytest.approx(entry["share"], abs=0.005)


def missing_adapters(scope: dict[str, Any], claimed: list[str]) -> list[str]:
    return [f"{s}/{name}" for s in claimed for name in scope[s]["must"] if adapter(s, name) is None]


SCOPES = [path for folder in folders() if (path := folder / "scope.json").exists()]


@pytest.mark.parametrize("path", SCOPES, ids=[path.parent.name for path in SCOPES])
def test_golden_claimed_systems_have_every_adapter(path: Path) -> None:
    claimed = yaml.safe_load((HERE / "claims.yaml").read_text())["claimed"]
    assert missing_adapters(json.loads(path.read_text()), claimed) == []


def test_golden_every_file_of_a_newer_version_runs_or_is_named() -> None:
    named = yaml.safe_load((HERE / "claims.yaml").read_text())["not_built"]
    found = {(system, name) for system, name, _ in files() if system in NEWER.values()}
    bound = {(system, name) for system, name, _ in BOUND}
    without = {(system, name) for system, reasons in named.items() for name in reasons}
    assert found - bound <= without
    assert not without & bound


def test_golden_runner_notices_a_wrong_number() -> None:
    content = {"cases": [{"input": 1, "expected": [{"score": 0.5}]}], "tolerance": 1e-9}
    check(content, lambda _: [{"score": 0.5 + 1e-10}], [])
    with pytest.raises(AssertionError, match="1 of 1 cases differ"):
        check(content, lambda _: [{"score": 0.5 + 1e-8}], [])


def test_golden_vectors_are_bound() -> None:
    assert {(system, name) for system, name, _ in BOUND} >= {
        ("lancedb_pro", "fuse_results"),
        ("lossless_claw", "token_estimate"),
    }
