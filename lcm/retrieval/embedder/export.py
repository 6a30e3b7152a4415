"""PyTorch weights to a self-contained ONNX directory: once, then kept.

Run as a program it converts in a process of its own, so that torch never enters the one that embeds.
"""

import contextlib
import functools
import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import numpy as np
from filelock import FileLock

from lcm.errors import ModelError
from lcm.faults import made_again
from lcm.files import cache_dir, open_to, private
from lcm.retrieval.embedder.hub import (
    graph_of,
    is_classifier,
    pooling_of,
    weights_of,
    with_data,
    with_shards,
)
from lcm.retrieval.embedder.session import Session, check_files, pool

Precision = Literal["int8", "fp32"]
_LOWEST_COSINES: dict[str, float] = {"fp32": 0.999, "int8": 0.9}
"""Of an export's vectors to those of torch."""
_FEW_TOKENS = 256
_TEXTS = (
    "Yes.",
    "The ferry leaves at 7:40 from pier 3.",
    "Anna moved from Hamburg to Porto in the spring and took her two cats along.",
    "Where did I put the receipt for the blue bicycle?",
    "def add(a, b):\n    return a + b",
    "Ich habe den Zahnarzttermin auf Donnerstag verschoben.",
    "来週の火曜日に歯医者に行きます。",
    "Invoice 20391: 3 x A4 paper, 12.50 EUR; due 2025-03-01",
    "I would rather not talk about work on a Sunday. " * 8,
    "Milk, rye bread, twelve eggs, a bag of flour, and whatever cheese looks good at the market. " * 4,
)

_log = logging.getLogger(__name__)
RECORD = "export.json"
"""Of an export: the weights, versions and digests of its files."""
_TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "spiece.model",
    "vocab.txt",
)  # fmt: skip
_TOOLS = ("onnx", "onnxruntime", "optimum", "optimum-onnx", "torch", "transformers")
_LARGEST_IN_ONE_FILE = 1_900_000_000  # bytes; protobuf ends at 2 GiB
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",
}


def models_dir() -> Path:
    """Where exported models are kept."""
    return cache_dir() / "models"


def find_export(weights_sha256: str, precision: Precision) -> Path | None:
    """The directory that an earlier `export` of these weights left whole; if any.

    Made with the versions of today, or with any where the tools to make it again are not installed.
    """
    if all(installed(tool) != "none" for tool in _TOOLS):
        return _whole(_address(weights_sha256, precision))
    earlier = models_dir().glob(f"{weights_sha256[:16]}-{precision}-*/{RECORD}")
    return next(filter(None, (_whole(record.parent) for record in sorted(earlier, reverse=True))), None)


def _whole(directory: Path) -> Path | None:
    try:
        record = json.loads((directory / RECORD).read_text(encoding="utf-8"))
        if all(file_sha256(directory / name) == digest for name, digest in record["files"].items()):
            return directory
    except (FileNotFoundError, ModelError, KeyError, ValueError, AttributeError, TypeError):
        pass  # not there, or damaged
    return None


@private()
def export(source: Path, weights_sha256: str, precision: Precision, program: str = __name__) -> Path:
    """Convert the PyTorch model in `source`, or wait for the process that is at it; returns the directory.

    The directory appears whole or not at all.

    Args:
        program: the module that converts, given the source, an empty folder and the precision.
    Raises:
        ModelError: if the tools are not installed or the conversion fails.
    """
    if missing := sorted(tool for tool in _TOOLS if installed(tool) == "none"):
        raise ModelError(
            f"exporting {source} to ONNX needs {', '.join(missing)}: pip install '.[models]' in a checkout of lcm, "
            "or choose embedder=hashing, which needs no model, "
            "or name a directory that already holds an .onnx file and its tokenizer.json"
        )
    target = _address(weights_sha256, precision)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{target}.lock"):
            if found := find_export(weights_sha256, precision):
                return found
            for torn in target.parent.glob(f"{target.name}.tmp-*"):  # of a process that was killed
                shutil.rmtree(torn)
            making = Path(tempfile.mkdtemp(prefix=f"{target.name}.tmp-", dir=target.parent))
            try:
                _log.info("exporting %s to ONNX (%s), once, into %s", source, precision, target)
                _run_apart(program, source, making, precision)
                _record(making, weights_sha256, precision)
                making.chmod(open_to())  # mkdtemp's are private; a cache may be shared
                if target.exists():
                    made_again("exported model", f"the exported model in {target} is damaged; it is exported again")
                    shutil.rmtree(target)
                making.rename(target)
                _sync(target.parent)
            finally:
                shutil.rmtree(making, ignore_errors=True)
    except OSError as err:
        raise ModelError(f"{target} cannot be written ({err}); set LCM_CACHE_DIR to a writable folder") from err
    return target


def find_graph(folder: Path, file: str | None, precision: Precision, prefers_own: bool) -> tuple[Path, Path]:
    """The .onnx file and the tokenizer of the model in a folder: its own, or an export made now if it never was.

    Args:
        folder: of the model.
        file: the .onnx file by its name; None to look for one.
        precision: of the export.
        prefers_own: an .onnx file that is there comes before weights.
    Raises:
        ModelError: if the folder holds neither, or the weights cannot be exported.
    """
    weights = weights_of(folder)
    if file is not None:
        graph = folder / file
    elif (prefers_own or weights is None) and (own := graph_of(folder)):
        graph = own
    elif weights is None:
        raise ModelError(f"{folder} holds neither an .onnx file nor model.safetensors")
    else:
        # Models may differ by how their files describe them alone.
        described = (path for name in ("config.json", "tokenizer.json") if (path := folder / name).is_file())
        digests = map(file_sha256, (*with_shards(weights), *described))
        digest = hashlib.sha256("".join(digests).encode()).hexdigest()
        folder = find_export(digest, precision) or export(folder, digest, precision)
        graph = folder / "model.onnx"
    check_files(graph, folder / "tokenizer.json")
    return graph, folder / "tokenizer.json"


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


def _address(weights_sha256: str, precision: Precision) -> Path:
    tools = "-".join(f"{tool}{installed(tool)}" for tool in ("onnxruntime", "optimum"))
    return models_dir() / f"{weights_sha256[:16]}-{precision}-{tools}"


@functools.cache
def installed(distribution: str) -> str:
    """The version of a distribution, `none` without it; of onnxruntime-gpu, which lies over onnxruntime, its own."""
    for name in ("onnxruntime-gpu", distribution) if distribution == "onnxruntime" else (distribution,):
        with contextlib.suppress(PackageNotFoundError):
            return version(name)
    return "none"


def _run_apart(program: str, source: Path, target: Path, precision: Precision) -> None:
    """Run a module of ours in a process of its own, which reaches no network."""
    package_root = str(Path(__file__).parents[3])
    python_path = os.pathsep.join(filter(None, [package_root, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(  # noqa: S603 - our own module, no shell
        [sys.executable, "-P", "-m", program, str(source), str(target), precision],
        env=os.environ | _OFFLINE | {"PYTHONPATH": python_path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise ModelError(f"{source} could not be exported to ONNX: {lines[-1]}")


def _record(directory: Path, weights_sha256: str, precision: Precision) -> None:
    files = sorted(path for path in directory.iterdir() if path.is_file())
    record = {
        "weights_sha256": weights_sha256,
        "precision": precision,
        "versions": {tool: installed(tool) for tool in _TOOLS},
        "files": {path.name: file_sha256(path) for path in files},
    }
    (directory / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    for path in (*files, directory / RECORD, directory):
        _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def with_these_alone(source: Path, names: Iterable[str], beside: Path) -> Path:
    """A folder of links to some files of a model's, with those that describe its tokenizer: what else lies there, as
    weights of another kind, adapters and code, is loaded by nothing."""
    folder = beside / "source"
    folder.mkdir()
    for name in {*names, *_TOKENIZER_FILES}:
        if (source / name).is_file():
            (folder / name).symlink_to((source / name).resolve())
    return folder


def graphs_of(alone: Path, target: Path, task: str) -> None:
    """Write the graphs of the weights that lie in a folder for themselves."""
    from optimum.exporters.onnx import main_export

    main_export(
        str(alone),
        target,
        task=task,
        library_name="transformers",
        dtype="fp32",
        local_files_only=True,
        do_validation=False,
        no_post_process=True,  # it would merge a T5's decoders, which cannot be quantized then
    )


def quantize(graph: Path, target: Path, size_bytes: int = 0) -> None:
    """Write a graph as int8.

    One scale a tensor loses too much (mean cosine to fp32 .954, one a channel .991). Seven bits, because processors
    without VNNI let sums of eight-bit products overflow: every processor gives the same sums.

    Args:
        size_bytes: of the graph and what lies beside it.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        graph,
        target,
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        use_external_data_format=size_bytes > _LARGEST_IN_ONE_FILE,
    )


def lowest_cosine(source: Path, alone: Path, made: Path) -> float:
    """Of ten texts' vectors by an exported graph to those by torch; of a classifier that of all ten logits together."""
    import torch
    from transformers import AutoModel, AutoModelForSequenceClassification

    kind = AutoModelForSequenceClassification if is_classifier(source) else AutoModel
    model = kind.from_pretrained(alone, local_files_only=True, trust_remote_code=False).eval()
    try:
        pooling = pooling_of(source, has_prefix=False)
    except ModelError:  # no sentence-transformers: any way to pool shows what differs
        pooling = "mean"
    max_tokens = min(_FEW_TOKENS, getattr(model.config, "max_position_embeddings", 512) // 2)
    session = Session.open(made / "model.onnx", made / "tokenizer.json", threads=1)
    ours, theirs = [], []
    for text in _TEXTS:
        encoding = session.encode_at_most(text, max_tokens)
        feed = {name: torch.from_numpy(values) for name, values in session.feed([encoding]).items()}
        with torch.no_grad():
            theirs.append(pool(model(**feed)[0][0].numpy(), pooling))
        ours.append(pool(session.run(encoding), pooling))
    session.close()
    left, right = (np.array(rows).T if is_classifier(source) else np.array(rows) for rows in (ours, theirs))
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return float(((left * right).sum(axis=1) / lengths).min())


def _convert(source: Path, target: Path, precision: Precision) -> None:
    weights = weights_of(source)
    assert weights is not None
    for name in ("tokenizer.json", "config.json"):
        shutil.copyfile(source / name, target / name)
    with tempfile.TemporaryDirectory(dir=target) as name:
        scratch = Path(name)
        alone = with_these_alone(source, ("config.json", *(part.name for part in with_shards(weights))), scratch)
        graphs_of(alone, scratch, "text-classification" if is_classifier(source) else "feature-extraction")
        if precision == "fp32":
            for part in with_data(scratch / "model.onnx"):
                part.rename(target / part.name)
        else:
            quantize(scratch / "model.onnx", target / "model.onnx")
        cosine = lowest_cosine(source, alone, target)
    if not cosine >= _LOWEST_COSINES[precision]:  # one that is not a number is none
        sys.exit(
            f"its {precision} graph gives vectors of a cosine down to {cosine:.4f} to torch's, expected at least "
            f"{_LOWEST_COSINES[precision]}; set precision to fp32, or name another model"
        )
    sys.stdout.write(f"{cosine:.5f}")


if __name__ == "__main__":
    _convert(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])  # type: ignore[arg-type]
