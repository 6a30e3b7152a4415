"""A T5 beside torch's: the same model says the same; and the texts that both are given."""

from pathlib import Path

import pytest

from eval.models.checking import BATCHES, BEAMS, Agreement, check
from eval.models.texts import sample_texts, texts_of
from lcm.compaction.summarizer.t5_writing import CLOSE_CALL_NATS, WindowSummary
from lcm.errors import LcmError
from tests.support import tiny_t5 as toy
from tests.support.models import TinyT5

TEXTS = [example.text for example in toy.examples(seed=1000, count=6)]
PREFIX = "summarize: "


def unseen(*_: object) -> None:
    """Progress that nobody looks at."""


@pytest.mark.full
def test_the_same_model_says_the_same_in_every_way(tiny_t5: TinyT5) -> None:
    steps: list[tuple[str, int, int]] = []
    found = check(str(tiny_t5.trained), TEXTS, 14, PREFIX, lambda *step: steps.append(step))
    ways = [(p, beams, batch) for p in ("fp32", "int8") for beams in BEAMS for batch in BATCHES[p]]
    assert [(one.by, one.beams, one.batch_size) for one in found.results] == [
        *(("torch", beams, 1) for beams in BEAMS), *ways,
    ]  # fmt: skip
    of_torch, exact, quantized = ([one for one in found.results if one.by == by] for by in ("torch", "fp32", "int8"))
    assert [one.agreement for one in exact] == [Agreement(len(TEXTS), 0, 0)] * 4
    assert {one.tokens for one in exact} == {one.tokens for one in of_torch}
    assert all(one.tokens >= 6 * len(TEXTS) and one.tokens_per_second > 0 for one in found.results)
    assert all(one.rouge_l is not None and one.rouge_l > 0.9 for one in quantized)
    assert found.holds
    assert steps == [("summarising", done, 7) for done in range(8)]


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
