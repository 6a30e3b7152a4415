"""Which settings of memory-lancedb-pro are good for several kinds of talk, by studies that drew the same trials.

    .venv/bin/python experiments/lancedb_pro_tuned.py STUDY_FOLDER STUDY_FOLDER ...

Each folder holds a study of `lcm tune ... study.sampler=random` with the same space and seed on other data, so that trial
n has the same settings in all. Prints the trials that are best in the mean over the studies and, for each study, what the
trial that the others pick is worth there.
"""

import sys
from pathlib import Path

import polars as pl

MEASURE, SHOWN = "recall@10", 5


def main(folders: list[Path]) -> None:
    names = [folder.name for folder in folders]
    trials = pl.read_parquet(folders[0] / "study.parquet").select("number")
    for folder in folders:
        values = pl.read_parquet(folder / "study.parquet").select("number", pl.col(MEASURE).alias(folder.name))
        trials = trials.join(values, on="number")
    by_mean = trials.with_columns(mean=pl.mean_horizontal(names)).sort("mean", descending=True)
    print(f"| trial | {' | '.join(names)} | mean |\n|---|{'---|' * (len(names) + 1)}")
    for row in [*by_mean.head(SHOWN).iter_rows(), *by_mean.filter(number=0).iter_rows()]:
        print(f"| {row[0]} | {' | '.join(f'{value:.3f}' for value in row[1:])} |")
    print("\n| held out | picked by the others | there | trial 0 there | best there |\n|---|---|---|---|---|")
    for name in names:
        others = [other for other in names if other != name]
        picked = trials.sort(pl.mean_horizontal(others), descending=True)
        start = trials.filter(number=0)[name][0]
        print(f"| {name} | {picked['number'][0]} | {picked[name][0]:.3f} | {start:.3f} | {trials[name].max():.3f} |")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
