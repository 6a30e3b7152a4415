"""Learn the weights of `fusion=unified` over many kinds of talk: a linear model over the columns that stages make.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/learn_fusion.py collect
    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/learn_fusion.py validate ablate weights

`collect` replays every kind through the real components and keeps each document's evidence for each question below
--folder (`evidence_rows.py`); what the same components have made of the same dataset is not made again. The others
collect what is missing, and learn (`evidence_fit.py`). Weights of evidence are never negative, those of form are free:
what is found in one kind of talk must not be held against the answers of another.

`validate` prints recall@5 and recall@10 of each kind with 95 % percentile bootstrap intervals over questions: by
weights that were learnt from all other kinds; from those outside of its group; from all but the question's own
conversation; fitted to all; beside them the plain sum of both scores, the preset `neighbours` and the plain arms, and
what the weights of the other kinds gain over each of these, paired. `ablate` prints what each family of evidence is
worth to each kind that was left out, paired. `weights` prints the YAML of what all kinds together give; `--left-out`
names a file to put the overrides in that set what the other kinds give, for each kind (`ranking_tables.py` reads it).
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
import talk_kinds
from evidence_fit import L2, Bounds, Learnt, fitted, scored
from evidence_rows import PLAIN, Evidence, Numbers, collected, evidence_columns
from system_parts import COMMON, interval, place, run, shown

from eval.run import Run
from lcm.retrieval.fusion import EVIDENCE_COLUMNS
from pipelines.config import building, composition

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "words of the turns around": (
        "words_window", "words_wide_window", "words_before", "words_after_question",
    ),
    "vectors": ("dense_score",),
    "vectors of the turns around": ("meaning_before", "meaning_behind", "meaning_window", "meaning_wide_window"),
    "vectors of a second embedder": ("further_meaning_passage", "further_meaning_window", "further_meaning_session"),
    "passage": ("words_passage", "covered_passage", "meaning_passage"),
    "section": ("meaning_section",),
    "session": ("words_session", "covered_session", "alike_session"),
    "words alike": ("alike_sum",),
    "speaker": ("asked_speaks", "other_speaks"),
    "asker": ("asker_speaks",),
    "time named in the question": ("said_then",),
    "words of time": ("told_when_asked",),
    "state now": ("later_if_now",),
    "form": ("form_length", "form_rarity", "form_names", "form_first_person", "form_question"),
}  # fmt: skip
FORM = ("form",)
"""Families that say how a turn is put, and nothing of the question: their weights may have any sign."""
AGAINST = ("other_speaks",)
"""Evidence that a document is none."""
NOT_LEARNT = ("lexical_score",)
FOLDS = 8
"""Into which the conversations of one kind fall, where there are more."""
SIZE = 0.5
"""Kinds of many questions are surer and weigh more, but not as much more: 0 = all alike, 1 = all questions alike."""
ARMS = ("bm25", "dense")
RIVALS = ("plain sum", *ARMS, "neighbours")
WAYS = (*RIVALS, "group left out", "kind left out", "conversation left out", "fitted to all")


@dataclass(frozen=True)
class Study:
    """What is learnt from, and how."""

    kinds: Mapping[str, Evidence]
    weights: Mapping[str, float]
    """Of each kind in the loss."""
    bounds: Mapping[str, Bounds]
    """Of each column."""
    l2: float

    def learnt(
        self, data: Learnt, without: Sequence[str] = (), start: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        bounds = {column: within for column, within in self.bounds.items() if column not in without}
        return fitted(data, bounds, self.l2, start)

    def others(self, kind: str, group: Sequence[str] = ()) -> Learnt:
        """All other kinds, but for those of a group: `beam` and `beam_1M` are one."""
        return [
            (evidence, np.ones(len(evidence), dtype=bool), self.weights[name])
            for name, evidence in self.kinds.items()
            if _talk(name) != _talk(kind) and name not in group
        ]

    @cached_property
    def fitted_to_all(self) -> dict[str, float]:
        return self.learnt([(e, np.ones(len(e), dtype=bool), self.weights[name]) for name, e in self.kinds.items()])

    @cached_property
    def of_others(self) -> dict[str, dict[str, float]]:
        """Kind -> the weights that the other kinds give."""
        return {kind: self.learnt(self.others(kind), start=self.fitted_to_all) for kind in self.kinds}

    def group_out(self, kind: str) -> Numbers | None:
        """The scores of a kind's rows by weights learnt from the kinds outside of its group; None where it is in none,
        or no other is learnt from."""
        for group in talk_kinds.GROUPS.values():
            data = self.others(kind, group)
            if kind in group and any(weight > 0 for _, _, weight in data):
                return scored(self.kinds[kind], self.learnt(data, start=self.fitted_to_all))
        return None

    def conversation_out(self, kind: str) -> Numbers | None:
        """The scores of a kind's rows by weights learnt from all but their own conversations, or from the other kinds
        too; None where it is one conversation, or is not learnt from."""
        evidence, weight = self.kinds[kind], self.weights[kind]
        folds = evidence.conversations % FOLDS
        if weight == 0 or len(np.unique(folds)) == 1:
            return None
        scores = np.zeros(len(evidence.questions))
        for fold in np.unique(folds):
            data = [*self.others(kind), (evidence, folds != fold, weight)]
            rows = (folds == fold)[evidence.questions]
            scores[rows] = scored(evidence, self.learnt(data, start=self.fitted_to_all))[rows]
        return scores


def _talk(kind: str) -> str:
    return kind.partition("_")[0]


def bounds_of(made: Sequence[str], without: Sequence[str]) -> dict[str, Bounds]:
    """The columns to learn from, and between what the weight of each lies.

    Args:
        made: columns that stages make.
        without: families that are left out.
    Raises:
        SystemExit: if a column is in no family, or a family names what no stage can make.
    """
    family_of = {column: family for family, columns in FAMILIES.items() for column in columns}
    if homeless := [column for column in made if column not in family_of and column not in NOT_LEARNT]:
        raise SystemExit(f"column {homeless[0]!r} of a stage is in no family: name it in FAMILIES of learn_fusion.py")
    if unknown := sorted(family_of.keys() - EVIDENCE_COLUMNS - set(PLAIN)):
        raise SystemExit(f"FAMILIES of learn_fusion.py names {unknown[0]!r}, which no stage of evidence makes")
    return {
        column: (None if family in FORM or column in AGAINST else 0, 0 if column in AGAINST else None)
        for column, family in family_of.items()
        if column in made and family not in without
    }


def recalls_of_presets(kind: str, evidence: Evidence, folder: Path) -> dict[str, dict[int, Numbers]]:
    """The preset `neighbours` and the plain arms -> cutoff -> recall of every question, by `lcm evaluate`."""
    dataset, *more = talk_kinds.overrides(kind, folder)
    runs = folder / "presets" / kind
    common = ["arms=controls", *COMMON[1:], "measures.retention.budgets=[]", *more, "system=neighbours"]
    run(runs, dataset.removeprefix("dataset="), "neighbours", common)
    values = Run(place(runs, "neighbours")).per_query
    asked = pl.DataFrame({"query_id": evidence.ids})
    found: dict[str, dict[int, Numbers]] = {}
    for arm in ("system", *ARMS):
        name = "neighbours" if arm == "system" else arm
        for cutoff in (5, 10):
            of_arm = values.filter(arm=arm, measure=f"recall@{cutoff}").select("query_id", "value")
            joined = asked.join(of_arm, on="query_id", how="left", maintain_order="left")["value"]
            assert joined.null_count() == 0, "the same questions are judged"
            found.setdefault(name, {})[cutoff] = joined.to_numpy()
    return found


def validate(study: Study, folder: Path) -> None:
    found: dict[str, dict[str, dict[int, Numbers]]] = {}
    for kind, evidence in study.kinds.items():
        plain = evidence.of(PLAIN).sum(axis=1, dtype=np.float64)
        ways: dict[str, Numbers | None] = {
            "plain sum": plain,
            "kind left out": scored(evidence, study.of_others[kind]),
            "group left out": study.group_out(kind),
            "conversation left out": study.conversation_out(kind),
            "fitted to all": scored(evidence, study.fitted_to_all),
        }
        recalls = {way: evidence.recalls(scores, 5, 10) for way, scores in ways.items() if scores is not None}
        found[kind] = {**recalls_of_presets(kind, evidence, folder), **recalls}
    found |= {
        group: {
            way: {k: np.concatenate([found[kind][way][k] for kind in kinds]) for k in (5, 10)}
            for way in WAYS
            if all(way in found[kind] for kind in kinds)
        }
        for group, kinds in _groups(found)
    }
    for k in (5, 10):
        print(f"\nrecall@{k}\n")
        _table(
            ["kind", "questions", *WAYS],
            [
                [kind, str(len(of["plain sum"][k])), *(shown(of[way][k]) if way in of else "–" for way in WAYS)]
                for kind, of in found.items()
            ],
        )
        print(f"\nrecall@{k}, kind left out: gained over\n")
        _table(
            ["kind", *RIVALS],
            [
                [kind, *(shown(of["kind left out"][k] - of[rival][k], "+") for rival in RIVALS)]
                for kind, of in found.items()
            ],
        )
    _by_category(study, found)


def _by_category(study: Study, found: Mapping[str, Mapping[str, Mapping[int, Numbers]]]) -> None:
    print("\nrecall@10 by category of question\n")
    rows = []
    for kind, evidence in study.kinds.items():
        for category in dict.fromkeys(evidence.categories):
            is_here = evidence.categories == category
            cells = (f"{found[kind][way][10][is_here].mean():.3f}" if way in found[kind] else "–" for way in WAYS)
            rows.append([kind, category, str(is_here.sum()), *cells])
    _table(["kind", "category", "questions", *WAYS], rows)


def ablate(study: Study) -> None:
    """Print what each family is worth to each kind that was left out; * = the 95 % interval is without 0."""
    print("\nrecall@10, kind left out, learnt without a family: difference; * = its 95 % interval is without 0\n")
    whole = {
        kind: evidence.recalls(scored(evidence, study.of_others[kind]), 10)[10]
        for kind, evidence in study.kinds.items()
    }
    rows = []
    for family, columns in FAMILIES.items():
        if not set(columns) & study.bounds.keys():
            continue
        differences = {}
        for kind, evidence in study.kinds.items():
            start = study.of_others[kind]
            weights = study.learnt(study.others(kind), without=columns, start=start)
            differences[kind] = evidence.recalls(scored(evidence, weights), 10)[10] - whole[kind]
        for group, kinds in _groups(differences):
            differences[group] = np.concatenate([differences[kind] for kind in kinds])
        rows.append([family, *(_starred(values) for values in differences.values())])
    _table(["without", *differences], rows)


def _groups(kinds: Mapping[str, object]) -> list[tuple[str, Sequence[str]]]:
    """The groups of which every kind is there."""
    return [(group, members) for group, members in talk_kinds.GROUPS.items() if set(members) <= kinds.keys()]


def _starred(values: Numbers) -> str:
    mean, low, high = interval(values)
    return f"{mean:+.3f}{'*' if low > 0 or high < 0 else ''}"


def print_weights(study: Study) -> None:
    print("\nweights: # column -> what it weighs")
    for column, weight in _written(study.fitted_to_all).items():
        print(f"  {column}: {weight}")


def left_out(study: Study, preset: Sequence[str]) -> dict[str, list[str]]:
    """Kind -> the overrides that set the weights which the other kinds give, for every kind, collected or not.

    Args:
        preset: columns that the preset weighs, of which those that were not learnt are set to 0.
    """
    found = {}
    for kind in talk_kinds.EVERY_KIND:
        learnt = study.of_others.get(kind) or study.learnt(study.others(kind), start=study.fitted_to_all)
        weights = {**dict.fromkeys(preset, "0"), **_written(learnt)}
        found[kind] = [f"++fusion.weights={{{','.join(f'{column}:{weight}' for column, weight in weights.items())}}}"]
    return found


def _written(weights: Mapping[str, float]) -> dict[str, str]:
    """As a YAML has them, without those that are nothing then."""
    return {column: f"{weight:.3g}" for column, weight in weights.items() if float(f"{weight:.3g}") != 0}


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for row in (head, ["---"] * len(head), *rows):
        print(f"| {' | '.join(row)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="+", choices=["collect", "validate", "ablate", "weights"])
    parser.add_argument(
        "--system", nargs="*", default=[], help="overrides of system=unified, as extraction=steps, or another system"
    )
    parser.add_argument("--kinds", nargs="*", default=talk_kinds.KINDS, choices=talk_kinds.EVERY_KIND)
    parser.add_argument(
        "--weight", nargs="*", default=[], metavar="KIND=NUMBER", help="of a kind, in place of its size's"
    )
    parser.add_argument("--size", type=float, default=SIZE, help="a kind weighs its number of questions to this power")
    parser.add_argument("--without", nargs="*", default=[], choices=list(FAMILIES), help="families that are left out")
    parser.add_argument("--l2", type=float, default=L2, help="what large weights cost")
    parser.add_argument("--left-out", metavar="FILE", help="where `weights` puts those of the other kinds, as JSON")
    parser.add_argument("--folder", default="runs/learn_fusion", help="where evidence and runs of presets are kept")
    arguments = parser.parse_args()
    folder = Path(arguments.folder).resolve()
    presets = [override for override in arguments.system if override.startswith("system=")]
    system = (*(() if presets else ("system=unified",)), *arguments.system)
    config = composition.composed([*COMMON, *system])
    made = evidence_columns(building.build(config, "memory"))
    bounds = bounds_of((*PLAIN, *made), arguments.without)
    kinds = {}
    for kind in arguments.kinds:
        kinds[kind] = collected(kind, talk_kinds.overrides(kind, folder), folder, system)
        print(f"{kind}: {len(kinds[kind])} questions, {len(kinds[kind].questions)} rows", file=sys.stderr, flush=True)
    if set(arguments.steps) == {"collect"}:
        return
    weights = {
        kind: 0.0 if kind in talk_kinds.MEASURED_ONLY else float(len(evidence) ** arguments.size)
        for kind, evidence in kinds.items()
    }
    weights |= {kind: float(number) for kind, _, number in (one.partition("=") for one in arguments.weight)}
    study = Study(kinds, weights, bounds, arguments.l2)
    if "validate" in arguments.steps:
        validate(study, folder)
    if "ablate" in arguments.steps:
        ablate(study)
    if "weights" in arguments.steps:
        print_weights(study)
        if arguments.left_out:
            overrides = left_out(study, list(config.fusion.weights))
            Path(arguments.left_out).write_text(json.dumps(overrides, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
