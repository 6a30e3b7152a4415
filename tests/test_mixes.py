"""Random mixes of all groups: built or refused for every reason at once, and no part of them idle in silence."""

import random
from collections.abc import Sequence

import pytest

from experiments.mixed_knobs import pairs, turned
from experiments.random_mixes import (
    APART,
    NEEDS,
    Mix,
    Runner,
    asked,
    became,
    choices,
    defaults,
    is_named,
    laid,
    looked_at,
    mixes,
    parts_of_mix,
    removable,
    written,
)
from lcm.errors import LcmError
from pipelines.config import building, composition, conf_folder, contracts
from pipelines.config.contracts import idle_note, keys_unread, parts_read
from pipelines.steps.point import READ
from tests.support.composing import composed
from tests.support.weekly import of_this_week

MIXES = mixes()
BUILT_IN_CI = of_this_week(range(len(MIXES)), 12)
MOST_REFUSED = 0.05
PAIRS = random.Random(0).sample([(number, part) for number, mix in enumerate(MIXES) for part in removable(mix)], 24)
"""Mixes and a part of each that is taken out; a few of them in CI."""
FAST = 3
KNOBS_TURNED = 12


ALIKE: dict[str, str] = {
    "token_estimator=recorded": "as weighted, where no context is cut by what the one session with usage recorded",
    "ranking=lancedb_pro_beta11": "as lancedb_pro, where nothing is authored and nobody complains of the memory",
    "token_estimator=code_points_up": "as utf16_units, where no text has a character that takes two of these",
    "decay=weibull_fast": "no document is old enough to fall below its tier's floor, at whichever speed",
    "decay=weibull_slow": "likewise",
    "decay=exponential": "as authority, where every document is of one scope class",
    "source=by_scope": "as hybrid, where pools hold every document and the fusion reads nothing but its cosine",
    "source=dense": "likewise",
    "recovery=corrected": "as libravdb, where no word tells the two apart",
    "summarizer=centroid": "as routed, where there is no model for technical talk",
    "annotation=none": "under lancedb_pro_tuned: decay alone reads it, and the run tells that it changed no answer",
    "assembly=lossless_claw": "as lossless, where nothing is folded, or the fresh tail fills the budget",
    "assembly=lossless": "as lossless_claw, likewise",
}
"""Choice -> why it gives the same as that of a preset on the sample, though both act."""


def built(numbers: Sequence[int]) -> tuple[list[str], list[str]]:
    """What is refused, and what is idle in silence."""
    refused, unsaid = [], []
    for number in numbers:
        parts = parts_of_mix(MIXES[number])
        config = composed([f"{group}={choice}" for group, choice in parts.items()])
        try:
            contracts.refuse_unused(config, [])
            building.build(config, "memory")
        except LcmError as error:
            refused.append(f"{number}: {error}")
            continue
        chosen = {group for group, choice in parts.items() if choice != defaults()[group]}
        plain = building.as_written(config)
        read = {key.partition(".")[0] for part in parts_read(plain, READ) for key in part.keys}
        dead = {unread.key.partition(".")[0] for unread in keys_unread(plain, READ)} - read
        note = (idle_note(config) or "",)
        unsaid += [f"{number}: {part}" for part in sorted(chosen & dead - {"ranking"}) if not is_named(part, note)]
    return refused, unsaid


def test_mixes_are_built_and_what_nothing_reads_is_told() -> None:
    assert built(BUILT_IN_CI) == ([], [])


@pytest.mark.full
def test_every_mix_is_built_and_what_nothing_reads_is_told() -> None:
    refused, unsaid = built(range(len(MIXES)))
    assert len(refused) <= MOST_REFUSED * len(MIXES), refused
    assert unsaid == []


def wrong_without(pairs: Sequence[tuple[int, str]]) -> list[str]:
    """The parts that may be taken out in silence, and those that are told to have no work and act."""
    runner, found = Runner(), []
    for number, part in pairs:
        row = looked_at(runner, number, MIXES[number], [part], verified=1)
        outcome = row.result.refusal or row.parts[part]
        found += [] if outcome in ("acts", "noted", "default") else [f"{number} without {part}: {outcome}"]
    return found


@pytest.mark.parametrize(
    "some",
    [
        pytest.param(of_this_week(PAIRS, FAST), id="of this week"),
        pytest.param(PAIRS, id="all", marks=pytest.mark.full),
    ],
)
def test_a_part_that_is_taken_out_changes_the_result_or_is_told(some: list[tuple[int, str]]) -> None:
    assert wrong_without(some) == []


@pytest.mark.full
def test_a_knob_that_is_turned_in_a_mix_changes_the_result_or_is_told() -> None:
    runner = Runner()
    found = [turned(runner, number, knob) for number, knob in pairs(KNOBS_TURNED)]
    assert [f"{one.knob}={one.value} in mix {one.number}" for one in found if one.outcome == "dead"] == []


@pytest.mark.full
@pytest.mark.parametrize("number", [0, 1])
def test_a_mix_is_laid_over_the_defaults_as_its_command_line_composes(number: int) -> None:
    command_line = asked(MIXES[number])
    assert building.as_written(laid(command_line)) == building.as_written(composition.composed(written(command_line)))


@pytest.mark.full
@pytest.mark.parametrize("system", choices()["system"])
def test_another_choice_of_a_group_changes_a_preset_or_is_told(system: str) -> None:
    """Of each group one choice; they take turns from one preset to the next."""
    runner, base, turn = Runner(), {"system": system}, choices()["system"].index(system)
    own, silent = defaults() | parts_of_mix(base), set()
    for group in choices().keys() - {"system", "replay"}:  # how a dataset is played is no part of the memory
        others = [choice for choice in choices()[group] if choice != own[group]]
        choice = others[turn % len(others)] if others else own[group]
        both = ({**base, group: choice}, base)
        if others and all(became(runner, one, other, group) == "silent" for one, other in (both, both[::-1])):
            silent.add(f"{group}={choice}")
    assert silent <= ALIKE.keys()


def test_every_choice_that_needs_nothing_is_mixed() -> None:
    known = {group: set(conf_folder.groups()[group]) - set(NEEDS.get(group, ())) for group in choices()}
    mixed: dict[str, set[str]] = {group: set() for group in known}
    for mix in MIXES:
        for group, choice in mix.items():
            mixed[group].add(choice)
    assert mixed == known
    named = conf_folder.shipped().chosen(conf_folder.EVALUATE).choices.keys() & conf_folder.groups().keys()
    assert set(known) | set(APART) == named


def test_a_preset_stands_below_what_a_mix_chooses() -> None:
    mix: Mix = {"system": "libravdb", "compaction": "none"}
    parts = parts_of_mix(mix)
    assert (parts["compaction"], parts["guidance"], parts["embedder"]) == ("none", "libravdb", "hashing")
    note = idle_note(composed([f"{group}={choice}" for group, choice in parts.items()])) or ""
    assert note == (
        "parts without work here: guidance, summarizer, summary_documents (compaction=none makes no summary); "
        "authored, ranking.stages.hops (authored.paths names no file)"
    )
