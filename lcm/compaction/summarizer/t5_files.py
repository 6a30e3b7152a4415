"""Where the files of a T5 are: found in a folder or the hub's local cache, converted once where they must be.

Run as a program it converts in a process of its own, so that torch never enters the one that summarises.
"""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple, Self

from lcm.consent import refused_pickle
from lcm.encoding import from_yaml
from lcm.errors import ModelError
from lcm.files import cache_dir
from lcm.retrieval.embedder.export import (
    Precision,
    export,
    file_sha256,
    find_export,
    graphs_of,
    quantize,
    with_these_alone,
)
from lcm.retrieval.embedder.hub import hub_snapshot, read_json, with_data, with_shards

_PROGRAM = "lcm.compaction.summarizer.t5_files"
_GRAPHS = ("encoder_model", "decoder_model", "decoder_with_past_model")
_SUFFIXES: dict[Precision, str] = {"fp32": "", "int8": "_quantized"}
"""As optimum names its files."""
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_DESCRIPTIONS = ("config.json", "generation_config.json", "tokenizer.json", "spiece.model")
_FAMILY = ("longt5", "mt5", "t5", "umt5")
_HOW = (
    "set summarizer.model (in a chain, summarizer.summarizers.t5.model) to a name of `lcm models` that was got, to a "
    "folder that holds a T5, as transformers or optimum saves it, or to the hub id of one in the local hub cache"
)


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """A file of a checkpoint."""

    name: str
    sha256: str | None = None
    """None: not known for certain; it is taken as it first comes, and held to that from then on."""
    size_bytes: int | None = None
    """None: not known."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Weights of a T5 as somebody published them."""

    name: str
    """A short word, as `summarizer.model` and `lcm models get` take it: `t5-small`."""
    repository: str
    """On the hub: `google-t5/t5-small`."""
    revision: str
    """The commit whose files are meant."""
    licence: str
    parameters: int
    megabytes: int
    """Of all files together, about."""
    trained_on: str
    languages: str
    prefix: str
    """What stands before a text that it is to summarise: `summarizer.prefix`."""
    window_tokens: int
    """That it was trained to read at once."""
    files: tuple[CheckpointFile, ...]


@cache
def checkpoints() -> Mapping[str, Checkpoint]:
    """All that are known, by name."""
    text = resources.files("lcm.compaction.summarizer").joinpath("checkpoints.yaml").read_text("utf-8")
    return {
        name: Checkpoint(name, files=tuple(CheckpointFile(file, **known) for file, known in files.items()), **told)
        for name, told in from_yaml(text).items()
        for files in [told.pop("files")]
    }


def checkpoint_folder(name: str) -> Path:
    """Where the files of a checkpoint are kept unless somebody names another folder."""
    return cache_dir() / "checkpoints" / name


def missing_files(checkpoint: Checkpoint, folder: Path) -> list[str]:
    """The names of those that a folder lacks."""
    return [file.name for file in checkpoint.files if not (folder / file.name).is_file()]


class T5Files(NamedTuple):
    """Three graphs, and the folder of config.json and tokenizer.json."""

    encoder: Path
    decoder: Path
    """Without a past: its first step, or a whole text at once."""
    decoder_with_past: Path
    """Each further step."""
    folder: Path

    @classmethod
    def find(cls, model: str | None, precision: Precision) -> Self:
        """Those of a folder, a checkpoint's name or a hub id; converted now if they never were, never fetched.

        A folder's graphs of that precision are used as they are.

        Raises:
            ModelError: if there is no such model, it is no T5, or it cannot be converted.
        """
        folder = find_folder(model)
        graphs = _graphs(folder, precision)
        if graphs is None:
            told = "".join(f"{path.name}:{file_sha256(path)}\n" for path in _sources(folder, precision))
            digest = hashlib.sha256(told.encode()).hexdigest()
            # An int8 model is made from the graphs, so that an earlier export spares torch the work.
            source = (find_export(digest, "fp32") if precision == "int8" else None) or folder
            folder = find_export(digest, precision) or export(source, digest, precision, program=_PROGRAM)
            graphs = _graphs(folder, precision)
            assert graphs is not None
        if not (folder / "tokenizer.json").is_file():
            raise ModelError(f"{folder} holds no tokenizer.json; save the model's fast tokenizer there")
        return cls(*graphs, folder)


def find_folder(model: str | None) -> Path:
    """The folder of a T5 as somebody published or saved it.

    Args:
        model: the folder itself, a checkpoint's name or a hub id.
    Raises:
        ModelError: if there is none, or it holds no T5.
    """
    if not model:
        raise ModelError(f"summarizer=t5 has no model: {_HOW}")
    folder = Path(model).expanduser()
    if not folder.is_dir():
        known = checkpoints().get(model)
        folder = _hub_snapshot(model) if known is None else _got(known)
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} holds no config.json; {_HOW}")
    kind = read_json(folder / "config.json").get("model_type")
    if kind not in _FAMILY:
        raise ModelError(f"{folder} holds a model of type {kind!r}; summarizer=t5 reads {', '.join(_FAMILY)}")
    return folder


def _got(checkpoint: Checkpoint) -> Path:
    """Where `lcm models get` put a checkpoint, or the hub's local cache has it."""
    folder = checkpoint_folder(checkpoint.name)
    missing = missing_files(checkpoint, folder)
    if not missing:
        return folder
    if len(missing) == len(checkpoint.files):
        try:
            return _hub_snapshot(checkpoint.repository)
        except ModelError as err:
            raise ModelError(
                f"summarizer.model {checkpoint.name!r} is not in {folder}, nor {checkpoint.repository} in the local "
                f"hub cache: `lcm models get {checkpoint.name}` downloads it"
            ) from err
    raise ModelError(f"{folder} lacks {', '.join(missing)}: `lcm models get {checkpoint.name}` goes on from there")


def _hub_snapshot(model: str) -> Path:
    if found := hub_snapshot(model, ("config.json",)):
        return found
    raise ModelError(
        f"{model!r} is neither a folder, nor a name of `lcm models`, nor in the local hub cache, and nothing is "
        f"downloaded: {_HOW}"
    )


def _graphs(folder: Path, precision: Precision) -> tuple[Path, Path, Path] | None:
    """The three of a folder laid out flat or as on the hub, in a folder `onnx`."""
    for place in (folder, folder / "onnx"):
        encoder, decoder, with_past = (place / f"{graph}{_SUFFIXES[precision]}.onnx" for graph in _GRAPHS)
        if encoder.is_file() and decoder.is_file() and with_past.is_file():
            return encoder, decoder, with_past
    return None


def _sources(folder: Path, precision: Precision) -> list[Path]:
    """All that the conversion of a folder depends on."""
    descriptions = [folder / name for name in _DESCRIPTIONS if (folder / name).is_file()]
    if precision == "int8" and (graphs := _graphs(folder, "fp32")):
        return [*descriptions, *(path for graph in graphs for path in with_data(graph))]
    if weights := next((folder / name for name in _WEIGHTS if (folder / name).is_file()), None):
        files = with_shards(weights)
        for file in files:
            if file.suffix not in (".safetensors", ".json") and (why := refused_pickle(file)):
                raise ModelError(why)
        return [*descriptions, *files]
    if _graphs(folder, "int8"):
        raise ModelError(f"{folder} holds int8 graphs only; set summarizer.precision to int8")
    raise ModelError(f"{folder} holds neither {_WEIGHTS[0]} nor {', '.join(f'{graph}.onnx' for graph in _GRAPHS)}")


def weights_alone(folder: Path, beside: Path) -> Path:
    """A folder of links to a T5's weights and descriptions, for torch: what else lies there is loaded by nothing.

    Raises:
        ModelError: if it holds no weights that may be read.
    """
    if not any((folder / name).is_file() for name in _WEIGHTS):
        raise ModelError(f"{folder} holds no weights, which torch reads: expected {_WEIGHTS[0]}")
    return with_these_alone(folder, [path.name for path in _sources(folder, "fp32")], beside)


def _convert(source: Path, target: Path, precision: Precision) -> None:
    with tempfile.TemporaryDirectory(dir=target) as name:
        scratch = Path(name)
        graphs = _graphs(source, "fp32") if precision == "int8" else None
        if graphs is None:
            graphs_of(weights_alone(source, scratch), scratch, "text2text-generation-with-past")
            graphs = _graphs(scratch, "fp32")
            assert graphs is not None
        for graph in graphs:
            if precision == "int8":
                size_bytes = sum(path.stat().st_size for path in with_data(graph))
                quantize(graph, target / f"{graph.stem}{_SUFFIXES[precision]}.onnx", size_bytes)
            else:
                for path in with_data(graph):
                    path.rename(target / path.name)
        for description in ("config.json", "generation_config.json", "tokenizer.json"):
            found = next((place / description for place in (source, scratch) if (place / description).is_file()), None)
            if found is not None:
                shutil.copyfile(found, target / description)


if __name__ == "__main__":
    _convert(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])  # type: ignore[arg-type]
