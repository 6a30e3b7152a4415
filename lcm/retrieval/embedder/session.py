"""An open ONNX model with its tokenizer: one text in, one vector out, on as many threads as wanted."""

import os
import re
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding, Tokenizer

from lcm.errors import ModelError

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read when onnxruntime is imported
import onnxruntime

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class _Closing(Protocol):
    def close(self) -> None: ...


_Model = TypeVar("_Model", bound=_Closing)

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_INTEGER_TYPES: dict[str, type[np.integer[Any]]] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


@dataclass(frozen=True, slots=True)
class Session:
    """One text a call and one thread a call, so that a row depends on nothing but its text.

    Calls may run side by side: onnxruntime allows it, and it is as fast as one session a thread, in less memory.
    """

    model: Any
    tokenizer: Any
    output: str
    width: int
    """Of the rows that the model itself gives."""
    dtypes: dict[str, type[np.integer[Any]]]
    """The inputs that the graph has."""
    threads: ThreadPoolExecutor

    @classmethod
    def open(cls, model_path: Path, tokenizer_path: Path, threads: int | None) -> Self:
        """Open both files.

        Raises:
            ModelError: if one is missing or is no embedding model.
        """
        check_files(model_path, tokenizer_path)
        model, tokenizer = open_graph(model_path), open_tokenizer(tokenizer_path)
        dtypes = {entry.name: _INTEGER_TYPES.get(entry.type) for entry in model.get_inputs()}
        known = {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
        if strange := sorted(name for name, dtype in dtypes.items() if name not in known or dtype is None):
            raise ModelError(f"{model_path} wants the inputs {strange}, which no text embedding model needs")
        output, width = _embedding_output(model, model_path)
        return cls(
            model=model,
            tokenizer=tokenizer,
            output=output,
            width=width,
            dtypes={name: dtype for name, dtype in dtypes.items() if dtype is not None},
            threads=ThreadPoolExecutor(threads or processors(), thread_name_prefix="embed"),
        )

    def close(self) -> None:
        self.threads.shutdown()

    def map(self, work: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """`work` on every item, on all threads; the results in the order of the items."""
        return list(self.threads.map(work, items))

    def encode(self, text: str, add_special_tokens: bool = True) -> Encoding:
        """Offsets count characters of `text`: a lone surrogate, which no tokenizer takes, counts as one too."""
        return self.tokenizer.encode(_LONE_SURROGATE.sub("\ufffd", text), add_special_tokens=add_special_tokens)

    def encode_at_most(self, text: str, max_tokens: int) -> Encoding:
        """As `encode`, cut to `max_tokens` with the special tokens kept."""
        encoding = self.encode(text)
        if len(encoding) <= max_tokens:
            return encoding
        encoding = self.encode(text, add_special_tokens=False)
        encoding.truncate(max_tokens - self.tokenizer.num_special_tokens_to_add(False))
        return self.tokenizer.post_process(encoding)

    def run(self, encoding: Encoding) -> npt.NDArray[np.float32]:
        """The output for one text: shape (tokens, width), or (width,) where the graph pools by itself."""
        ids = encoding.ids
        values = {
            "input_ids": ids,
            "attention_mask": [1] * len(ids),
            "token_type_ids": encoding.type_ids,
            "position_ids": range(len(ids)),
        }
        feed = {name: np.array([values[name]], dtype) for name, dtype in self.dtypes.items()}
        output: npt.NDArray[np.float32] = self.model.run([self.output], feed)[0][0]
        return output


def open_graph(path: Path) -> Any:
    """A graph, run by one thread a call.

    Raises:
        ModelError: if onnxruntime cannot open it.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as err:  # onnxruntime's errors share no parent but Exception
        raise ModelError(f"{path} is no model that onnxruntime can open: {_one_line(err)}") from err


def open_tokenizer(path: Path) -> Any:
    """A tokenizer that neither cuts nor pads: some are published so, at other lengths than the model's own.

    Raises:
        ModelError: if the file is none.
    """
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as err:  # tokenizers raises bare Exception
        raise ModelError(f"{path} is no tokenizer: {_one_line(err)}") from err
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def check_files(*paths: Path) -> None:
    """Refuse a model of which a file is missing."""
    for path in paths:
        if not path.is_file():
            raise ModelError(
                f"{path} does not exist: set directory (embedder.directory, further_embedder.directory, "
                "reranker.directory) to a model directory, which holds an .onnx file and its tokenizer.json"
            )


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Lazy(Generic[_Model]):
    """Opens a model when it is first used, once whichever thread comes first; travels unopened."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: tuple[int, _Model] | None = None  # by which process

    def get(self, open_model: Callable[[], _Model]) -> _Model:
        with self._lock:
            # A forked child has inherited the model, but not its threads.
            if self._opened is None or self._opened[0] != os.getpid():
                self._opened = os.getpid(), open_model()
            return self._opened[1]

    def close(self) -> None:
        """Let go of the model; the next use opens it again."""
        with self._lock:
            if self._opened is not None:
                self._opened[1].close()
                self._opened = None

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


def _embedding_output(model: Any, path: Path) -> tuple[str, int]:
    """The name and width of the token vectors, or of the text's own vector where there are none."""
    outputs = {entry.name: entry.shape for entry in model.get_outputs()}
    by_rank = [name for rank in (3, 2) for name, shape in outputs.items() if len(shape) == rank]
    name = "last_hidden_state" if "last_hidden_state" in by_rank else next(iter(by_rank), None)
    if name is None or not isinstance(outputs[name][-1], int):
        raise ModelError(f"{path} gives {sorted(outputs)}, none of them vectors of a known width")
    return name, outputs[name][-1]


def _one_line(err: Exception) -> str:
    return " ".join(str(err).split())


def cut(
    text: str,
    starts: Sequence[int],
    first_of_word: Sequence[bool],
    budget: int,
    overlap: int,
    fits: Callable[[str], bool],
) -> list[str]:
    """Pieces of at most `budget` tokens that together hold every character of `text`.

    A piece read alone may have more tokens than it had in its text; such a piece is shortened until it `fits`, but
    never below one character. Pieces begin and end between words wherever a word is not longer than half a piece.

    Args:
        starts: where each token of `text` begins, in characters, ascending.
        first_of_word: whether that token begins a word.
        overlap: how many tokens of a piece the next one repeats, more where a word would be split.
    """
    pieces = []
    begin = 0  # of the piece, in characters
    token = 0  # the first one of the piece
    covered = 0  # characters that pieces hold
    while True:
        end_token = min(token + budget, len(starts))
        if end_token < len(starts):
            end_token = _word_start(first_of_word, end_token, token + budget // 2)
        end = _end(text, starts, begin, end_token)
        while end - begin > 1 and not fits(text[begin:end]):
            end_token = max(end_token - 1, token + 1)
            shorter = _end(text, starts, begin, end_token)
            end = shorter if shorter < end else begin + (end - begin) // 2
        if end <= covered:  # shortened so far that it says nothing new: begin where the last one ends
            begin, token = covered, bisect_left(starts, covered)
            continue
        pieces.append(text[begin:end])
        covered = end
        if end == len(text):
            return pieces
        # The next piece starts `overlap` tokens back, yet always beyond the start of this one and not beyond its end.
        following = bisect_left(starts, end)
        earliest = bisect_right(starts, begin)
        wanted = _word_start(first_of_word, following - overlap, following - 2 * overlap)
        token = max(wanted, earliest)
        begin = min(starts[token], end) if token < len(starts) else end
        token = bisect_left(starts, begin)


def _end(text: str, starts: Sequence[int], begin: int, end_token: int) -> int:
    """Where the token after the piece begins, so that the space between them belongs to the piece."""
    return max(starts[end_token], begin + 1) if end_token < len(starts) else len(text)


def _word_start(first_of_word: Sequence[bool], token: int, lowest: int) -> int:
    """The last token in (lowest, token] that begins a word; `token` itself if none does."""
    for candidate in range(token, max(lowest, 0), -1):
        if first_of_word[candidate]:
            return candidate
    return token
