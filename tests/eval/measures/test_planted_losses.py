"""Sessions in which compaction was made to drop, change or age a fact: each loss is found, none is invented."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import polars as pl
import pytest

from eval.measures.sessions import STATES, Survival
from lcm.compaction.facts.ledger import Ledger
from lcm.compaction.facts.reading import Kind
from lcm.compaction.lossless.lossless import Lossless
from lcm.context.assembly.lossless import Lossless as LosslessAssembly
from lcm.records.conversation import Transcript
from lcm.records.summary import SummaryRequest, SummaryResult
from lcm.token_estimator import Utf16Units
from tests.eval.measures.test_survival import measured, values
from tests.support.workspaces import system, transcript

Loss = Literal["dropped", "changed", "aged", "untouched"]
STATE_OF: dict[Loss, str] = {"dropped": "recoverable", "changed": "mutated", "aged": "stale"}
TOKENS = Utf16Units()
TALK = (
    "it rained again the whole morning, and nobody wanted to go out at all, not even for bread",
    "then we sat there and looked at the old wall for a while, as one does on such a day",
    "that was all very slow, but nobody minded much, and somebody hummed in the other room",
    "more of that later, first some rest would be good for everybody here, with the window open",
)
"""Says nothing, so that a summary that leaves it out is shorter."""


class Stated(NamedTuple):
    """One fact, in words around a value."""

    kind: Kind
    frame: str
    value: str = ""
    changed: str = ""
    """What a summary makes of the value, where it can be changed; of a word that is about itself one letter."""
    later: str = ""
    """What is said of the same thing later, where it can age."""

    def words(self, value: str) -> str:
        return self.frame.format(value)


FACTS = (
    Stated("number", "The request timeout is {} s.", "250", "317", "804"),
    Stated("number", "The roof budget is {} EUR.", "41200", "14200", "52000"),
    Stated("date", "The dentist appointment is on {}.", "2026-03-12", "2026-03-21", "2026-03-19"),
    Stated("identifier", "The booking reference is {}.", "QX4417P", "QX4471P", "QX9050P"),
    Stated("preference", "My favourite colour is {}.", "teal", "plum", "amber"),
    Stated("rule", "{} push to the main branch.", "Never", "Always", "You may"),
    Stated("change", "I {} src/app/alpha.py.", "wrote", later="deleted"),
    Stated("command", "I ran `make check`, which ended with exit code {}.", "2", "127", "0"),
    Stated("identifier", "The fix went in as {}.", "9f1c20b77a3", "9f1c27b77a3"),
    Stated("url", "It is told at https://example.org/notes/{}.", "204418", "204718"),
    Stated("error", "Then it said ValueError: no such plot {} in the list.", "3305", "3705"),
    Stated("path", "Look at docs/history/{}.md some day.", "harbour", "har7our"),
    Stated("name", "That was when we met Tuva {} by the river.", "Lindqvist", "Lind7vist"),
    Stated("decision", "Let's go with SQLite for the store."),
    Stated("question", "Which port does the northern gateway use?"),
)
OTHERS = 5
"""How many facts a session states beside the one."""


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


def planted(number: int, loss: Loss) -> Planted | None:
    """Lose one fact of those that stand around it in the table, if it can be lost so."""
    fact = FACTS[number]
    if (loss == "aged" and not fact.later) or (loss == "changed" and not fact.changed):
        return None
    said = [one.words(one.value) for one in (*FACTS, *FACTS)[number + 1 : number + 1 + OTHERS]]
    first, changed, later = map(fact.words, (fact.value, fact.changed, fact.later))
    line = later if loss == "aged" else first
    said = [*said[:2], *([first] if loss == "aged" else []), *said[2:], line]
    replacement = {"dropped": "", "changed": changed, "aged": first, "untouched": line}[loss]
    lines = [part for n, words in enumerate(said) for part in (words, TALK[n % len(TALK)])]
    return Planted((*lines, *TALK[:2]), line, replacement, fact.kind, loss)


def monologue(lines: Sequence[str]) -> Transcript:
    """A user alone, so that no question is answered."""
    said = transcript(lines)
    return replace(said, messages=tuple(replace(one, role="user", author=None) for one in said.messages))


def survived(one: Planted) -> pl.DataFrame:
    compaction = Lossless(one, TOKENS, fresh_tail_count=2, leaf_chunk_tokens=100_000, min_leaf_tokens=0)
    by = system(compaction=compaction, assembly=LosslessAssembly(TOKENS, fresh_tail_count=2))
    return measured(Survival((100_000,), 1), by, monologue(one.lines)).filter(arm="system")


@pytest.mark.parametrize("loss", get_args(Loss))
def test_a_planted_loss_is_found_and_none_is_invented(loss: Loss) -> None:
    sessions = [one for number in range(len(FACTS)) if (one := planted(number, loss))]
    assert len(sessions) >= 8
    assert [(one, wrong) for one in sessions if (wrong := _wrong(one))] == []


def _wrong(one: Planted) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
    """Map a kind that the scorecard gets wrong to its counts, and to the right ones."""
    rows = survived(one)
    facts = Ledger.of(monologue(one.lines).messages).facts.values()
    place = f":{one.lines.index(one.line)}"
    lost = Counter(fact.kind for fact in facts if any(message.endswith(place) for message in fact.message_ids))
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
