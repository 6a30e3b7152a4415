"""How far the finders of facts agree with labels by hand, by kind of fact and kind of session.

    .venv/bin/python experiments/fact_labels.py

Reads the labelled sessions of `tests/lcm/compaction/facts/labelled` and prints tables in Markdown: of the halves that
the finders were improved with, and of the halves that were measured afterwards.
"""

from collections.abc import Mapping

from lcm.compaction.facts.reading import KINDS
from tests.support.labelled_facts import SESSIONS, Agreement, Half, agreement, labelled, pooled

HALVES: tuple[Half, Half] = ("development", "test")


def main() -> None:
    found = {half: {name: agreement(labelled(name, half)) for name in SESSIONS} for half in HALVES}
    print(f"| | {' | '.join(f'{half}: labels | found | precision | recall' for half in HALVES)} |")
    print(f"|---|{'---|' * 4 * len(HALVES)}")
    for kind in KINDS:
        of_kind = {half: pooled([one[kind] for one in found[half].values() if kind in one]) for half in HALVES}
        print(_row(f"`{kind}`", of_kind))
    for name in SESSIONS:
        print(_row(name, {half: pooled(list(found[half][name].values())) for half in HALVES}))
    every = {half: pooled([one for of in found[half].values() for one in of.values()]) for half in HALVES}
    print(_row("all", every))


def _row(name: str, of_half: Mapping[Half, Agreement]) -> str:
    told = (f"{one.labels} | {one.found} | {one.precision:.2f} | {one.recall:.2f}" for one in of_half.values())
    return f"| {name} | {' | '.join(told)} |"


if __name__ == "__main__":
    main()
