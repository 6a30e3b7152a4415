"""The same talk, whichever format it is written in, gives the same documents and the same answers."""

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.memory.memory import Memory
from lcm.transcript.folders import recorded_files
from lcm.transcript.reading import READERS, joined, read_pieces, reader_of
from pipelines.config.building import build
from tests.support.composing import composed
from tests.support.writers import WRITERS, Talk, Turn, Write

WORDS = st.text(st.sampled_from("abcdefgh ÄЖ水\n"), min_size=1, max_size=40).map(str.strip).filter(bool)
TALKS = st.lists(WORDS, min_size=1, max_size=6).map(
    lambda said: [Turn(("user", "assistant")[n % 2], words, n) for n, words in enumerate(said)]
)


def heard(write: Write, talk: Talk) -> tuple[str, list[tuple[str, str]], pl.DataFrame, list[str]]:
    """The format, who said what, the documents, and what is found of each turn, first to last."""
    with TemporaryDirectory() as folder:
        files = recorded_files([write(Path(folder), talk)])
        (file,) = files
        reader = reader_of(file)
        transcripts = joined(read_pieces(file, reader))
    assert (file.quarantine, file.doubts) == ([], [])
    (transcript,) = transcripts
    with Memory.open(build(composed(["embedder=hashing"]), "memory")) as memory:
        memory.ingest(transcript)
        documents = memory.documents.select("text", "created_at")
        answers = [memory.search(turn.words, talk[-1].at)["text"].to_list() for turn in talk]
    return reader.name, [(one.role, one.content) for one in transcript.messages], documents, answers


def test_every_reader_has_a_writer() -> None:
    assert set(WRITERS) == {reader.name for reader in READERS}


@given(TALKS)
@settings(max_examples=3)
def test_a_talk_is_the_same_in_every_format(talk: Talk) -> None:
    _, said, documents, answers = heard(WRITERS["chat"], talk)
    assert said == [(turn.role, turn.words) for turn in talk]
    for name, write in WRITERS.items():
        other = heard(write, talk)
        assert other[:2] == (name, said)
        assert other[2].equals(documents), name
        assert other[3] == answers, name
