"""DialogSum: short spoken dialogues, each with a reference summary; nothing is asked of them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import polars as pl

from eval.dataset.card import Card, PinnedFile, Release, dataset_digest
from eval.dataset.dataset import QRELS_SCHEMA, REFERENCES_SCHEMA, Dataset, opaque_id
from eval.dataset.fields import csv_rows, json_lines
from eval.dataset.published import (
    any_of,
    check_only,
    check_part,
    csv_table,
    find_file,
    json_records,
    part_words,
    text_lines,
    unpacked_lines,
)
from lcm.records.conversation import Message, Part, Transcript

_SPEAKER = re.compile(r"(?:\A|\n)(#Person\d+#): ")
_ONE_OF_THREE = re.compile(r"(.+_\d+)_\d+")
"""How rows of a CSV file that summarise the same dialogue are named: test_0_1, test_0_2, test_0_3."""
_SUMMARIES = ("summary", "summary1", "summary2", "summary3")

LINES = json_records("lines", ("fname",), _SUMMARIES)
TABLE = csv_table("id", "dialogue", "summary")

_COMMIT = "cylnlp/dialogsum commit 848cc8c05e0a"
_ADDRESS = "https://github.com/cylnlp/dialogsum/raw/848cc8c05e0a/DialogSum_Data/"


def _split(name: str, digest: str, size_bytes: int) -> Release:
    pin = PinnedFile(f"dialogsum.{name}.jsonl", digest, size_bytes)
    return Release(name, f"{_COMMIT}, DialogSum_Data/dialogsum.{name}.jsonl", (pin,), url=_ADDRESS)


RELEASES = (
    Release(
        "development",
        f"the development set of {_COMMIT}, compressed",
        (PinnedFile("dialogsum_dev.jsonl.gz", "40a9f0a3daf8dbd48376254737fd4b8e9b6a125da54642e9afa5882f76bd45a8"),),
        is_told=False,
    ),
    _split("dev", "436721e0a3571eef7072964f80e042fb151d8c6178db1a688ce8f803bbf0a13f", 471_830),
    _split("test", "6de36eca7e7b9b10975fd5ea3f47391df172d8b3c15d03d84d763cbaab015fda", 639_707),
)


@dataclass(frozen=True, slots=True)
class Dialogsum:
    """500 dialogues of two to four people with one summary each, or of the test set with three; 12,460 to train with.

    Times: none recorded. No queries and no judgements: it measures summaries, not retrieval.
    """

    directory: str | None = None
    """None: the folder `dialogsum` in `LCM_DATASETS_DIR`."""
    file: str | None = None
    """Its path below the folder, or an absolute one; None: the only file of dialogues there."""
    pinned: bool = False
    """Refuse a file of no known release, instead of taking it and saying so."""
    only: Sequence[str] | None = None
    """The dialogues that are taken, as `dev_0`; None: all."""

    card: ClassVar[Card] = Card(
        name="dialogsum",
        title="DialogSum: short dialogues with reference summaries, no questions; 500 in the development part",
        licence="CC BY-NC-SA 4.0: for measuring only, not shipped",
        origin=_COMMIT,
        how_to_get="`lcm datasets get dialogsum release=dev`, or by hand a file of DialogSum_Data, "
        "or a CSV file of Hugging Face knkarthick/dialogsum",
        releases=RELEASES,
    )

    def __post_init__(self) -> None:
        check_only(self.only)

    def load(self) -> Dataset:
        found = find_file(self.card, any_of(LINES, TABLE), self.directory, self.file, pinned=self.pinned)
        dialogues = _dialogues(found.path)
        check_part(self.only, dialogues, found.path.name)
        taken = {name: one for name, one in dialogues.items() if self.only is None or name in self.only}
        transcripts = tuple(_transcript(name, dialogue) for name, (dialogue, _) in taken.items())
        references = [
            (transcript.conversation_id, None, summary)
            for transcript, (_, summaries) in zip(transcripts, taken.values(), strict=True)
            for summary in summaries
        ]
        protocol = f"references={max(len(summaries) for _, summaries in taken.values())}{part_words(self.only)}"
        return Dataset(
            name="dialogsum",
            protocol=protocol,
            digest=dataset_digest([found.pin], protocol),
            transcripts=transcripts,
            queries=(),
            qrels=pl.DataFrame(schema=QRELS_SCHEMA),
            references=pl.DataFrame(references, schema=REFERENCES_SCHEMA, orient="row"),
            notes=found.notes(),
        )


def _dialogues(path: Path) -> dict[str, tuple[str, list[str]]]:
    """Name -> dialogue and its summaries."""
    if LINES.is_held_by(path):
        records = json_lines(unpacked_lines(path), path.name)
        name_key, is_named_by_row = "fname", False
    else:
        records = csv_rows(text_lines(path), path.name, ("id", "dialogue", "summary"))
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
    messages = tuple(
        Message(
            message_id=opaque_id("dialogsum", name, str(index)),
            role="user",
            content=words.strip(),
            session_id=opaque_id("dialogsum", name, "session"),
            author=speaker,
            parts=(Part("text", text=words),),
            envelope={"native": {"speaker": speaker, "text": words}, "slots": {}},
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
