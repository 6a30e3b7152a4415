"""How often the rule finds the category that a reader gives.

One reader labelled every message of the sample that has words of a user or an assistant, before the rule was written,
by what it newly says: `other`, a seventh class, where nothing is worth keeping. Messages whose id ends in an even digit
were there to write the cues by, the others are held out; both come from the same conversations.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from eval.dataset.sample import Sample
from lcm.writing.annotation import UNCATEGORISED, categories_of

LABELS = Path(__file__).parent / "category_labels.csv"


def held_out() -> Iterator[tuple[str, str]]:
    """(label, what the rule says) of each message of the half that is held out."""
    texts = {m.message_id: m.content for transcript in Sample().load().transcripts for m in transcript.messages}
    with LABELS.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if int(row["message_id"][-1], 16) % 2:
                (category,) = categories_of([texts[row["message_id"]]])
                yield row["category"], category or UNCATEGORISED


RIGHT_SAID_LABELLED = {
    "profile": (1, 2, 2),
    "preferences": (3, 3, 4),
    "entities": (12, 35, 27),
    "events": (46, 66, 59),
    "cases": (0, 1, 5),
    "patterns": (3, 5, 7),
    UNCATEGORISED: (27, 41, 49),
}
"""Precision is right of said, recall right of labelled. Right in all: 92 of 153; "events" alone would be on 59."""


def test_the_rule_is_right_on_92_of_153_held_out_messages() -> None:
    found = list(held_out())
    assert {
        category: (
            sum(pair == (category, category) for pair in found),
            sum(said == category for _, said in found),
            sum(label == category for label, _ in found),
        )
        for category in RIGHT_SAID_LABELLED
    } == RIGHT_SAID_LABELLED
