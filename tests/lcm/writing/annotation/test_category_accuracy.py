"""How often the rule finds the category that a reader gives.

The labels cover every message of the sample that has words of a user or an assistant. They were given before the rule
was written, by one reader: the category of what a message newly says, `other` where nothing in it is worth keeping
(questions, thanks, jokes), which counts as a seventh class and is what a text without a cue gets. Plans, appointments
and decisions are events; what is true of a person, thing or project is an entity; advice for any time is a pattern.

A message whose id ends in an even digit was there to write the cues by, the others are held out: the rule was first run
on them when it was finished. Both halves come from the same conversations, and whoever wrote the cues had read both.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval.dataset.sample import Sample
from lcm.writing.annotation.rules import UNCATEGORISED, categories_of

LABELS = Path(__file__).parent / "category_labels.csv"
HELD_OUT = 153


def pairs(held_out: bool) -> Iterator[tuple[str, str]]:
    """(label, what the rule says) of each message of one half."""
    texts = {m.message_id: m.content for transcript in Sample().load().transcripts for m in transcript.messages}
    with LABELS.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if int(row["message_id"][-1], 16) % 2 == held_out:
                (category,) = categories_of([texts[row["message_id"]]])
                yield row["category"], category or UNCATEGORISED


FOUND = list(pairs(held_out=True))


def test_the_rule_is_right_on_92_of_153_held_out_messages_where_the_commonest_label_is_on_59() -> None:
    assert len(FOUND) == HELD_OUT
    assert sum(label == said for label, said in FOUND) == 92  # .60
    assert sum(label == "events" for label, _ in FOUND) == 59  # .39, the most frequent label


def test_without_the_messages_of_no_category_it_is_right_on_65_of_104() -> None:
    named = [(label, said) for label, said in FOUND if label != UNCATEGORISED]
    assert len(named) == 104
    assert sum(label == said for label, said in named) == 65  # .63; always "events": 59, .57


@pytest.mark.parametrize(
    ("category", "right", "said", "labelled"),
    [
        ("profile", 1, 2, 2),
        ("preferences", 3, 3, 4),
        ("entities", 12, 35, 27),
        ("events", 46, 66, 59),
        ("cases", 0, 1, 5),
        ("patterns", 3, 5, 7),
        ("other", 27, 41, 49),
    ],
)
def test_precision_is_right_of_said_and_recall_right_of_labelled(
    category: str, right: int, said: int, labelled: int
) -> None:
    assert sum(pair == (category, category) for pair in FOUND) == right
    assert sum(found == category for _, found in FOUND) == said
    assert sum(label == category for label, _ in FOUND) == labelled


def test_the_half_that_the_cues_were_written_by_flatters_it() -> None:
    seen = list(pairs(held_out=False))
    assert len(seen) == 160
    assert sum(label == said for label, said in seen) == 112  # .70
