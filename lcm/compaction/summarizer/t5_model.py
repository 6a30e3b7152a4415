"""An open T5: tokens in, logits out."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from lcm.compaction.summarizer.t5_files import T5Files, read_json
from lcm.errors import ModelError
from lcm.retrieval.embedder.session import processors

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read when onnxruntime is imported
import onnxruntime

Floats = npt.NDArray[np.float32]
Past = dict[str, Floats]
"""Keys and values of each layer, under the names by which the decoder takes them in."""

_USUAL_MAX_INPUT_TOKENS = 512  # T5's positions are relative; it was trained on so many
_LARGEST_MAX_INPUT_TOKENS = 1_000_000  # tokenizers write 10 ** 30 where nobody set a limit


@dataclass(frozen=True, slots=True)
class T5Model:
    """Single-thread sessions: calls may run side by side, and a call's sums do not depend on what runs beside it."""

    encoder: Any
    decoder: Any
    decoder_with_past: Any
    tokenizer: Tokenizer
    start_id: int
    end_ids: frozenset[int]
    max_input_tokens: int
    """The model's limit, the end token included."""
    threads: ThreadPoolExecutor
    thread_count: int
    process_id: int

    @classmethod
    def open(cls, files: T5Files, threads: int | None) -> Self:
        """Open all files.

        Raises:
            ModelError: if one is not what it should be.
        """
        tokenizer_path = files.folder / "tokenizer.json"
        try:
            tokenizer = Tokenizer.from_file(str(tokenizer_path))
        except Exception as err:  # tokenizers raises bare Exception
            raise ModelError(f"{tokenizer_path} is no tokenizer: {_one_line(err)}") from err
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True  # "</s>" in a transcript is four characters, not its end
        config = read_json(files.folder / "config.json")
        if (files.folder / "generation_config.json").is_file():
            said = read_json(files.folder / "generation_config.json")
            config |= {key: value for key, value in said.items() if value is not None}
        start_id = config.get("decoder_start_token_id", config.get("pad_token_id", 0))
        end_ids = config.get("eos_token_id", 1)
        thread_count = threads or processors()
        return cls(
            encoder=_session(files.encoder),
            decoder=_session(files.decoder),
            decoder_with_past=_session(files.decoder_with_past),
            tokenizer=tokenizer,
            start_id=start_id,
            end_ids=frozenset(end_ids if isinstance(end_ids, list) else [end_ids]),
            max_input_tokens=_max_input_tokens(config, files.folder),
            threads=ThreadPoolExecutor(thread_count, thread_name_prefix="t5"),
            thread_count=thread_count,
            process_id=os.getpid(),
        )

    def encode(self, ids: Sequence[int]) -> Floats:
        """What the decoder sees of one text: shape (tokens, width)."""
        row = np.array([ids], np.int64)
        encoded: Floats = self.encoder.run(
            ["last_hidden_state"], {"input_ids": row, "attention_mask": np.ones_like(row)}
        )[0][0]
        return encoded

    def first_step(self, encoded: Floats, mask: npt.NDArray[np.int64]) -> tuple[Floats, Past]:
        """Logits of the first token of each row, shape (rows, vocabulary), and what the next step needs.

        Args:
            encoded: shape (rows, tokens, width), padded.
            mask: shape (rows, tokens): 1, or 0 for padding.
        """
        feed = {
            "input_ids": np.full((len(mask), 1), self.start_id, np.int64),
            "encoder_hidden_states": encoded,
            "encoder_attention_mask": mask,
        }
        logits, *states = self.decoder.run(None, feed)
        return logits[:, -1], _named(self.decoder, states)

    def next_step(self, ids: Sequence[int], mask: npt.NDArray[np.int64], past: Past) -> tuple[Floats, Past]:
        """As `first_step`, given the last token of each row; `past` is left alone."""
        feed = {"input_ids": np.array(ids, np.int64)[:, None], "encoder_attention_mask": mask}
        logits, *states = self.decoder_with_past.run(None, feed | past)
        return logits[:, -1], past | _named(self.decoder_with_past, states)

    def log_probabilities(self, encoded: Floats, ids: Sequence[int]) -> npt.NDArray[np.float64]:
        """Of each token of one text's summary, given those before it; shape (tokens,)."""
        feed = {
            "input_ids": np.array([[self.start_id, *ids[:-1]]], np.int64),
            "encoder_hidden_states": encoded[None],
            "encoder_attention_mask": np.ones((1, len(encoded)), np.int64),
        }
        logits = self.decoder.run(["logits"], feed)[0][0]
        chosen: npt.NDArray[np.float64] = logits[np.arange(len(ids)), list(ids)] - log_totals(logits)
        return chosen


def log_totals(logits: Floats) -> npt.NDArray[np.float64]:
    """log Σ exp(logit) of each row: what turns its logits into log-probabilities."""
    highest = logits.max(axis=-1, keepdims=True)
    totals = np.exp(logits - highest).sum(axis=-1, dtype=np.float64)
    return np.asarray(highest[:, 0] + np.log(totals), np.float64)


def _named(session: Any, states: list[Floats]) -> Past:
    names = [output.name for output in session.get_outputs()[1:]]
    return {name.replace("present", "past_key_values", 1): state for name, state in zip(names, states, strict=True)}


def _session(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as err:  # onnxruntime's errors share no parent but Exception
        raise ModelError(f"{path} is no model that onnxruntime can open: {_one_line(err)}") from err


def _max_input_tokens(config: dict[str, Any], folder: Path) -> int:
    """The lower one of what the model and its tokenizer were made for."""
    path = folder / "tokenizer_config.json"
    said = [config.get("n_positions"), (read_json(path) if path.is_file() else {}).get("model_max_length")]
    limits = [limit for limit in said if isinstance(limit, int) and 0 < limit <= _LARGEST_MAX_INPUT_TOKENS]
    return min(limits, default=_USUAL_MAX_INPUT_TOKENS)


def _one_line(err: Exception) -> str:
    return " ".join(str(err).split())
