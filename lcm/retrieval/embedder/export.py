"""PyTorch weights to a self-contained ONNX directory: once, then kept.

Run as a program it converts in a process of its own, so that torch never enters the one that embeds.
"""

import functools
import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from filelock import FileLock

from lcm.errors import ModelError
from lcm.faults import made_again
from lcm.files import cache_dir, open_to, private

Precision = Literal["int8", "fp32"]

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
    if all(_version(tool) != "none" for tool in _TOOLS):
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


def hub_snapshot(hub_id: str, names: Sequence[str]) -> Path | None:
    """The folder of the hub's local cache that holds these files of a model; the disk alone is read."""
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        found = [try_to_load_from_cache(hub_id, name) for name in names]
    except HFValidationError:
        return None
    folders = [Path(path).parent for path in found if isinstance(path, str)]
    return folders[0] if len(folders) == len(names) else None


@private()
def export(source: Path, weights_sha256: str, precision: Precision, program: str = __name__) -> Path:
    """Convert the PyTorch model in `source`, or wait for the process that is at it; returns the directory.

    The directory appears whole or not at all.

    Args:
        program: the module that converts, given the source, an empty folder and the precision.
    Raises:
        ModelError: if the tools are not installed or the conversion fails.
    """
    if missing := sorted(tool for tool in _TOOLS if _version(tool) == "none"):
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
    tools = "-".join(f"{tool}{_version(tool)}" for tool in ("onnxruntime", "optimum"))
    return models_dir() / f"{weights_sha256[:16]}-{precision}-{tools}"


@functools.cache
def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
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
        "versions": {tool: _version(tool) for tool in _TOOLS},
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


def _convert(source: Path, target: Path, precision: Precision) -> None:
    with tempfile.TemporaryDirectory(dir=target) as name:
        scratch = Path(name)
        alone = with_these_alone(source, ("config.json", "model.safetensors"), scratch)
        graphs_of(alone, scratch, "feature-extraction")
        if precision == "fp32":
            (scratch / "model.onnx").rename(target / "model.onnx")
        else:
            quantize(scratch / "model.onnx", target / "model.onnx")
    for name in ("tokenizer.json", "config.json"):
        shutil.copyfile(source / name, target / name)


if __name__ == "__main__":
    _convert(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])  # type: ignore[arg-type]
