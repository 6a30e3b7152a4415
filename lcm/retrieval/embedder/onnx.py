"""Any embedding model of a local directory, through onnxruntime."""

import functools
import hashlib
import json
import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from lcm.checks import check_choice, check_range
from lcm.errors import ModelError
from lcm.protocols.models import TextKind, Vectors
from lcm.retrieval.embedder.session import Lazy, Session, check_files, cut

_LAYER_NORM_EPSILON = 1e-5  # torch's default, which models trained with a final layer norm used
_SPARE_TOKENS = 8  # more than any tokenizer adds at the ends
_NAME_SETTINGS = (
    "max_tokens", "overlap_tokens", "truncate_dim", "query_prefix", "document_prefix", "pooling", "layer_norm",
)  # fmt: skip


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


def file_sha256(path: Path) -> str:
    """The file's digest, computed once for each state of the file.

    Raises:
        ModelError: if it cannot be read.
    """
    try:
        state = path.stat()
        return _sha256(path, state.st_size, state.st_mtime_ns)
    except OSError as err:
        raise ModelError(f"{path} cannot be read ({err.strerror}); a model directory holds it") from err


@functools.lru_cache(maxsize=64)
def _sha256(path: Path, size: int, modified_unix_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
