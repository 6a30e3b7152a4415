"""One system, one swap of a part at a time: what the tables of `lancedb_pro_parts.py` and `libravdb_parts.py` share."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from eval.cache.stage_cache import Fingerprint, digest
from eval.run import read_summary
from eval.significance import bootstrap_means

PRESET = "the preset"
Swaps = Mapping[str, Mapping[str, Sequence[str]]]
"""Part -> name of a swap -> the overrides that make it."""
MEASURES = ("recall@5", "recall@10", "nDCG@10", "tokens@10")
COMMON = ("arms=none", "tracking=none", "measures.latency.queries=0")


def tables(system: str, swaps_of: Swaps, folder: Path, datasets: Sequence[str], common: Sequence[str] = ()) -> None:
    """Run what has not been run yet, and print a table a dataset."""
    common = (f"system={system}", *COMMON, *common)
    for dataset in datasets:
        preset = run(folder / dataset, dataset, PRESET, common)
        bounds = zip(*summarised(preset), strict=True)
        cells = (f"{m:.3f} [{a:.3f}, {b:.3f}]" if m < 5 else f"{m:.0f}" for m, a, b in bounds)
        print(f"\n## {system}, {dataset}, {len(preset)} queries\n")
        print(f"{PRESET}: " + ", ".join(f"{name} {cell}" for name, cell in zip(MEASURES, cells, strict=True)) + "\n")
        print(f"| part | swap | {' | '.join(MEASURES)} | decisions |\n|---|---|{'---|' * (len(MEASURES) + 1)}")
        for part, swaps in swaps_of.items():
            for name, overrides in swaps.items():
                found = run(folder / dataset, dataset, name, [*common, *overrides])
                difference = found.join(preset, on="query_id", suffix="_preset", maintain_order="left").select(
                    pl.col(measure) - pl.col(f"{measure}_preset") for measure in MEASURES
                )
                assert len(difference) == len(preset), "the same queries are judged"
                means, low, high = summarised(difference)
                cells = (
                    f"{m:+.0f}" if name == "tokens@10" else f"{m:+.3f} [{a:+.3f}, {b:+.3f}]"
                    for name, m, a, b in zip(MEASURES, means, low, high, strict=True)
                )
                decided = read_summary(place(folder / dataset, name))["decisions"]
                told = ", ".join(f"{action} {n}" for action, n in decided.items()) or "–"
                print(f"| {part} | {name} | {' | '.join(cells)} | {told} |", flush=True)


def run(folder: Path, dataset: str, name: str, overrides: Sequence[str]) -> pl.DataFrame:
    """Evaluate once; rows query_id and one column a measure."""
    target = place(folder, name)
    if not (target / "summary.json").is_file():
        lcm = Path(sys.executable).with_name("lcm")
        command = [str(lcm), "evaluate", f"dataset={dataset}", *overrides, f"hydra.run.dir='{target}'"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    values = pl.read_parquet(target / "per_query.parquet").filter(arm="system")
    return values.pivot("measure", index="query_id", values="value").select("query_id", *MEASURES).sort("query_id")


def key_of(parts: Sequence[object], beside: Sequence[object], made_with: type) -> str:
    """The key of what a class makes of components: another where one of them, or the source of one, is another.

    Args:
        parts: the components.
        beside: what it depends on besides, as plain data.
        made_with: the class.
    """
    fingerprint = Fingerprint()
    inputs = [*(fingerprint.of(part) for part in parts), *beside]
    return digest(inputs, {*fingerprint.modules, made_with.__module__})[:16]


def place(folder: Path, name: str) -> Path:
    return folder / "".join(character if character.isalnum() else "_" for character in name)


def summarised(frame: pl.DataFrame) -> tuple[Sequence[float], Sequence[float], Sequence[float]]:
    """Means, and the bounds of their 95 % intervals over queries, in the order of MEASURES."""
    values = frame.select(MEASURES).to_numpy().astype(np.float64)
    low, high = bootstrap_means(values, resamples=2000, confidence=0.95, seed=0)
    return values.mean(axis=0).tolist(), low.tolist(), high.tolist()


def interval(values: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean, and the bounds of its 95 % interval over queries."""
    low, high = bootstrap_means(values[:, np.newaxis], resamples=2000, confidence=0.95, seed=0)
    return float(values.mean()), float(low[0]), float(high[0])


def shown(values: npt.NDArray[np.float64], sign: str = "") -> str:
    """A mean and its interval; `sign` "+" for differences."""
    mean, low, high = interval(values)
    return f"{mean:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"
