"""An open T5: windows of a text in, their summaries out. onnxruntime runs the graphs, transformers decodes."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

from tokenizers import Encoding, Tokenizer

from lcm.compaction.sentences import sentences
from lcm.compaction.summarizer.t5_files import T5Files, read_json
from lcm.errors import ModelError
from lcm.retrieval.embedder.onnx import cut, open_graph, open_tokenizer, processors

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
    def open(cls, files: T5Files, threads: int | None) -> Self:
        """Open all files.

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
            encoder_session=open_graph(files.encoder),
            decoder_session=open_graph(files.decoder),
            decoder_with_past_session=open_graph(files.decoder_with_past),
            generation_config=GenerationConfig(),  # type: ignore[no-untyped-call]
        )
        thread_count = threads or processors()
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
            attention_mask=pad_sequence([_ones(len(window.ids)) for window in batch], batch_first=True),
            generation_config=how,
        )
        return [self._summary(*one) for one in zip(batch, encoded, rows.tolist(), strict=True)]

    def encode(self, ids: Sequence[int]) -> Any:
        """What the decoder sees of one text: a tensor of shape (tokens, width)."""
        import torch

        row = torch.tensor([ids])
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
                attention_mask=_ones(len(encoded))[None],
                decoder_input_ids=torch.tensor([[self.start_id, *ids[:-1]]]),
            ).logits[0]
        return torch.log_softmax(logits.double(), dim=-1)[torch.arange(len(ids)), torch.tensor(ids)]


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

    whole = encode(text)
    if len(whole) <= max_tokens:
        return [whole] if text.strip() else []
    room = max_tokens - len(encode(""))
    found = []
    for window in _packed(text, tokenizer, room, fits):
        # Pieces read together may come to a token more than each by itself.
        parts = [window] if fits(window) else _cut(window, _bare(window, tokenizer), room, fits)
        found += [encode(part) for part in parts if part.strip()]
    return found


def _packed(text: str, tokenizer: Tokenizer, room: int, fits: Callable[[str], bool]) -> Iterator[str]:
    window, tokens = "", 0
    for sentence in sentences(text):
        encoding = _bare(sentence, tokenizer)
        for piece in [sentence] if len(encoding) <= room else _cut(sentence, encoding, room, fits):
            count = len(encoding) if piece is sentence else len(_bare(piece, tokenizer))
            if window and tokens + count > room:
                yield window
                window, tokens = "", 0
            window += piece
            tokens += count
    if window:
        yield window


def _bare(text: str, tokenizer: Tokenizer) -> Encoding:
    return tokenizer.encode(text, add_special_tokens=False)


def _cut(text: str, encoding: Encoding, room: int, fits: Callable[[str], bool]) -> list[str]:
    words = encoding.word_ids
    return cut(
        text,
        starts=[start for start, _ in encoding.offsets],
        first_of_word=[i == 0 or word != words[i - 1] for i, word in enumerate(words)],
        budget=room,
        overlap=0,
        fits=fits,
    )


def _ones(length: int) -> Any:
    import torch

    return torch.ones(length, dtype=torch.int64)


def _max_input_tokens(said: dict[str, Any], folder: Path) -> int:
    """The lower one of what the model and its tokenizer were made for."""
    path = folder / "tokenizer_config.json"
    limits = [said.get("n_positions"), (read_json(path) if path.is_file() else {}).get("model_max_length")]
    known = [limit for limit in limits if isinstance(limit, int) and 0 < limit <= _LARGEST_MAX_INPUT_TOKENS]
    return min(known, default=_USUAL_MAX_INPUT_TOKENS)
