"""A T5 held against torch's: the same tokens at full precision, what int8 changes, and how fast each is."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Self

from eval.measures.rouge import rouge
from eval.models import torch_reference
from eval.models.torch_reference import Generated, Task
from lcm.compaction.summarizer.t5_files import T5Files, find_folder, weights_alone
from lcm.compaction.summarizer.t5_model import T5Model
from lcm.compaction.summarizer.t5_windows import windows
from lcm.compaction.summarizer.t5_writing import CLOSE_CALL_NATS, Window, WindowSummary, Writing
from lcm.errors import ModelError
from lcm.retrieval.embedder.export import Precision
from lcm.retrieval.embedder.session import processors

BEAMS = (1, 4)
BATCHES = {"fp32": (1, 16), "int8": (1,)}
"""Precision -> batch sizes. With int8 every text is decoded alone, whatever is set."""
_LENGTH_PENALTY = 1.0
_PRECISIONS: tuple[Precision, ...] = ("fp32", "int8")
_STEP = "summarising"

Progress = Callable[[str, int, int], None]
"""Is told what is done, and how much of how much."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Which summaries are equal to others, token by token."""

    equal: int
    close: int
    """Others where two choices were nearer than 1e-4 nats, so that rounding decides."""
    unequal: int
    """All others."""

    @classmethod
    def between(cls, written: Sequence[WindowSummary], reference: Sequence[Sequence[int]]) -> Self:
        """How summaries agree with the tokens that others gave of the same texts."""
        different = [one for one, ids in zip(written, reference, strict=True) if one.ids != list(ids)]
        close = sum(one.margin < CLOSE_CALL_NATS for one in different)
        return cls(len(written) - len(different), close, len(different) - close)


@dataclass(frozen=True, slots=True)
class Result:
    """One way to summarise all texts."""

    by: str
    """`torch`, `fp32`, `int8`."""
    beams: int
    batch_size: int
    agreement: Agreement | None
    """With torch's summaries; None of torch itself."""
    rouge_l: float | None
    """Mean F1 over the words of fp32's summaries, where it is int8's that are held against them."""
    tokens: int
    seconds: float
    texts: int

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds

    @property
    def seconds_per_summary(self) -> float:
        return self.seconds / self.texts


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found."""

    model: str
    texts: int
    limit: int
    threads: int
    results: tuple[Result, ...]

    @property
    def holds(self) -> bool:
        """Whether full precision says what torch says, wherever rounding does not decide."""
        return all(one.agreement.unequal == 0 for one in self.results if one.by == "fp32" and one.agreement)


def check(model: str, texts: Sequence[str], limit: int, prefix: str, show: Progress) -> Checked:
    """Summarise texts with torch's model and with ours, in every way.

    Args:
        model: as `summarizer.model`; its weights must be there, for torch.
        texts: of each the first window is read.
        limit: tokens of a summary, at most.
        show: is told how many of the ways to summarise are done.
    Raises:
        ModelError: if the model cannot be found, exported or read by torch.
    """
    folder, threads = find_folder(model), processors()
    files = {precision: T5Files.find(model, precision) for precision in _PRECISIONS}
    opened = {precision: T5Model.open(found, threads) for precision, found in files.items()}
    asked = _windows(opened["fp32"], texts, prefix, limit)
    ways = [way for precision in _PRECISIONS for way in product([precision], BEAMS, BATCHES[precision])]
    show(_STEP, 0, 1 + len(ways))
    reference = _by_torch(folder, opened["fp32"], asked, limit, threads)
    results = [
        Result("torch", beams, 1, None, None, _tokens(found.ids), found.seconds, len(asked))
        for beams, found in reference.items()
    ]
    exact: dict[int, list[WindowSummary]] = {}
    for done, (precision, beams, batch_size) in enumerate(ways, start=1):
        show(_STEP, done, 1 + len(ways))
        writing = Writing(opened[precision], beams, _LENGTH_PENALTY, batch_size)
        writing.write(asked[:1])  # the first is slower than any other
        began_s = time.perf_counter()
        written = writing.write(asked)
        seconds = time.perf_counter() - began_s
        exact.setdefault(beams, written)
        results.append(
            Result(
                *(precision, beams, batch_size),
                agreement=Agreement.between(written, reference[beams].ids),
                rouge_l=_rouge_l(written, exact[beams]) if precision == "int8" else None,
                tokens=_tokens([one.ids for one in written]),
                seconds=seconds,
                texts=len(asked),
            )
        )
    show(_STEP, 1 + len(ways), 1 + len(ways))
    for one in opened.values():
        one.threads.shutdown()
    return Checked(model, len(asked), limit, threads, tuple(results))


def _windows(model: T5Model, texts: Sequence[str], prefix: str, limit: int) -> list[Window]:
    found = (windows(text, model.tokenizer, prefix, model.max_input_tokens) for text in texts)
    asked = [Window(of_text[0], limit) for of_text in found if of_text]
    if not asked:
        raise ModelError("there is no text to summarise; name a file with a text on each line, texts=FILE")
    return asked


def _by_torch(folder: Path, model: T5Model, asked: Sequence[Window], limit: int, threads: int) -> dict[int, Generated]:
    with tempfile.TemporaryDirectory() as name:
        beside = Path(name)
        task = Task(
            folder=str(weights_alone(folder, beside)),
            ids=[window.ids for window in asked],
            limit=limit,
            beams=list(BEAMS),
            length_penalty=_LENGTH_PENALTY,
            threads=threads,
            start_id=model.start_id,
            end_ids=sorted(model.end_ids),
        )
        return torch_reference.run(task, beside)


def _rouge_l(written: Sequence[WindowSummary], exact: Sequence[WindowSummary]) -> float:
    """Of texts of which both say nothing it is 1: they say the same."""
    scores = rouge([one.text for one in written], [[one.text] for one in exact])["rougeL"]
    pairs = zip(written, exact, scores, strict=True)
    return mean(1.0 if one.text == other.text else score for one, other, score in pairs)


def _tokens(ids: Sequence[Sequence[int]]) -> int:
    return sum(map(len, ids))
