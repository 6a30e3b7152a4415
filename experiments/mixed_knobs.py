"""Knobs turned in random mixes: a sample of all (mix, knob) pairs, run on the bundled sample: docs/mixes.md.

    .venv/bin/python -m experiments.mixed_knobs into=FILE [pairs=600] [seed=0] [jobs=CORES]
    .venv/bin/python -m experiments.mixed_knobs table=FILE

The mixes are those of `random_mixes`; a knob is a leaf of the YAML of a choice, turned to the value that
`tests/test_knobs.py` turns it to.
"""

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.random_mixes import (
    WORKSPACES,
    Mix,
    Runner,
    asked,
    defaults,
    idle_parts,
    laid,
    mapped,
    mixes,
    parts_of_mix,
)
from experiments.random_mixes import choices as choices_mixed
from pipelines.config import building
from pipelines.config.contracts import parts_read
from pipelines.steps.point import READ
from tests.support.knobs.knob import KNOBS, Knob
from tests.support.knobs.reasons import REASONS

OUTCOMES = {
    "acts": "another result",
    "refused": "the value is refused in this mix, in a line that names it",
    "noted": "the same result, and a note of idle parts names the knob or its part",
    "no number": "the same result: `tests/support/knobs/reasons.py` says why it changes none",
    "no occasion": "the same result: its part reads it, works, and met nothing here that it decides",
    "dead": "the same result: nothing reads it, and no note names it",
}


def knobs_of(mix: Mix) -> list[Knob]:
    """The knobs of all that stands in a mix, what only the defaults choose included."""
    parts = {group: choice for group, choice in defaults().items() if group in choices_mixed()} | parts_of_mix(mix)
    places = {f"{group}/{choice}" for group, choice in parts.items() if group != "system"}
    return [knob for knob in KNOBS if knob.place in places]


def pairs(count: int, seed: int = 0) -> list[tuple[int, Knob]]:
    """So many pairs, each of number of a mix and knob, all different, drawn by chance."""
    every = [(number, knob) for number, mix in enumerate(mixes()) for knob in knobs_of(mix)]
    return random.Random(seed).sample(every, min(count, len(every)))


@dataclass(frozen=True, slots=True)
class Turned:
    """What became of one pair."""

    number: int
    knob: str
    value: str
    outcome: str
    """Of `OUTCOMES`."""
    said: str = ""
    """The refusal."""


def turned(runner: Runner, number: int, knob: Knob) -> Turned:
    """Run a mix and run it with a knob turned, in the first conversation in which that shows."""
    mix = mixes()[number]
    with tempfile.TemporaryDirectory() as folder:
        value = knob.another(Path(folder))
        before = asked(mix)
        after = before | {knob.key: value}
        told = Turned(number, str(knob), repr(value), "noted")
        for workspace in WORKSPACES:
            result, other = runner.run(before, workspace), runner.run(after, workspace)
            if other.refusal:
                return _with(told, "refused", other.refusal)
            if other.given != result.given:
                return _with(told, "acts")
            if any(names(part, knob) for notes in (result.notes, other.notes) for part in idle_parts(notes)):
                return told
        if str(knob) in REASONS:
            return _with(told, "no number")
        plain = building.as_written(laid(before))
        is_read = any(
            knob.key == key or key.startswith(f"{knob.key}.") for part in parts_read(plain, READ) for key in part.keys
        )
        return _with(told, "no occasion" if is_read else "dead")


def _with(told: Turned, outcome: str, said: str = "") -> Turned:
    return Turned(told.number, told.knob, told.value, outcome, said)


def names(part: str, knob: Knob) -> bool:
    """Whether an idle part, as a note names it, is a knob's or holds it."""
    return knob.key == part or knob.key.startswith(f"{part}.") or part.startswith(f"{knob.key}.")


def main(arguments: Mapping[str, str]) -> None:
    """Append a line of JSON a pair to FILE; with `table`, print what such a file holds as a table."""
    if "table" in arguments:
        print(table([json.loads(line) for line in Path(arguments["table"]).read_text("utf-8").splitlines()]))
        return
    drawn = pairs(int(arguments.get("pairs", 600)), int(arguments.get("seed", 0)))
    by_mix = sorted({number for number, _ in drawn})
    work = [(number, [str(knob) for of, knob in drawn if of == number]) for number in by_mix]
    mapped(_lines, work, arguments)


def _lines(number: int, knobs: Sequence[str]) -> str:
    runner, wanted = Runner(), set(knobs)
    of_mix = [knob for knob in knobs_of(mixes()[number]) if str(knob) in wanted]
    return "".join(json.dumps(asdict(turned(runner, number, knob))) + "\n" for knob in of_mix)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: how often a knob's turn came to what, by group."""
    by_group: dict[str, Counter[str]] = {}
    for row in rows:
        by_group.setdefault(row["knob"].partition("/")[0], Counter())[row["outcome"]] += 1
    counts = sum(by_group.values(), Counter[str]())
    mixed, knobs = ({row[key] for row in rows} for key in ("number", "knob"))
    lines = [f"{len(rows)} pairs of {len(mixed)} mixes and {len(knobs)} knobs:", ""]
    lines += [f"- {counts[outcome]} {outcome}: {meaning}" for outcome, meaning in OUTCOMES.items()]
    lines += ["", f"| group | turned | {' | '.join(OUTCOMES)} |", f"|---|---:|{'---:|' * len(OUTCOMES)}"]
    for group, found in sorted(by_group.items()):
        lines.append(f"| {group} | {found.total()} | {' | '.join(str(found[one] or '') for one in OUTCOMES)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(dict(argument.split("=", 1) for argument in sys.argv[1:]))
