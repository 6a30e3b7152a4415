"""Summaries by a T5, which optimum runs through onnxruntime and transformers decodes; and the choice between it, or
another that writes, and a summarizer that selects."""

import itertools
import logging
import math
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

from tokenizers import Encoding, Tokenizer

from lcm.checks import check_choice, check_range
from lcm.compaction.summarizer.chain import NOTHING_TO_SUMMARISE, has_words, summaries_of
from lcm.compaction.summarizer.t5_files import T5Files, find_folder
from lcm.encoding import well_formed
from lcm.errors import AuthError, LcmError, ModelError
from lcm.protocols.compaction import Summarizer
from lcm.records.summary import SummaryRequest, SummaryResult
from lcm.retrieval.embedder.export import Precision
from lcm.retrieval.embedder.hub import read_json
from lcm.retrieval.embedder.session import Device, Lazy, Place, open_graph, open_tokenizer, place_of, processors
from lcm.retrieval.embedder.windows import cut
from lcm.text import sentences

_log = logging.getLogger(__name__)

_FEWEST_INPUT_TOKENS = 32
_PARTS_IN_A_WINDOW = 4
_USUAL_MAX_INPUT_TOKENS = 512  # T5's positions are relative; it was trained on so many
_LARGEST_MAX_INPUT_TOKENS = 1_000_000  # tokenizers write 10 ** 30 where nobody set a limit


class Window(NamedTuple):
    """What a T5 reads at once."""

    ids: list[int]
    """Prefix, text and end token."""
    limit: int
    """Tokens of its summary, at most."""
    is_last: bool = True
    """Its summary is the result, of which the confidence is asked for."""


class WindowSummary(NamedTuple):
    """A window's summary."""

    text: str
    confidence: float
    """0 where it is not asked for."""
    ids: list[int]
    """Its tokens, without the one that ends it."""


@dataclass(frozen=True, slots=True)
class T5Model:
    """Single-thread sessions: calls may run side by side, and a call's sums do not depend on what runs beside it."""

    model: Any
    """optimum's `ORTModelForSeq2SeqLM`, or torch's own."""
    tokenizer: Tokenizer
    start_id: int
    pad_id: int
    end_ids: frozenset[int]
    max_input_tokens: int
    """The model's limit, the end token included."""
    threads: ThreadPoolExecutor
    thread_count: int

    @classmethod
    def open(cls, files: T5Files, threads: int | None, place: Place = "cpu") -> Self:
        """Open all files where the model is to run.

        Raises:
            ModelError: if one is not what it should be, or what runs them is not installed.
        """
        try:
            from optimum.onnxruntime import ORTModelForSeq2SeqLM
            from transformers import AutoConfig, GenerationConfig
        except ImportError as err:
            raise ModelError(
                f"summarizer=t5 needs torch, transformers and optimum ({err}): pip install 'lcm-harness[models]'"
            ) from err
        tokenizer = open_tokenizer(files.folder / "tokenizer.json")
        tokenizer.encode_special_tokens = True  # "</s>" in a transcript is four characters, not its end
        said = read_json(files.folder / "config.json")
        if (files.folder / "generation_config.json").is_file():
            told = read_json(files.folder / "generation_config.json")
            said |= {key: value for key, value in told.items() if value is not None}
        end_ids = said.get("eos_token_id", 1)
        model = ORTModelForSeq2SeqLM(
            config=AutoConfig.from_pretrained(files.folder, local_files_only=True, trust_remote_code=False),
            encoder_session=open_graph(files.encoder, place),
            decoder_session=open_graph(files.decoder, place),
            decoder_with_past_session=open_graph(files.decoder_with_past, place),
            generation_config=GenerationConfig(),  # type: ignore[no-untyped-call]
        )
        thread_count = 1 if place == "cuda" else threads or processors()
        return cls(
            model=model,
            tokenizer=tokenizer,
            start_id=said.get("decoder_start_token_id", said.get("pad_token_id", 0)),
            pad_id=said.get("pad_token_id", 0),
            end_ids=frozenset(end_ids if isinstance(end_ids, list) else [end_ids]),
            max_input_tokens=_max_input_tokens(said, files.folder),
            threads=ThreadPoolExecutor(thread_count, thread_name_prefix="t5"),
            thread_count=thread_count,
        )

    def close(self) -> None:
        self.threads.shutdown()

    def write(self, asked: Sequence[Window], beams: int, length_penalty: float, batch_size: int) -> list[WindowSummary]:
        """Summarise windows in batches of like length, the longest first; a result for each, in order.

        Args:
            asked: the windows.
            beams: 1 = greedy.
            length_penalty: a text of n tokens scores Σ log p / n ** length_penalty; of no effect on greedy search.
            batch_size: rows decoded at once, a row a beam.
        """
        size = max(1, min(batch_size // beams, math.ceil(len(asked) / self.thread_count)))
        order = sorted(range(len(asked)), key=lambda i: (asked[i].limit, -len(asked[i].ids)))
        batches = [
            alike[begin : begin + size]
            for _, group in itertools.groupby(order, lambda i: asked[i].limit)
            for alike in [list(group)]
            for begin in range(0, len(alike), size)
        ]
        written: dict[int, WindowSummary] = {}
        found = self.threads.map(
            lambda batch: self._write_batch([asked[i] for i in batch], beams, length_penalty), batches
        )
        for batch, summaries in zip(batches, found, strict=True):
            written.update(zip(batch, summaries, strict=True))
        return [written[i] for i in range(len(asked))]

    def _write_batch(self, batch: Sequence[Window], beams: int, length_penalty: float) -> list[WindowSummary]:
        from torch.nn.utils.rnn import pad_sequence
        from transformers import GenerationConfig
        from transformers.modeling_outputs import BaseModelOutput

        how = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=batch[0].limit,
            num_beams=beams,
            length_penalty=length_penalty,
            do_sample=False,
            decoder_start_token_id=self.start_id,
            pad_token_id=self.pad_id,
            eos_token_id=sorted(self.end_ids),
        )
        encoded = [self.encode(window.ids) for window in batch]  # each alone, so that none depends on another
        rows = self.model.generate(
            encoder_outputs=BaseModelOutput(cast(Any, pad_sequence(encoded, batch_first=True))),
            attention_mask=pad_sequence([self._ones(len(window.ids)) for window in batch], batch_first=True),
            generation_config=how,
        )
        return [self._summary(*one) for one in zip(batch, encoded, rows.tolist(), strict=True)]

    def encode(self, ids: Sequence[int]) -> Any:
        """What the decoder sees of one text: a tensor of shape (tokens, width)."""
        import torch

        row = torch.tensor([ids], device=self.model.device)
        with torch.no_grad():
            return self.model.get_encoder()(input_ids=row, attention_mask=torch.ones_like(row)).last_hidden_state[0]

    def _summary(self, window: Window, encoded: Any, row: Sequence[int]) -> WindowSummary:
        """Args: row: as `generate` gives it: the start token, the summary, its end, padding."""
        ids = list(itertools.takewhile(lambda token: token not in self.end_ids, row[1:]))
        text = self.tokenizer.decode(ids, skip_special_tokens=True).strip()
        if not window.is_last or not text:
            return WindowSummary(text, 0.0, ids)
        mean = float(self.log_probabilities(encoded, ids).mean())
        return WindowSummary(text, min(1.0, math.exp(mean)), ids)

    def log_probabilities(self, encoded: Any, ids: Sequence[int]) -> Any:
        """Of each token of one text's summary, given those before it; float64, shape (tokens,)."""
        import torch
        from transformers.modeling_outputs import BaseModelOutput

        with torch.no_grad():
            logits = self.model(
                encoder_outputs=BaseModelOutput(encoded[None]),
                attention_mask=self._ones(len(encoded))[None],
                decoder_input_ids=torch.tensor([[self.start_id, *ids[:-1]]], device=self.model.device),
            ).logits[0]
        return torch.log_softmax(logits.double(), dim=-1)[torch.arange(len(ids)), torch.tensor(ids)]

    def _ones(self, length: int) -> Any:
        import torch

        return torch.ones(length, dtype=torch.int64, device=self.model.device)


def windows(text: str, tokenizer: Tokenizer, prefix: str, max_tokens: int) -> list[list[int]]:
    """The tokens of each window: prefix, its share of the text, end token; at most `max_tokens`.

    Windows do not overlap, together they are the text, and each holds as many sentences as it can; only a sentence that
    is longer than a window is cut, between words where that can be. What is blank is left out.
    """

    def encode(piece: str) -> list[int]:
        ids: list[int] = tokenizer.encode(prefix + piece).ids
        return ids

    def fits(piece: str) -> bool:
        return len(encode(piece)) <= max_tokens

    def bare(piece: str) -> Encoding:
        return tokenizer.encode(piece, add_special_tokens=False)

    def parts(piece: str, read: Encoding) -> list[str]:
        starts = [start for start, _ in read.offsets]
        firsts = [i == 0 or word != read.word_ids[i - 1] for i, word in enumerate(read.word_ids)]
        return cut(piece, starts=starts, first_of_word=firsts, budget=room, overlap=0, fits=fits)

    whole = encode(text)
    if len(whole) <= max_tokens:
        return [whole] if text.strip() else []
    room = max_tokens - len(encode(""))
    packed, tokens = [""], 0
    for sentence in sentences(text):
        read = bare(sentence)
        for piece in [sentence] if len(read) <= room else parts(sentence, read):
            count = len(read) if piece is sentence else len(bare(piece))
            if packed[-1] and tokens + count > room:
                packed.append("")
                tokens = 0
            packed[-1] += piece
            tokens += count
    # Pieces read together may come to a token more than each by itself.
    fitting = (part for one in packed for part in ([one] if fits(one) else parts(one, bare(one))))
    return [encode(part) for part in fitting if part.strip()]


def _max_input_tokens(said: dict[str, Any], folder: Path) -> int:
    """The lower one of what the model and its tokenizer were made for."""
    path = folder / "tokenizer_config.json"
    limits = [said.get("n_positions"), (read_json(path) if path.is_file() else {}).get("model_max_length")]
    known = [limit for limit in limits if isinstance(limit, int) and 0 < limit <= _LARGEST_MAX_INPUT_TOKENS]
    return min(known, default=_USUAL_MAX_INPUT_TOKENS)


@dataclass(frozen=True, slots=True)
class Unopened:
    """In the place of a model why it cannot be opened."""

    failure: ModelError

    def close(self) -> None:
        """Nothing is held."""


def _place_of(device: Device) -> Place:
    """Where both onnxruntime and torch, which holds the tokens, can run a T5.

    Raises:
        ModelError: if that must be CUDA, and one of them has none.
    """
    place = place_of(device)
    if place == "cpu":
        return place
    import torch

    if torch.cuda.is_available():
        return place
    if device == "cuda":
        raise ModelError(
            "device is cuda, but the torch that is installed has no CUDA: install one that has, or set cpu"
        )
    return "cpu"


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
    """Of the graphs; CUDA reads those of fp32."""
    device: Device = "auto"
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
        check_choice(self, precision=Precision, device=Device)
        if self.device == "cuda" and self.precision == "int8":
            raise ValueError("device must be auto or cpu with precision int8, which CUDA does not run, got 'cuda'")
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
        max_tokens = self.max_input_tokens or model.max_input_tokens
        results: dict[int, SummaryResult] = {}
        texts = {i: well_formed(request.text) for i, request in enumerate(requests)}
        before: dict[int, int] = {}
        while texts:
            asked: dict[int, list[Window]] = {}
            for i, text in texts.items():
                found = windows(text, model.tokenizer, self.prefix, max_tokens)
                limit = max(1, min(requests[i].target_tokens, self.max_new_tokens))
                if not found:
                    results[i] = self._failed(LcmError(NOTHING_TO_SUMMARISE))
                elif len(found) == 1:
                    asked[i] = [Window(found[0], limit, is_last=True)]
                elif len(found) >= before.get(i, len(found) + 1):
                    results[i] = self._failed(ModelError(f"{self._name} makes {len(found)} windows no shorter"))
                else:
                    share = min(limit, max_tokens // _PARTS_IN_A_WINDOW)
                    asked[i] = [Window(ids, share, is_last=False) for ids in found]
                before[i] = len(found)
            every = [window for found in asked.values() for window in found]
            written = iter(model.write(every, self.beams, self.length_penalty, batch_size))
            parts = {i: [next(written) for _ in found] for i, found in asked.items()}
            results |= {i: self._result(one[0], texts[i]) for i, one in parts.items() if asked[i][0].is_last}
            texts = {i: self._joined(told, incidents) for i, told in parts.items() if i not in results}
            for i in [i for i, text in texts.items() if not text]:
                why = f"{self._name} gave no words for any of {len(parts[i])} windows"
                results[i] = self._failed(ModelError(why))
                del texts[i]
        return [results[i] for i in range(len(requests))]

    def model_folder(self) -> Path:
        return find_folder(self.model)

    def close(self) -> None:
        """Let go of the model, or of why it could not be opened; the next use opens it again."""
        self._opened.close()

    def _joined(self, parts: Sequence[WindowSummary], incidents: Counter[str]) -> str:
        """What windows say, those that say nothing left out."""
        worded = [part.text for part in parts if has_words(part.text)]
        if left_out := len(parts) - len(worded):
            told = self._name, left_out, len(parts)
            _log.warning("%s gave no words for %d of %d windows of a text; its summary is of the others", *told)
            incidents["t5 gave no words for a window: left out"] += left_out
        return "\n".join(worded)

    def _result(self, summary: WindowSummary, text: str) -> SummaryResult:
        if not has_words(summary.text):
            return self._failed(ModelError(f"{self._name} gave no words for {text[:60]!r}"))
        if not math.isfinite(summary.confidence):
            return self._failed(ModelError(f"{self._name} gives values that are not finite for {text[:60]!r}"))
        return SummaryResult(summary.text, summary.confidence, "t5", self._name, tokens=len(summary.ids))

    def _open(self) -> T5Model | Unopened:
        try:
            place = "cpu" if self.precision == "int8" else _place_of(self.device)
            return T5Model.open(T5Files.find(self.model, self.precision), self.threads, place)
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


@dataclass(frozen=True, slots=True)
class Routed:
    """`abstractive` summarises turns whose mean admission score is at least the threshold; `extractive` the others,
    those asked to be extractive, and whatever `abstractive` gives no words for. A batch stays a batch.

    Nothing stands in for refused credentials: they are the failure of this result and of each later one that
    `abstractive` would have made, without asking it again.

    Source: libravdb memory 1.3.5; 1.4.4, where no turn carries the score, so that nothing is ever routed, and where a
    failing model ends the compaction.
    """

    extractive: Summarizer
    abstractive: Summarizer | None
    """None: everything is extractive."""
    threshold: float = 0.6
    prepends_previous: bool = True
    """The previous summary becomes the first turn of what `abstractive` reads, for models without a place for it."""
    _refusals: list[AuthError] = field(default_factory=list, init=False, repr=False, compare=False)
    """The first one; empty while none is known."""

    def __post_init__(self) -> None:
        check_range(self, "threshold", ge=0, le=1)

    @property
    def reads_admission(self) -> bool:
        """Whether it depends on how technical turns are which summarizer is asked."""
        return self.abstractive is not None and self.threshold > 0

    @property
    def is_routing(self) -> bool:
        """Whether summaries do: without a model those of `abstractive` are extractive, too."""
        return self.reads_admission and not (isinstance(self.abstractive, T5) and self.abstractive.model is None)

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        """One result a request.

        Raises:
            UnrecordedReplyError: if a replay lacks a reply, in whose place nothing may stand.
        """
        abstract = [place for place, request in enumerate(requests) if self._is_abstractive(request)]
        found = self._abstracts([self._worded(requests[place]) for place in abstract], incidents)
        results = {
            place: result
            for place, result in zip(abstract, found, strict=True)
            if result.failure is None or isinstance(result.failure, AuthError)
        }
        if failed := [result.failure for place, result in zip(abstract, found, strict=True) if place not in results]:
            told = len(failed), len(found), failed[0]
            _log.warning("no abstractive summary of %d of %d texts, extractive ones stand in: %s", *told)
            incidents["abstractive gave no summary: extractive stood in"] += len(failed)
        if left := [place for place in range(len(requests)) if place not in results]:
            extracted = self.extractive.summarize([requests[place] for place in left], incidents=incidents)
            results.update(zip(left, extracted, strict=True))
        return [results[place] for place in range(len(requests))]

    def _is_abstractive(self, request: SummaryRequest) -> bool:
        is_technical = not request.is_extractive and request.technicality >= self.threshold
        return self.abstractive is not None and is_technical

    def _abstracts(self, requests: Sequence[SummaryRequest], incidents: Counter[str]) -> list[SummaryResult]:
        if self.abstractive is None or not requests:
            return []
        if self._refusals:
            found = [SummaryResult("", 0.0, "abstractive", failure=self._refusals[0])] * len(requests)
        else:
            found = summaries_of(self.abstractive, "abstractive", requests, incidents)
        if refusals := [one.failure for one in found if isinstance(one.failure, AuthError)]:
            incidents["abstractive was refused: no summary"] += len(refusals)
            if not self._refusals:
                self._refusals.append(refusals[0])
                _log.warning("the credentials of abstractive were refused, it is asked no more: %s", refusals[0])
        return found

    def _worded(self, request: SummaryRequest) -> SummaryRequest:
        if not self.prepends_previous or not request.previous:
            return request
        text, turns = f"{request.previous}\n{request.text}", (request.previous, *request.turns)
        return replace(request, text=text, turns=turns, previous=None)
