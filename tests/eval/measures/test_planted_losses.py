"""Sessions in which compaction was made to drop, change or age a fact: each loss is found, none is invented."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import polars as pl
import pytest

from eval.measures.survival import STATES, Survival
from lcm.compaction.facts.ledger import Ledger
from lcm.compaction.facts.statement import Kind
from lcm.compaction.lossless.lossless import Lossless
from lcm.context.assembly.lossless import Lossless as LosslessAssembly
from lcm.records.conversation import Transcript
from lcm.records.summary import SummaryRequest, SummaryResult
from lcm.token_estimator.utf16_units import Utf16Units
from tests.eval.measures.test_survival import measured, values
from tests.support.workspaces import system, transcript

Loss = Literal["dropped", "changed", "aged", "untouched"]
TOKENS = Utf16Units()
TALK = (
    "it rained again the whole morning, and nobody wanted to go out at all, not even for bread",
    "then we sat there and looked at the old wall for a while, as one does on such a day",
    "that was all very slow, but nobody minded much, and somebody hummed in the other room",
    "more of that later, first some rest would be good for everybody here, with the window open",
)
"""Says nothing, so that a summary that leaves it out is shorter."""


class Template(NamedTuple):
    """One fact, as it was first said, with its value; where it can age, with another one later."""

    kind: Kind
    words: str
    value: Callable[[random.Random], str]
    other: str = ""
    """The words of its next value, where these are others."""


def _digits(n: int) -> Callable[[random.Random], str]:
    return lambda chance: str(chance.randrange(10 ** (n - 1), 10**n))


def _hash(chance: random.Random) -> str:
    return f"{chance.randrange(16**9):09x}a{chance.randrange(10)}"


def _one_of(*values: str) -> Callable[[random.Random], str]:
    return lambda chance: chance.choice(values)


TEMPLATES = (
    Template("number", "The request timeout is {} s.", _digits(3)),
    Template("number", "The roof budget is {} EUR.", _digits(5)),
    Template("date", "The dentist appointment is on 2026-03-{}.", lambda chance: f"{chance.randrange(10, 29)}"),
    Template("identifier", "The booking reference is QX{}P.", _digits(4)),
    Template("preference", "My favourite colour is {}.", _one_of("teal", "amber", "ivory", "plum")),
    Template("rule", "Never push to the {} branch.", _one_of("main", "old"), "You may push to the {} branch."),
    Template("change", "I wrote src/app/{}.py.", _one_of("alpha", "beta"), "I deleted src/app/{}.py."),
    Template("command", "I ran `make check`, which ended with exit code {}.", _one_of("0", "2", "3", "127")),
    Template("identifier", "The fix went in as {}.", _hash),
    Template("url", "It is told at https://example.org/notes/{}.", _digits(6)),
    Template("error", "Then it said ValueError: no such plot {} in the list.", _digits(4)),
    Template("path", "Look at docs/history/{}.md some day.", _one_of("origin", "travel", "harbour")),
    Template("name", "That was when we met {} by the river.", _one_of("Tuva Lindqvist", "Nadja Bergström")),
    Template("decision", "Let's go with {} for the store.", _one_of("SQLite", "parquet")),
    Template("question", "Which port does the {} gateway use?", _one_of("northern", "southern")),
)
_THEMSELVES = ("url", "error", "path", "name")
"""Kinds that are about themselves: one letter of them is changed."""
AGEING = tuple(
    one
    for one in TEMPLATES
    if one.kind in ("number", "date", "preference", "rule", "change", "command") or "booking" in one.words
)
CHANGING = tuple(one for one in TEMPLATES if one.kind not in ("change", "decision", "question"))


@dataclass(frozen=True)
class Planted:
    """A session, and what its summaries make of one line of it."""

    lines: tuple[str, ...]
    line: str
    """The last true words of what is lost."""
    replacement: str
    """What the summary says in their place."""
    kind: Kind
    loss: Loss

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        """Every line that states something, word for word, but for the one; and no value that was replaced later."""
        return [SummaryResult(self._summary(request.text), 0.5, "planted") for request in requests]

    def _summary(self, text: str) -> str:
        kept = (line for line in text.splitlines() if line in self.lines and line not in TALK)
        told = (self.replacement if line == self.line else line for line in kept)
        return "\n".join(line for line in told if line) or "They talked."


def planted(seed: int) -> Planted:
    """One of the four kinds of session, in turn."""
    chance = random.Random(seed)
    loss: Loss = ("dropped", "changed", "aged", "untouched")[seed % 4]
    chosen = chance.choice({"aged": AGEING, "changed": CHANGING}.get(loss, TEMPLATES))
    others = chance.sample([one for one in TEMPLATES if one is not chosen], 5)
    said = [one.words.format(one.value(chance)) for one in others]
    first, last = _two_values(chosen, chance)
    if loss == "aged":
        said.insert(chance.randrange(len(said)), first)
    line = last if loss == "aged" else first
    said.append(line)
    replacement = {"dropped": "", "changed": _changed(chosen, line, chance), "aged": first, "untouched": line}[loss]
    lines = [part for words in said for part in (words, chance.choice(TALK))]
    return Planted((*lines, *TALK[:2]), line, replacement, chosen.kind, loss)


def _two_values(template: Template, chance: random.Random) -> tuple[str, str]:
    value = template.value(chance)
    if template.other:
        return template.words.format(value), template.other.format(value)
    other = next(one for one in iter(lambda: template.value(chance), None) if one != value)
    return template.words.format(value), template.words.format(other)


def _changed(template: Template, line: str, chance: random.Random) -> str:
    """Another value: of a word that is about itself one letter of it."""
    if template.kind == "rule":
        return line.replace("Never", "Always")
    if template.kind in _THEMSELVES or template.value is _hash:
        before, behind = map(len, template.words.split("{}"))
        letters = [n for n in range(before, len(line) - behind) if line[n].isalnum()]
        at = chance.choice(letters)
        return f"{line[:at]}{'7' if line[at] != '7' else '8'}{line[at + 1 :]}"
    return next(words for words in iter(lambda: _two_values(template, chance)[1], None) if words != line)


def monologue(lines: Sequence[str]) -> Transcript:
    """A user alone, so that no question is answered."""
    said = transcript(lines)
    return replace(said, messages=tuple(replace(one, role="user", author=None) for one in said.messages))


def survived(one: Planted) -> pl.DataFrame:
    compaction = Lossless(one, TOKENS, fresh_tail_count=2, leaf_chunk_tokens=100_000, min_leaf_tokens=0)
    by = system(compaction=compaction, assembly=LosslessAssembly(TOKENS, fresh_tail_count=2))
    return measured(Survival((100_000,), 1), by, monologue(one.lines)).filter(arm="system")


STATE_OF: dict[Loss, str] = {"dropped": "recoverable", "changed": "mutated", "aged": "stale"}


@pytest.mark.parametrize("loss", ["dropped", "changed", "aged", "untouched"])
@pytest.mark.parametrize(
    "seeds", [range(60), pytest.param(range(60, 200), marks=pytest.mark.full)], ids=["some", "more"]
)
def test_a_planted_loss_is_found_and_none_is_invented(loss: Loss, seeds: range) -> None:
    sessions = [one for one in map(planted, seeds) if one.loss == loss]
    assert len(sessions) == len(seeds) / 4
    assert [(one, wrong) for one in sessions if (wrong := _wrong(one))] == []


def _wrong(one: Planted) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
    """Map a kind that the scorecard gets wrong to its counts, and to the right ones."""
    rows = survived(one)
    facts = Ledger.of(monologue(one.lines).messages).facts.values()
    lost = Counter(fact.kind for fact in facts if one.line in _lines_of(one, fact.message_ids))
    total = Counter(fact.kind for fact in facts)
    assert lost[one.kind] >= 1
    wrong = {}
    for kind in total:
        found = values(rows, kind=kind)
        counts = {state: round(found[state] * total[kind]) for state in STATES if found[state]}
        gone = 0 if one.loss == "untouched" else lost[kind] if one.loss == "dropped" else int(kind == one.kind)
        expected = {"retained": total[kind] - gone} | ({STATE_OF[one.loss]: gone} if gone else {})
        if counts != (so := {state: n for state, n in expected.items() if n}):
            wrong[kind] = counts, so
    return wrong


def _lines_of(one: Planted, message_ids: Sequence[str]) -> set[str]:
    return {one.lines[int(message_id.partition(":")[2])] for message_id in message_ids}
