"""Random mixes of every group that needs no model, network or key, run on the bundled sample: docs/mixes.md.

    .venv/bin/python -m experiments.random_mixes into=FILE [mixes=200] [seed=0] [jobs=CORES] [verified=0.1]
    .venv/bin/python -m experiments.random_mixes table=FILE,...

Every part of every mix is taken out, one at a time: if that changes nothing, a note must name it. Of those that the
note before the run names, a share of `verified` is taken out all the same: there nothing may change.
"""

import hashlib
import json
import logging
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from eval.dataset.dataset import Dataset
from eval.dataset.sample import Sample
from eval.experiment.outcome import Outcome
from eval.measures.names import SYSTEM_ARM
from lcm.errors import LcmError
from pipelines.config import conf_folder, contracts
from pipelines.config.contracts import idle_note
from pipelines.config.overrides import quoted
from pipelines.steps.point import experiment_of
from tests.support.composing import composed

NEEDS = {
    "admission": dict.fromkeys(("balanced_model", "balanced_batch"), "a language model"),
    "deduplication": {"model": "a language model"},
    "embedder": {**dict.fromkeys(("hub", "minilm", "nomic", "onnx"), "a model"), "openai_compatible": "a server"},
    "extraction": {"llm": "a language model"},
    "language_model": {"openai_compatible": "a server"},
    "ranking": {"external": "a memory of others"},
    "reranker": {"cross_encoder": "a model", "remote": "a key"},
    "summarizer": {"llm": "a language model", "t5": "a model"},
    "system": {"external": "a memory of others", "unified_two_embedders": "a model"},
}
"""Group -> choices that are not mixed, and what they need."""
APART = {
    "dataset": "what is measured on, the same for all",
    "arms": "beside the system, not of it",
    "external": "a memory of others, that one ranking asks",
    "executor": "where work is done: it changes no number",
    "measures": "what is measured: all of them, the same for all",
    "tracking": "where the numbers go",
    "experiment": "presets of everything",
    "sweep": "presets of whole sweeps",
}
"""Groups that are not mixed, and why."""
SMALL = {
    "lossless": {
        "budget_tokens": 240, "fresh_tail_count": 8, "leaf_chunk_tokens": 80, "min_leaf_tokens": 20,
        "leaf_min_fanout": 2, "condensed_min_fanout": 2, "leaf_target_tokens": 40, "condensed_target_tokens": 30,
    },
    "clustering": {"target_cluster_size": 4, "session_token_budget": 60},
}  # fmt: skip
"""Compaction that acts in one short conversation: class of a choice -> its settings."""
AROUND: Mapping[str, Any] = {
    "tracking": "none", "arms": "none", "cache": False, "measures.latency.queries": 0, "means.resamples": 20,
    "measures.retention.budgets": [600],
}  # fmt: skip
ANOTHER = {
    "ranking": "lancedb_pro",
    "source": "recent",
    "summarizer": "truncate",
    "token_estimator": "script_chars",
}
"""Group -> what stands in for its default, where that may rightly give the same as another choice."""
OF_A_PAIR = {
    "assembly=lossless_claw": "libravdb",  # the default shows the same where nothing is folded
    "fusion=lancedb_pro_tuned": "reciprocal_rank",  # the default differs in the weights of two branches
    "source=shuffled": "lexical",  # what orders nothing by the query ranks the same wherever all is found
}
"""Choice -> what stands in for its group's default, and why not that."""
HERE = "parts without work here: "
"""Begins the note before a run."""
WORKSPACES = ("zhongwen", "assistant")
"""Of the bundled sample: a short one, and where that shows nothing of a part, one asked at 12 instants."""


@cache
def choices() -> dict[str, list[str]]:
    """What is mixed: group -> its choices."""
    named = conf_folder.shipped().chosen(conf_folder.EVALUATE).choices
    return {
        group: [choice for choice in conf_folder.groups()[group] if choice not in NEEDS.get(group, ())]
        for group in reversed(named)  # as the table of contents has them
        if group in conf_folder.groups() and group not in APART
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


@cache
def _chosen_by(system: str) -> dict[str, str]:
    """Group -> choice of a preset."""
    preset = yaml.safe_load((conf_folder.conf_dir() / "system" / f"{system}.yaml").read_text("utf-8"))
    entries = [entry for entry in preset["defaults"] if isinstance(entry, dict)]
    return {key.removeprefix("override /"): choice for entry in entries for key, choice in entry.items()}


def parts_of_mix(mix: Mix) -> dict[str, str]:
    """Group -> choice, with what the preset chooses where the mix does not."""
    below = _chosen_by(mix["system"]) if "system" in mix else {}
    return {"embedder": "hashing", **below, **{group: choice for group, choice in mix.items() if group != "system"}}


def asked(mix: Mix) -> dict[str, Any]:
    """What a mix asks for: choice of each group, and settings under which a short conversation is compacted."""
    parts = parts_of_mix(mix)
    compaction = parts.get("compaction", "none")
    family = "lossless" if compaction.startswith("lossless") else "clustering"
    small = {} if compaction == "none" else SMALL[family]
    return {**parts, **{f"compaction.{key}": value for key, value in small.items()}, **AROUND}


def written(asked: Mapping[str, Any]) -> list[str]:
    """The command line."""
    return [f"{key}={value if isinstance(value, str) else quoted(value)}" for key, value in asked.items()]


def laid(asked: Mapping[str, Any]) -> DictConfig:
    """The configuration that the command line composes to, in a tenth of the time."""
    settings = {key: value for key, value in asked.items() if key not in conf_folder.groups()}
    chosen = [f"{group}={choice}" for group, choice in asked.items() if group not in settings]
    config = composed([*(() if "system" in asked else ("system=hybrid",)), *chosen])
    for key, value in settings.items():
        OmegaConf.update(config, key, value, force_add=True)
    return config


@dataclass(frozen=True, slots=True)
class Result:
    """What a mix gave: a digest of everything that can be compared, and what was told; or why it was refused."""

    given: str = ""
    notes: tuple[str, ...] = ()
    refusal: str = ""


@dataclass(slots=True)
class Runner:
    """Runs what is asked for on one conversation; the same once."""

    known: dict[str, Result] = field(default_factory=dict)

    def run(self, asked: Mapping[str, Any], workspace: str = WORKSPACES[0]) -> Result:
        """What an evaluation gives; refused ones give the line that `lcm` tells."""
        key = f"{workspace} {sorted(written(asked))}"
        if key not in self.known:
            try:
                self.known[key] = _run(asked, workspace)
            except (LcmError, ValueError) as error:
                self.known[key] = Result(refusal=" ".join(str(error).split()))
        return self.known[key]


def _run(asked: Mapping[str, Any], workspace: str) -> Result:
    config = laid(asked)
    contracts.refuse_unused(config, written(asked))
    outcome = experiment_of(config, _dataset(workspace)).run(lambda *_: None)
    notes = [note for note in (idle_note(config), *outcome.flags) if note]
    return Result(_digest(outcome), tuple(notes))


@cache
def _dataset(workspace: str) -> Dataset:
    return Sample().load().part([workspace])


def _digest(outcome: Outcome) -> str:
    """Of the system alone: a text index that it does not ask is asked by a control arm."""
    found = outcome.documents.join(outcome.run.filter(arm=SYSTEM_ARM), on="document_id", how="semi")
    frames = [outcome.run, outcome.values, outcome.means, found, outcome.decisions, *outcome.frames.values()]
    ours = [frame.filter(arm=SYSTEM_ARM) if "arm" in frame.columns else frame for frame in frames]
    return hashlib.sha256(repr([frame.rows() for frame in ours]).encode()).hexdigest()


def idle_parts(notes: Sequence[str]) -> list[str]:
    """The parts that notes name as idle, groups or settings of them; what a reason in brackets names is not idle."""
    told = [note.partition(": ")[2] for note in notes if note.startswith("parts ")]
    return re.split(r", and with it |, |; ", re.sub(r" \([^()]*\)", "", "; ".join(told)))


def is_named(part: str, notes: Sequence[str]) -> bool:
    """Whether a note of idle parts names a group, or a setting of it."""
    return any(re.search(rf"\b{part}\b", told) for told in idle_parts(notes))


def without(mix: Mix, part: str) -> Mix | None:
    """The mix with a part's null choice, or its group's default; None where that is what it has. How a dataset is
    played is no part of the memory."""
    chosen, null = parts_of_mix(mix).get(part), (defaults() | ANOTHER)[part]
    if part == "replay" or chosen in (None, null):
        return None
    return {**mix, part: OF_A_PAIR.get(f"{part}={chosen}", null)}


OUTCOMES = {
    "acts": "another result, or a refusal",
    "noted": "the same result, and a note of idle parts names the part",
    "default": "the same result: the part is what the defaults choose too, and of that no note tells",
    "silent": "the same result, and no note",
    "misnoted": "another result, and the note before the run says that the part has no work",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One mix, what came of it, and what of it without each of its parts."""

    number: int
    mix: Mix
    result: Result
    parts: Mapping[str, str]
    """Part -> outcome, of `OUTCOMES`."""
    verified: tuple[str, ...] = ()
    """The parts that the note before the run names, and that were taken out all the same."""


def removable(mix: Mix) -> list[str]:
    """The parts that can be taken out."""
    return [part for part in parts_of_mix(mix) if without(mix, part) is not None]


def looked_at(runner: Runner, number: int, mix: Mix, parts: Sequence[str], verified: float = 0.1) -> Row:
    """Run a mix, and run it again without each of these parts, but for most of those that are told to have no work."""
    result = runner.run(asked(mix))
    if result.refusal:
        return Row(number, mix, result, {})
    told = idle_parts([note for note in result.notes if note.startswith(HERE)])
    chance = random.Random(number)
    checked = tuple(part for part in parts if part in told and chance.random() < verified)
    found = {part: "noted" for part in parts if part in told}
    found |= {part: outcome_without(runner, mix, part) for part in parts if part not in told or part in checked}
    found |= {part: "misnoted" for part in checked if found[part] == "acts"}
    return Row(number, mix, result, {part: found[part] for part in parts}, checked)


def outcome_without(runner: Runner, mix: Mix, part: str) -> str:
    """What comes of a mix without one of its parts."""
    outcome = became(runner, mix, without(mix, part) or mix, part)
    return "default" if outcome == "silent" and parts_of_mix(mix)[part] == defaults()[part] else outcome


def became(runner: Runner, mix: Mix, other_mix: Mix, part: str) -> str:
    """What a part of a mix does that another mix has not, in the first conversation in which it is not silent."""
    for workspace in WORKSPACES:
        result, other = (runner.run(asked(one), workspace) for one in (mix, other_mix))
        if other.refusal or other.given != result.given:
            return "acts"
        if is_named(part, result.notes):
            return "noted"
    return "silent"


def main(arguments: Mapping[str, str]) -> None:
    """Append a line of JSON to FILE for each mix that it lacks; with `table`, print what such files hold as a table."""
    if "table" in arguments:
        lines = "".join(Path(path).read_text("utf-8") for path in arguments["table"].split(",")).splitlines()
        print(table(list({row["number"]: row for row in map(json.loads, lines)}.values())))  # the last of each counts
        return
    into, verified = Path(arguments["into"]), float(arguments.get("verified", 0.1))
    done = {json.loads(line)["number"] for line in into.read_text("utf-8").splitlines()} if into.exists() else set()
    drawn = enumerate(mixes(int(arguments.get("mixes", 200)), int(arguments.get("seed", 0))))
    mapped(_line, [(number, mix, verified) for number, mix in drawn if number not in done], arguments)


def mapped(work: Callable[..., str], items: Sequence[tuple[Any, ...]], arguments: Mapping[str, str]) -> None:
    """Append what each work gives, done in processes of a core each, to a file."""
    os.environ["POLARS_MAX_THREADS"] = "1"  # of the processes that are to come
    jobs = int(arguments.get("jobs", os.cpu_count() or 1))
    with ProcessPoolExecutor(jobs, get_context("spawn"), logging.disable, (logging.WARNING,)) as processes:
        for lines in processes.map(work, *zip(*items, strict=True)):
            with Path(arguments["into"]).open("a") as file:
                file.write(lines)


def _line(number: int, mix: Mix, verified: float) -> str:
    row = asdict(looked_at(Runner(), number, mix, removable(mix), verified))
    row["result"].pop("given")
    return json.dumps(row) + "\n"


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: of each group, how often its part was taken out, and what came of that."""
    found: dict[str, dict[str, list[int]]] = {}
    for row in sorted(rows, key=lambda row: int(row["number"])):
        for part, outcome in row["parts"].items():
            found.setdefault(part, {outcome: [] for outcome in OUTCOMES})[outcome].append(row["number"])
    outcomes = Counter(outcome for row in rows for outcome in row["parts"].values())
    refused = sum(bool(row["result"]["refusal"]) for row in rows)
    told = sum(any(note.startswith("parts ") for note in row["result"]["notes"]) for row in rows)
    verified = sum(len(row["verified"]) for row in rows)
    head = (
        f"{len(rows)} mixes: {len(rows) - refused} run, {refused} refused, none crashes; {told} tell of idle parts. "
        f"{outcomes.total()} parts looked at; of those that the note before the run names, {verified} were taken out:"
    )
    lines = [
        head,
        "",
        *(f"- {outcomes[outcome]} {outcome}: {meaning}" for outcome, meaning in OUTCOMES.items()),
        "",
        "| part | taken out | acts | noted | default | silent in mix | misnoted in mix |",
        "|---|---:|---:|---:|---:|---|---|",
    ]
    for part, of in sorted(found.items()):
        counts = (len(of[outcome]) for outcome in ("acts", "noted", "default"))
        where = (", ".join(map(str, of[outcome])) for outcome in ("silent", "misnoted"))
        lines.append(f"| {part} | {sum(map(len, of.values()))} | {' | '.join(map(str, [*counts, *where]))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(dict(argument.split("=", 1) for argument in sys.argv[1:]))
