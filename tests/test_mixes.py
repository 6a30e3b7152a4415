"""Random mixes of all groups: built or refused for every reason at once, and no part of them idle in silence."""

from collections.abc import Sequence

import pytest

from docs.experiments.random_mixes import (
    APART,
    NEEDS,
    Mix,
    Runner,
    became,
    choices,
    defaults,
    is_named,
    looked_at,
    mixes,
    parts_of_mix,
)
from lcm.errors import LcmError
from pipelines.config import building, conf_folder
from pipelines.config.idle import idle_note
from pipelines.config.readers import keys_unread, parts_read
from pipelines.steps.point import READ
from tests.support.composing import composed

MIXES = mixes()
EVERY = 20
"""One mix of so many is built in the fast part; and so many tests share the runs."""
MOST_REFUSED = 0.05
SILENT = {
    57: "source",  # another note says it: no query is answered with a document, whichever source gives them
    89: "summarizer",  # the default's own choice, which nobody asked for, under compaction=none
}
"""Mix -> its part that may be taken out, and neither the result nor a note of idle parts says so."""


ALIKE: dict[str, str] = {
    "token_estimator=code_points_up": "as utf16_units, where no text has a character that takes two of these",
    "decay=weibull_fast": "no document is old enough to fall below its tier's floor, at whichever speed",
    "decay=weibull_slow": "likewise",
    "decay=exponential": "as authority, where every document is of one scope class",
    "source=by_scope": "as hybrid, where pools hold every document and the fusion reads nothing but its cosine",
    "source=dense": "likewise",
    "assembly=lossless_claw": "as lossless, where nothing is folded",
}
"""Choice -> why it gives the same as that of a preset on the sample, though both act."""


def built(numbers: Sequence[int]) -> tuple[list[str], list[str]]:
    """What is refused, and what is idle in silence."""
    refused, unsaid = [], []
    for number in numbers:
        parts = parts_of_mix(MIXES[number])
        config = composed([f"{group}={choice}" for group, choice in parts.items()])
        try:
            building.refuse_unused(config, [])
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
    assert built(range(0, len(MIXES), EVERY)) == ([], [])


@pytest.mark.full
def test_every_mix_is_built_and_what_nothing_reads_is_told() -> None:
    refused, unsaid = built(range(len(MIXES)))
    assert len(refused) <= MOST_REFUSED * len(MIXES), refused
    assert unsaid == []


@pytest.mark.full
@pytest.mark.parametrize("first", range(EVERY))
def test_a_part_that_is_taken_out_changes_the_result_or_is_told(first: int) -> None:
    runner = Runner()
    rows = [looked_at(runner, number, MIXES[number], 1, 0) for number in range(first, len(MIXES), EVERY)]
    assert [(row.number, row.result.refusal) for row in rows if row.result.refusal] == []
    silent = {row.number: part for row in rows for part, outcome in row.parts.items() if outcome == "silent"}
    assert silent == {number: part for number, part in SILENT.items() if number % EVERY == first}


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
    named = set(conf_folder.table_of_contents(conf_folder.EVALUATE))
    assert set(known) | set(APART) == named


def test_a_preset_stands_below_what_a_mix_chooses() -> None:
    mix: Mix = {"system": "libravdb", "compaction": "none"}
    parts = parts_of_mix(mix)
    assert (parts["compaction"], parts["guidance"], parts["embedder"]) == ("none", "libravdb", "hashing")
    note = idle_note(composed([f"{group}={choice}" for group, choice in parts.items()])) or ""
    assert note == (
        "parts without work here: guidance, summarizer, summary_documents (compaction=none makes no summary); "
        "authored (authored.paths names no file)"
    )
