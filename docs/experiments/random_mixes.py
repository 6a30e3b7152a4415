"""Random mixes of every group that needs no model, network or key, run on one conversation of the sample: docs/mixes.md.

    python docs/experiments/random_mixes.py into=docs/mixes.md [mixes=200] [seed=0] [parts=2] [knobs=1]

Of each mix some parts are taken out, one at a time, and some knobs turned: what changes nothing must stand in a note.
"""

import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf

from eval.dataset.dataset import Dataset
from eval.experiment.experiment import Outcome
from eval.measures.names import SYSTEM_ARM
from lcm.errors import LcmError
from pipelines.config import building, composition, conf_folder
from pipelines.config.idle import idle_note
from pipelines.steps.point import experiment_of

NEEDS = {
    "admission": {"balanced_model": "a language model"},
    "arms": {"recorded_run": "a file"},
    "deduplication": {"model": "a language model"},
    "embedder": {"minilm": "a model", "nomic": "a model", "onnx": "a model"},
    "extraction": {"llm": "a language model"},
    "language_model": {"openai_compatible": "a server"},
    "reranker": {"cross_encoder": "a model", "remote": "a key"},
    "summarizer": {"llm": "a language model", "t5": "a model"},
}
"""Group -> choices that are not mixed, and what they need."""
APART = {
    "dataset": "what is measured on, the same for all",
    "executor": "where work is done: it changes no number",
    "measures": "what is measured: all of them, the same for all",
    "tracking": "where the numbers go",
    "experiment": "presets of everything",
    "sweep": "presets of whole sweeps",
}
"""Groups that are not mixed, and why."""
SMALL = {
    "lossless": {
        "budget_tokens": 1200, "fresh_tail_count": 8, "leaf_chunk_tokens": 400, "min_leaf_tokens": 60,
        "leaf_min_fanout": 2, "condensed_min_fanout": 2, "leaf_target_tokens": 120, "condensed_target_tokens": 100,
    },
    "clustering": {"target_cluster_size": 6, "session_token_budget": 300},
}  # fmt: skip
"""Compaction that acts in one short conversation: class of a choice -> its settings."""
AROUND = (
    "tracking=none", "cache=false", "measures.latency.queries=0", "means.resamples=20",
    "measures.retention.budgets=[600]",
)  # fmt: skip
WORKSPACE = "coding"
"""One of the bundled sample."""


@cache
def choices() -> dict[str, list[str]]:
    """What is mixed: group -> its choices."""
    named = conf_folder.table_of_contents(conf_folder.EVALUATE)
    return {
        group: [choice for choice in conf_folder.groups()[group] if choice not in NEEDS.get(group, ())]
        for group in named
        if group not in APART
    }


@cache
def defaults() -> dict[str, str]:
    """Group -> what stands there where nothing is chosen; of an embedder, the one without a model."""
    entries = yaml.safe_load((conf_folder.conf_dir() / "config.yaml").read_text(encoding="utf-8"))["defaults"]
    own = {group: choice for entry in entries if isinstance(entry, dict) for group, choice in entry.items()}
    nulls = {group: "none" for group, known in conf_folder.groups().items() if "none" in known}
    return own | nulls | {"embedder": "hashing"}


Mix = Mapping[str, str]
"""Group -> choice; `system` a preset below them."""


def mixes(count: int = 200, seed: int = 0) -> list[Mix]:
    """Every other mix chooses of every group, the rest take a preset and change about half of what it says."""
    chance = random.Random(seed)
    found: list[Mix] = []
    for number in range(count):
        own = {group: chance.choice(known) for group, known in choices().items() if group != "system"}
        if number % 2:
            own = {group: choice for group, choice in own.items() if chance.random() < 0.5}
            own = {"system": chance.choice(choices()["system"]), **own}
        found.append(own)
    return found


def parts_of_mix(mix: Mix) -> dict[str, str]:
    """Group -> choice, with what the preset chooses where the mix does not."""
    below: dict[str, str] = {}
    if "system" in mix:
        preset = yaml.safe_load((conf_folder.conf_dir() / "system" / f"{mix['system']}.yaml").read_text("utf-8"))
        for entry in preset["defaults"]:
            if isinstance(entry, dict):
                below |= {key.removeprefix("override /"): choice for key, choice in entry.items()}
    return {**{"embedder": "hashing"}, **below, **{group: choice for group, choice in mix.items() if group != "system"}}


def overrides(mix: Mix) -> list[str]:
    """The command line of a mix, with settings under which a short conversation is compacted."""
    written = [f"{group}={choice}" for group, choice in mix.items()]
    written += [] if "embedder" in mix else ["embedder=hashing"]
    compaction = parts_of_mix(mix).get("compaction", "none")
    family = "lossless" if compaction.startswith("lossless") else "clustering"
    small = {} if compaction == "none" else SMALL[family]
    return [*written, *(f"compaction.{key}={value}" for key, value in small.items()), *AROUND]


@dataclass(frozen=True, slots=True)
class Result:
    """What a mix gave: a digest of everything that can be compared, and what was told; or why it was refused."""

    given: str = ""
    notes: tuple[str, ...] = ()
    refusal: str = ""


@dataclass(slots=True)
class Runner:
    """Runs mixes on one conversation; equal command lines once."""

    compositions: composition.CompositionCache = field(default_factory=composition.CompositionCache)
    known: dict[tuple[str, ...], Result] = field(default_factory=dict)
    dataset: Dataset | None = None

    def run(self, written: list[str]) -> Result:
        """What an evaluation gives; refused ones give the line that `lcm` tells."""
        key = tuple(written)
        if key not in self.known:
            try:
                self.known[key] = self._run(written)
            except (LcmError, ValueError) as error:
                self.known[key] = Result(refusal=" ".join(str(error).split()))
        return self.known[key]

    def _run(self, written: list[str]) -> Result:
        config = self.compositions.composed(written)
        building.refuse_unused(config, written)
        if self.dataset is None:
            self.dataset = building.build(config, "dataset").load().part([WORKSPACE])
        outcome = experiment_of(config, self.dataset).run(lambda *_: None)
        notes = [note for note in (idle_note(config), *outcome.flags) if note]
        return Result(_digest(outcome), tuple(notes))


def _digest(outcome: Outcome) -> str:
    ours = [frame.filter(arm=SYSTEM_ARM) if "arm" in frame.columns else frame for frame in (outcome.run, outcome.values)]
    frames = [*ours, outcome.documents, outcome.decisions, outcome.means, *outcome.frames.values()]
    return repr([frame.rows() for frame in frames])


def is_named(part: str, notes: tuple[str, ...]) -> bool:
    """Whether a note names a group, or a setting of it."""
    return any(re.search(rf"\b{part}\b", note) for note in notes)


def without(mix: Mix, part: str) -> Mix | None:
    """The mix with a part's null choice, or its group's default; None where that is what it has."""
    chosen, null = parts_of_mix(mix).get(part), defaults()[part]
    return None if chosen in (None, null) else {**mix, part: null}


def knobs_of(mix: Mix) -> dict[str, Any]:
    """The numbers and switches of the parts that a mix names: key -> value."""
    found: dict[str, Any] = {}
    for group, choice in sorted(parts_of_mix(mix).items()):
        node = OmegaConf.to_container(OmegaConf.load(conf_folder.conf_dir() / group / f"{choice}.yaml"))
        found |= dict(_leaves(group, node))
    return found


def _leaves(path: str, node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        for name, child in node.items():
            if name not in ("_target_", "defaults"):
                yield from _leaves(f"{path}.{name}", child)
    elif isinstance(node, bool | int | float):
        yield path, node


def main(arguments: Mapping[str, str]) -> None:
    count, seed = int(arguments.get("mixes", 200)), int(arguments.get("seed", 0))
    runner, chance = Runner(), random.Random(seed)
    rows: list[str] = []
    silent: list[str] = []
    tally: Counter[str] = Counter()
    for number, mix in enumerate(mixes(count, seed)):
        result = runner.run(overrides(mix))
        tally["refused" if result.refusal else "run"] += 1
        removed = [part for part in parts_of_mix(mix) if without(mix, part) is not None]
        for part in chance.sample(removed, min(int(arguments.get("parts", 2)), len(removed))):
            if result.refusal:
                continue
            other = runner.run(overrides(without(mix, part) or mix))
            outcome = "acts" if other.given != result.given else "noted" if is_named(part, result.notes) else "SILENT"
            tally[f"part {outcome}"] += 1
            if outcome == "SILENT":
                silent.append(f"{number}: {part}={parts_of_mix(mix)[part]}")
                print(silent[-1], parts_of_mix(mix), flush=True)
        told = result.refusal or "; ".join(result.notes)
        rows.append(f"| {number} | {' '.join(f'{g}={c}' for g, c in mix.items())} | {told} |")
        if result.refusal:
            print(number, result.refusal, flush=True)
    print(tally, *silent, sep="\n")
    if "into" in arguments:
        Path(arguments["into"]).write_text("\n".join(rows))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory():
        main(dict(argument.split("=", 1) for argument in sys.argv[1:]))
