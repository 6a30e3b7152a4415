"""DialogSum: short spoken dialogues, each with a reference summary; nothing is asked of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from eval.dataset.card import Card, dataset_digest, read_card
from eval.dataset.dataset import Dataset, Draft, opaque_id, text_message
from eval.dataset.files import (
    Published,
    any_of,
    check_part,
    csv_rows,
    csv_table,
    json_lines,
    json_records,
    notes_of,
    part_words,
)
from lcm.records.conversation import Transcript

_SPEAKER = re.compile(r"(?:\A|\n)(#Person\d+#): ")
_ONE_OF_THREE = re.compile(r"(.+_\d+)_\d+")
"""How rows of a CSV file that summarise the same dialogue are named: test_0_1, test_0_2, test_0_3."""
_SUMMARIES = ("summary", "summary1", "summary2", "summary3")

LINES = json_records("lines", ("fname",), _SUMMARIES)
TABLE = csv_table("id", "dialogue", "summary")


@dataclass(frozen=True, slots=True)
class Dialogsum(Published):
    """500 dialogues of two to four people with one summary each, or of the test set with three; 12,460 to train with.

    Times: none recorded. No queries and no judgements: it measures summaries, not retrieval. `only` names dialogues, as
    `dev_0`.
    """

    card: ClassVar[Card] = read_card("dialogsum")

    def load(self) -> Dataset:
        found = self.find(any_of(LINES, TABLE))
        dialogues = _dialogues(found.path)
        check_part(self.only, dialogues, found.path.name)
        taken, draft = [name for name in dialogues if self.takes(name)], Draft()
        for name in taken:
            dialogue, summaries = dialogues[name]
            draft.transcripts.append(_transcript(name, dialogue))
            draft.references += [(opaque_id("dialogsum", name), None, summary) for summary in summaries]
        protocol = f"references={max(len(dialogues[name][1]) for name in taken)}{part_words(self.only)}"
        return draft.dataset("dialogsum", protocol, dataset_digest([found.pin], protocol), notes_of(found))


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


def _transcript(name: str, dialogue: str) -> Transcript:
    session_id = opaque_id("dialogsum", name, "session")
    messages = tuple(
        text_message(
            opaque_id("dialogsum", name, str(index)),
            session_id,
            words.strip(),
            {"speaker": speaker, "text": words},
            text=words,
            author=speaker,
        )
        for index, (speaker, words) in enumerate(_turns(dialogue))
    )
    return Transcript(opaque_id("dialogsum", name), messages, workspace_id=name)


def _turns(dialogue: str) -> Iterator[tuple[str | None, str]]:
    """Speaker and words. A turn lasts until a line names the next speaker: other lines, blank ones too, are its own.

    Words before the first speaker are a turn of nobody.
    """
    before, *turns = _SPEAKER.split(dialogue)
    if before:
        yield None, before
    yield from zip(turns[::2], turns[1::2], strict=True)
