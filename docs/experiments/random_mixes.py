"""Random mixes of every group that needs no model, network or key, run on the bundled sample: docs/mixes.md.

    .venv/bin/python -m docs.experiments.random_mixes into=FILE [mixes=200] [seed=0] [parts=1] [first=0 step=1]
    .venv/bin/python -m docs.experiments.random_mixes table=FILE,...

Of each mix one part, drawn by chance (or `parts` of them, one at a time), is taken out: if that changes nothing, a note
must name it. What the other parts of a mix do is not looked at.
"""

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from eval.dataset.dataset import Dataset
from eval.experiment.experiment import Outcome
from eval.measures.names import SYSTEM_ARM
from lcm.errors import LcmError
from pipelines.config import building, composition, conf_folder
from pipelines.config.idle import idle_note
from pipelines.steps.point import experiment_of

NEEDS = {
    "admission": {"balanced_model": "a language model"},
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
    "arms": "beside the system, not of it",
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
ANOTHER = {
    "ranking": "lancedb_pro",
    "source": "recent",
    "summarizer": "truncate",
    "token_estimator": "script_chars",
}
"""Group -> what stands in for its default, where that may rightly give the same as another choice."""
OF_A_PAIR = {"assembly=lossless_claw": "libravdb"}
"""Choice -> what stands in for its group's default, which shows the same where nothing is folded."""
WORKSPACES = ("zhongwen", "assistant")
"""Of the bundled sample: a short one, and where that shows nothing of a part, one asked at 12 instants."""


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
    return {"embedder": "hashing", **below, **{group: choice for group, choice in mix.items() if group != "system"}}


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

    def run(self, written: list[str], workspace: str = WORKSPACES[0]) -> Result:
        """What an evaluation gives; refused ones give the line that `lcm` tells."""
        key = (workspace, *written)
        if key not in self.known:
            try:
                self.known[key] = self._run(written, workspace)
            except (LcmError, ValueError) as error:
                self.known[key] = Result(refusal=" ".join(str(error).split()))
        return self.known[key]

    def _run(self, written: list[str], workspace: str) -> Result:
        config = self.compositions.composed(written)
        building.refuse_unused(config, written)
        if self.dataset is None:
            self.dataset = building.build(config, "dataset").load()
        outcome = experiment_of(config, self.dataset.part([workspace])).run(lambda *_: None)
        notes = [note for note in (idle_note(config), *outcome.flags) if note]
        return Result(_digest(outcome), tuple(notes))


def _digest(outcome: Outcome) -> str:
    """Of the system alone: a text index that it does not ask is asked by a control arm."""
    found = outcome.documents.join(outcome.run.filter(arm=SYSTEM_ARM), on="document_id", how="semi")
    frames = [outcome.run, outcome.values, outcome.means, found, outcome.decisions, *outcome.frames.values()]
    ours = [frame.filter(arm=SYSTEM_ARM) if "arm" in frame.columns else frame for frame in frames]
    return repr([frame.rows() for frame in ours])


def is_named(part: str, notes: tuple[str, ...]) -> bool:
    """Whether a note of idle parts names a group, or a setting of it; what a reason in brackets names is not idle."""
    idle = [re.sub(r"\([^()]*\)", "", note) for note in notes if note.startswith("parts ")]
    return any(re.search(rf"\b{part}\b", note) for note in idle)


def without(mix: Mix, part: str) -> Mix | None:
    """The mix with a part's null choice, or its group's default; None where that is what it has. How a dataset is
    played is no part of the memory."""
    chosen, null = parts_of_mix(mix).get(part), (defaults() | ANOTHER)[part]
    if part == "replay" or chosen in (None, null):
        return None
    return {**mix, part: OF_A_PAIR.get(f"{part}={chosen}", null)}


@dataclass(frozen=True, slots=True)
class Row:
    """One mix: what came of it, and of each part that was taken out, whether that `acts`, is `noted` or `silent`."""

    number: int
    mix: Mix
    result: Result
    parts: Mapping[str, str]


def looked_at(runner: Runner, number: int, mix: Mix, parts: int, seed: int) -> Row:
    """Run a mix, and run it again without each of so many of its parts, drawn by chance."""
    result = runner.run(overrides(mix))
    removed = [] if result.refusal else [part for part in parts_of_mix(mix) if without(mix, part) is not None]
    found = {}
    for part in random.Random(f"{seed} {number}").sample(removed, min(parts, len(removed))):
        found[part] = became(runner, mix, without(mix, part) or mix, part)
    return Row(number, mix, result, found)


def became(runner: Runner, mix: Mix, other_mix: Mix, part: str) -> str:
    """What a part of a mix does that another mix has not, in the first conversation in which it is not silent."""
    for workspace in WORKSPACES:
        result, other = (runner.run(overrides(one), workspace) for one in (mix, other_mix))
        if other.refusal or other.given != result.given:
            return "acts"
        if is_named(part, result.notes):
            return "noted"
    return "silent"


def main(arguments: Mapping[str, str]) -> None:
    """Append a line of JSON a mix to FILE; with `table`, print what such files hold as a table."""
    if "table" in arguments:
        lines = "".join(Path(path).read_text("utf-8") for path in arguments["table"].split(",")).splitlines()
        print(table(list({row["number"]: row for row in map(json.loads, lines)}.values())))  # the last of each counts
        return
    seed, parts = int(arguments.get("seed", 0)), int(arguments.get("parts", 1))
    runner, drawn = Runner(), list(enumerate(mixes(int(arguments.get("mixes", 200)), seed)))
    for number, mix in drawn[int(arguments.get("first", 0)) :: int(arguments.get("step", 1))]:
        row = asdict(looked_at(runner, number, mix, parts, seed))
        row["result"].pop("given")
        with Path(arguments["into"]).open("a") as file:
            file.write(json.dumps(row) + "\n")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: of each group, how often its part was taken out, and in which mixes no other result told that."""
    found: dict[str, dict[str, list[int]]] = {}
    for row in sorted(rows, key=lambda row: int(row["number"])):
        for part, outcome in row["parts"].items():
            found.setdefault(part, {"acts": [], "noted": [], "silent": []})[outcome].append(row["number"])
    lines = ["| part | taken out | acts | noted in mix | silent in mix |", "|---|---:|---:|---|---|"]
    for part, mixes_of in sorted(found.items()):
        noted, silent = (", ".join(map(str, mixes_of[outcome])) for outcome in ("noted", "silent"))
        lines.append(f"| {part} | {sum(map(len, mixes_of.values()))} | {len(mixes_of['acts'])} | {noted} | {silent} |")
    outcomes = Counter(outcome for row in rows for outcome in row["parts"].values())
    refused = sum(bool(row["result"]["refusal"]) for row in rows)
    told = sum(any(note.startswith("parts ") for note in row["result"]["notes"]) for row in rows)
    head = (
        f"{len(rows)} mixes: {len(rows) - refused} run, {refused} refused, none crashes; {told} tell of idle parts. "
        f"{sum(outcomes.values())} parts taken out: {outcomes['acts']} give another result, {outcomes['noted']} are "
        f"told of in a note, {outcomes['silent']} neither."
    )
    return "\n".join([head, "", *lines])


if __name__ == "__main__":
    main(dict(argument.split("=", 1) for argument in sys.argv[1:]))
