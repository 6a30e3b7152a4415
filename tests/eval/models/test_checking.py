"""A T5 beside torch's: what counts as unequal, and the texts that both are given."""

from pathlib import Path

import pytest

from eval.models.checking import Agreement
from eval.models.texts import sample_texts, texts_of
from lcm.compaction.summarizer.t5_writing import CLOSE_CALL_NATS, WindowSummary
from lcm.errors import LcmError


def test_only_what_rounding_cannot_have_decided_is_unequal() -> None:
    def said(ids: list[int], margin: float) -> WindowSummary:
        return WindowSummary("", 0.0, ids, margin)

    written = [said([5], 0.0), said([6], CLOSE_CALL_NATS / 2), said([7], CLOSE_CALL_NATS), said([], 9.0)]
    assert Agreement.between(written, [[5], [5], [5], []]) == Agreement(equal=2, close=1, unequal=1)


def test_the_sample_gives_a_hundred_texts_that_differ() -> None:
    texts = sample_texts(100)
    assert len(set(texts)) == 100
    assert sample_texts(3) == texts[:3]
    assert all(text.count("\n") >= 2 for text in texts)


def test_a_file_gives_a_text_a_line(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("one\n\n  two  \nthree\n")
    assert texts_of(file, 2) == ["one", "two"]
    file.write_text(" \n")
    with pytest.raises(LcmError, match=r"texts=.*texts\.txt holds no text"):
        texts_of(file, 2)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(LcmError, match=r"texts=.*texts\.txt cannot be read .* name a file in UTF-8"):
        texts_of(file, 2)
    with pytest.raises(LcmError, match=r"texts=.*nowhere cannot be read"):
        texts_of(tmp_path / "nowhere", 2)
