"""DialogSum: short spoken dialogues, each with a reference summary; nothing is asked of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from eval.dataset.card import Card, read_card
from eval.dataset.dataset import Dataset, Draft, one_session
from eval.dataset.files import PublishedFile, any_of, csv_rows, csv_table, json_lines, json_records

_SPEAKER = re.compile(r"(?:\A|\n)(#Person\d+#): ")
_ONE_OF_THREE = re.compile(r"(.+_\d+)_\d+")
"""How rows of a CSV file that summarise the same dialogue are named: test_0_1, test_0_2, test_0_3."""
_SUMMARIES = ("summary", "summary1", "summary2", "summary3")

LINES = json_records("lines", ("fname",), _SUMMARIES)
TABLE = csv_table("id", "dialogue", "summary")


@dataclass(frozen=True, slots=True)
class Dialogsum(PublishedFile):
    """500 dialogues of two to four people with one summary each, or of the test set with three; 12,460 to train with.

    Times: none recorded. No queries and no judgements: it measures summaries, not retrieval. `only` names dialogues, as
    `dev_0`.
    """

    card: ClassVar[Card] = read_card("dialogsum")

    def load(self) -> Dataset:
        found = self.find(any_of(LINES, TABLE))
        dialogues = _dialogues(found.path)
        self.check_part(dialogues, found.path.name)
        taken, draft = [name for name in dialogues if self.takes(name)], Draft()
        for name in taken:
            dialogue, summaries = dialogues[name]
            turns = _turns(dialogue)
            said = ((who, words.strip(), words, {"speaker": who, "text": words}) for who, words in turns)
            draft.transcripts.append(one_session("dialogsum", name, said))
            draft.references += [(draft.transcripts[-1].conversation_id, None, summary) for summary in summaries]
        return self.dataset(draft, f"references={max(len(dialogues[name][1]) for name in taken)}", [found])


def _dialogues(path: Path) -> dict[str, tuple[str, list[str]]]:
    """Name -> dialogue and its summaries."""
    if LINES.is_held_by(path):
        records = json_lines(path)
        name_key, is_named_by_row = "fname", False
    else:
        records = csv_rows(path, ("id", "dialogue", "summary"))
        name_key, is_named_by_row = "id", True
    dialogues: dict[str, tuple[str, list[str]]] = {}
    for record in records:
        name, dialogue = record.get(name_key, str), record.get("dialogue", str)
        of_several = _ONE_OF_THREE.fullmatch(name) if is_named_by_row else None
        name = of_several[1] if of_several else name
        summaries = [text for text in (record.find(key, str) for key in _SUMMARIES) if text is not None]
        if not summaries:
            raise record.wrong("summary", "is missing")
        known, before = dialogues.setdefault(name, (dialogue, []))
        if known != dialogue or (before and of_several is None):
            raise record.wrong(name_key, f"{name!r} is another dialogue's too")
        before += summaries
    return dialogues


def _turns(dialogue: str) -> Iterator[tuple[str | None, str]]:
    """Speaker and words. A turn lasts until a line names the next speaker: other lines, blank ones too, are its own.

    Words before the first speaker are a turn of nobody.
    """
    before, *turns = _SPEAKER.split(dialogue)
    if before:
        yield None, before
    yield from zip(turns[::2], turns[1::2], strict=True)
