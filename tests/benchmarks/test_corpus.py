"""Synthetic inputs: seeded, and shaped as recorded ones are."""

import json
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks import corpus
from lcm.transcript.parts import rebuild
from lcm.transcript.reading import read_transcripts


def test_the_same_seed_gives_the_same_inputs_and_another_seed_others() -> None:
    assert corpus.transcript(50, 1) == corpus.transcript(50, 1) != corpus.transcript(50, 2)
    assert corpus.queries(5, 1) == corpus.queries(5, 1) != corpus.queries(5, 2)
    assert np.array_equal(corpus.unit_vectors(5, 8, 1), corpus.unit_vectors(5, 8, 1))
    assert not np.array_equal(corpus.unit_vectors(5, 8, 1), corpus.unit_vectors(5, 8, 2))
    assert corpus.transcript(60, 1).messages[:50] == corpus.transcript(50, 1).messages, "a longer one begins alike"


def test_a_message_holds_what_was_recorded() -> None:
    natives = list(islice(corpus.native_messages(3), 30))
    assert [rebuild(message) for message in corpus.transcript(30, 3).messages] == natives


def test_a_written_file_is_a_transcript_of_about_a_kilobyte_a_line(tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    messages = corpus.write_chat(file, 200_000, 0)
    assert 200_000 <= file.stat().st_size < 230_000
    assert 700 < file.stat().st_size / messages < 1400
    assert [json.loads(line) for line in file.read_text().splitlines()] == list(
        islice(corpus.native_messages(0, corpus.LINE_CHARACTERS), messages)
    )
    (transcript,) = read_transcripts(file)
    assert len(transcript.messages) == messages
