"""A T5 beside torch's: what counts as unequal, and the texts that both are given."""

import re
import shutil
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from benchmarks.t5 import CLOSE_CALL_NATS, DIFFERS, Agreement, agreement, main, sample_texts, texts_of
from lcm.compaction.summarizer.t5 import Window, WindowSummary
from lcm.errors import LcmError, ModelError
from tests.support.models import TinyT5
from tests.support.tiny_t5 import examples


class Told:
    """A reference that gives each token a probability by its place, whatever stands before."""

    end_ids = frozenset({1})

    def __init__(self, gap: float) -> None:
        self._gap = gap

    def encode(self, ids: list[int]) -> None:
        """Nothing that the probabilities depend on."""

    def log_probabilities(self, encoded: None, ids: list[int]) -> np.ndarray:
        return np.array([-1.0 - self._gap * (token == 6) for token in ids])


@pytest.mark.parametrize("beams", [1, 4])
def test_only_what_rounding_cannot_have_decided_is_unequal(beams: int) -> None:
    def said(*summaries: list[int]) -> list[WindowSummary]:
        return [WindowSummary("", 0.0, ids) for ids in summaries]

    asked = [Window([], limit=2)] * 3
    pair = said([5], [5], [6, 5]), said([5], [6], [5, 6])
    near, far = (agreement(cast(Any, Told(gap)), asked, *pair, beams) for gap in (CLOSE_CALL_NATS / 2, 9.0))
    assert near == Agreement(equal=1, close=2, unequal=0)
    assert far == Agreement(equal=1, close=int(beams > 1), unequal=2 - int(beams > 1))  # as wholes the last are even


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


@pytest.mark.full
def test_a_check_ends_with_whether_full_precision_says_what_torch_says(
    built_t5: TinyT5, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(example.text for example in examples(seed=1000, count=3)))
    asked = (f"texts={texts}", "count=2", "max_new_tokens=8")
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    assert main([str(built_t5.trained), *asked]) == 0
    held = capsys.readouterr().out
    assert "2 texts, summaries of at most 8 tokens" in held
    assert "fp32 says what torch says" in held
    assert re.search(r"│ fp32 +│ +4 │ +16 │ +2 of 2 │ +0 │ +│", held)
    mixed = tmp_path / "mixed"  # graphs of one model, and weights of another
    shutil.copytree(built_t5.untrained, mixed)
    for graph in (tmp_path / "cache" / "models").rglob("*_model.onnx"):  # not those of int8
        shutil.copy(graph, mixed)
    assert main([str(mixed), *asked]) == DIFFERS
    assert len(re.findall(r"│ fp32 +│ +\d+ │ +\d+ │ +0 of 2 │ +0 │", capsys.readouterr().out)) == 4
    (mixed / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"mixed holds no weights, which torch reads: expected model\.safetensors"):
        main([str(mixed), *asked])
