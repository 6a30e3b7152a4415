"""Summaries by a T5, which optimum runs through onnxruntime and transformers decodes."""

import logging
import math
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lcm.checks import check_choice, check_range
from lcm.compaction.summarizer.chain import has_words
from lcm.compaction.summarizer.t5_files import T5Files, find_folder
from lcm.compaction.summarizer.t5_model import T5Model, Window, WindowSummary, windows
from lcm.compaction.summarizer.truncate import NOTHING_TO_SUMMARISE
from lcm.encoding import well_formed
from lcm.errors import LcmError, ModelError
from lcm.records.summary import SummaryRequest, SummaryResult
from lcm.retrieval.embedder.export import Precision
from lcm.retrieval.embedder.onnx import Lazy

_log = logging.getLogger(__name__)

_FEWEST_INPUT_TOKENS = 32
_PARTS_IN_A_WINDOW = 4


@dataclass(frozen=True, slots=True)
class Unopened:
    """In the place of a model why it cannot be opened."""

    failure: ModelError

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True, slots=True)
class T5:
    """Any T5: prefix + text → tokens → greedy or beam search → summary.

    A text longer than `max_input_tokens` is read in windows of whole sentences without overlap; their summaries, each
    at most a quarter of a window, are joined with line ends and read in their turn until they fit into one window,
    whose summary is the result. confidence = exp(mean log-probability of the result's tokens, the end token excluded),
    of that last pass alone.

    All windows of a call are read in batches of like length on all threads; the encoder and the confidence take one
    text at a time. What stands beside a text in a batch moves its sums by 1e-6 nats: only between two choices that are
    nearer than that can it decide. With int8, whose scale is taken from all that a call holds, every text is decoded
    alone. It needs the extra `models`: torch, transformers and optimum.

    A summary has at most `target_tokens` tokens of the model: nothing else follows from `is_aggressive`. `previous` is
    not read: a T5 would summarise it too. The model is opened at the first use; why it could not be is kept until
    `close`, and is the `failure` of every result.
    """

    model: str | None = None
    """A name of `lcm models` that was got, a folder, as transformers or optimum saves a T5, or a hub id in the local
    hub cache; nothing is downloaded."""
    precision: Precision = "fp32"
    beams: int = 1
    """1 = greedy."""
    length_penalty: float = 1.0
    """A text of n tokens scores Σ log p / n ** length_penalty; of no effect on greedy search."""
    max_new_tokens: int = 256
    """Of a summary, however many are aimed at."""
    max_input_tokens: int | None = None
    """The window, prefix and end token included; None = what the model was made for."""
    prefix: str = "summarize: "
    batch_size: int = 16
    """Rows decoded at once, a row a beam."""
    threads: int | None = None
    """None = one a processor. Results do not depend on it."""
    _opened: Lazy[T5Model | Unopened] = field(default_factory=Lazy, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice(self, precision=("int8", "fp32"))
        check_range(self, "beams", "max_new_tokens", "batch_size", ge=1)
        check_range(self, "length_penalty")
        check_range(self, "max_input_tokens", ge=_FEWEST_INPUT_TOKENS, or_null=True)
        check_range(self, "threads", ge=1, or_null=True)

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        if not requests:
            return []
        model = self._opened.get(self._open)
        if isinstance(model, Unopened):
            return [self._failed(model.failure)] * len(requests)
        batch_size = 1 if self.precision == "int8" else self.batch_size
        results: dict[int, SummaryResult] = {}
        readings = [self._reading(model, request, incidents) for request in requests]
        summaries: dict[int, list[WindowSummary]] = {}
        while len(results) < len(requests):
            asked: dict[int, list[Window]] = {}
            for i, reading in enumerate(readings):
                if i not in results:
                    try:
                        asked[i] = reading.send(summaries[i]) if summaries else next(reading)
                    except StopIteration as end:
                        results[i] = end.value
            every = [window for found in asked.values() for window in found]
            written = iter(model.write(every, self.beams, self.length_penalty, batch_size))
            summaries = {i: [next(written) for _ in found] for i, found in asked.items()}
        return [results[i] for i in range(len(requests))]

    def model_folder(self) -> Path:
        return find_folder(self.model)

    def close(self) -> None:
        """Let go of the model, or of why it could not be opened; the next use opens it again."""
        self._opened.close()

    def _reading(
        self, model: T5Model, request: SummaryRequest, incidents: Counter[str]
    ) -> Generator[list[Window], list[WindowSummary], SummaryResult]:
        """Gives the windows of one request, round by round, and is sent their summaries."""
        text = well_formed(request.text)
        if not text.strip():
            return self._failed(LcmError(NOTHING_TO_SUMMARISE))
        limit = max(1, min(request.target_tokens, self.max_new_tokens))
        max_tokens = self.max_input_tokens or model.max_input_tokens
        before = math.inf
        while len(found := windows(text, model.tokenizer, self.prefix, max_tokens)) > 1:
            if len(found) >= before:
                return self._failed(ModelError(f"{self._name} makes {len(found)} windows no shorter"))
            before = len(found)
            share = min(limit, max_tokens // _PARTS_IN_A_WINDOW)
            parts = yield [Window(ids, share, is_last=False) for ids in found]
            worded = [part.text for part in parts if has_words(part.text)]
            if left_out := len(parts) - len(worded):
                told = self._name, left_out, len(parts)
                _log.warning("%s gave no words for %d of %d windows of a text; its summary is of the others", *told)
                incidents["t5 gave no words for a window: left out"] += left_out
            text = "\n".join(worded)
            if not worded:
                return self._failed(ModelError(f"{self._name} gave no words for any of {len(parts)} windows"))
        [summary] = yield [Window(found[0], limit, is_last=True)]
        if not has_words(summary.text):
            return self._failed(ModelError(f"{self._name} gave no words for {text[:60]!r}"))
        if not math.isfinite(summary.confidence):
            return self._failed(ModelError(f"{self._name} gives values that are not finite for {text[:60]!r}"))
        return SummaryResult(summary.text, summary.confidence, "t5", self._name, tokens=len(summary.ids))

    def _open(self) -> T5Model | Unopened:
        try:
            return T5Model.open(T5Files.find(self.model, self.precision), self.threads)
        except ModelError as failure:
            return Unopened(failure)

    def _failed(self, failure: LcmError) -> SummaryResult:
        return SummaryResult("", 0.0, "t5", self._name, failure)

    @property
    def _name(self) -> str:
        """The folder's own name or the hub id, and the precision."""
        if not self.model:
            return "unknown"
        folder = Path(self.model).expanduser()
        return f"{folder.resolve().name if folder.is_dir() else self.model}-{self.precision}"
