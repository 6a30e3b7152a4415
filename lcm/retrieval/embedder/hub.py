"""Where a model lies, a folder or a repository of the Hugging Face hub, and how its own files say that it is read."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lcm.errors import ModelError
from lcm.retrieval.embedder.session import SHARES, Pooling

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_GRAPH = "onnx/model.onnx"
_DESCRIPTIONS = ("*.json", "vocab.txt")
_MODULES = ("Transformer", "Pooling", "Normalize")
_POOLINGS: dict[str, Pooling] = {
    **dict.fromkeys(("mean", "mean_tokens", "mean_sqrt_len_tokens"), "mean"),  # they differ in length, which becomes 1
    **dict.fromkeys(("cls", "cls_token"), "cls"),
    **dict.fromkeys(("weightedmean", "weightedmean_tokens"), "weightedmean"),
    "lasttoken": "lasttoken",
}
"""As sentence-transformers names them, today and before -> as we do."""
_CLASSIFIER = "ForSequenceClassification"
_NO_ENCODERS = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", _CLASSIFIER)
_LONGEST = 1_000_000  # tokens; tokenizers write 10 ** 30 where nobody set a limit


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


def find_folder(directory: str | None, model: str) -> Path:
    """The folder of a model: the directory, or else that of its name, fetched from the hub if it is nowhere here.

    Raises:
        ModelError: if it cannot be fetched.
    """
    if directory is not None or Path(model).expanduser().is_dir():
        return Path(directory or model).expanduser()
    here = hub_snapshot(model, ("config.json",))
    return here if here and (weights_of(here) or graph_of(here)) else hub_fetch(model)


def hub_fetch(hub_id: str) -> Path:
    """Fetch a model into the hub's local cache: descriptions, tokenizer and safetensors, or its ONNX graph where it has
    no safetensors or needs code of its own; never code or pickles.

    Raises:
        ModelError: if it cannot be fetched.
    """
    try:
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(hub_id, allow_patterns=[*_DESCRIPTIONS, "model*.safetensors"]))
        if weights_of(folder) is None:
            snapshot_download(hub_id, allow_patterns=[f"{_GRAPH}*"])
    except (ImportError, OSError, ValueError) as err:  # the hub's own errors are of the last two kinds
        raise ModelError(
            f"{hub_id!r} is no folder, not in the hub's local cache, and cannot be fetched: name a folder that holds "
            f"it, or fetch it where there is a network ({' '.join(str(err).split())})"
        ) from err
    return folder


def is_classifier(folder: Path) -> bool:
    """Whether the weights in a folder give logits of labels in place of vectors: those of a cross-encoder."""
    return any(str(kind).endswith(_CLASSIFIER) for kind in _read(folder / "config.json").get("architectures") or ())


def weights_of(folder: Path) -> Path | None:
    """The safetensors, or their index, of a model that is exported without code of its own; None if there are none."""
    found = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    return None if "auto_map" in _read(folder / "config.json") else found


def with_shards(weights: Path) -> list[Path]:
    """The files of weights: themselves, or an index and the files that it names beside it.

    Raises:
        ModelError: if it is no such index.
    """
    if weights.suffix != ".json":
        return [weights]
    named = read_json(weights).get("weight_map")
    shards = sorted({str(name) for name in named.values()}) if isinstance(named, dict) else []
    if not shards or any(Path(name).name != name for name in shards):
        raise ModelError(f"{weights} names no files beside it: its weight_map must")
    return [weights, *(weights.parent / name for name in shards)]


def with_data(graph: Path) -> list[Path]:
    """A graph, and the weights that lie beside it because it is too large: model.onnx_data, model.onnx.data."""
    return [graph, *sorted(graph.parent.glob(f"{graph.name}[._]*"))]


def graph_of(folder: Path) -> Path | None:
    """The one .onnx file of a folder laid out flat or as on the hub, in a folder `onnx`; None if there is none.

    Raises:
        ModelError: if there are several, and none or more than one is called model.onnx.
    """
    found = sorted([*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")])
    named = [path for path in found if path.name == "model.onnx"] or found
    if len(named) > 1:
        names = ", ".join(str(path.relative_to(folder)) for path in named)
        raise ModelError(f"{folder} holds {len(named)} .onnx files ({names}): set file to one of them")
    return named[0] if named else None


def settings_of(folder: Path, own: Mapping[str, Any]) -> dict[str, Any]:
    """All that decides how the model in a folder is read: as it is set, or else as its files say.

    Args:
        folder: of the model.
        own: max_tokens, truncate_dim, query_prefix, document_prefix and pooling, as far as they are set.
    Returns:
        The same keys, where a file says one or must, and is_lower_case.
    Raises:
        ModelError: if it is no encoder, has a step that lcm has not, cannot be read as it is set, or says too little.
    """
    config = _read(folder / "config.json")
    kinds = [str(kind) for kind in config.get("architectures") or ()]
    if config.get("is_encoder_decoder") or any(kind.endswith(_NO_ENCODERS) for kind in kinds):
        raise ModelError(
            f"{folder} holds {', '.join(kinds) or 'a model'}, which is no encoder: name an embedding model"
        )
    steps = [str(step.get("type")).rpartition(".")[2] for step in _read(folder / "modules.json", list)]
    if strange := [step for step in steps if step not in _MODULES]:
        raise ModelError(
            f"{folder} ends in {', '.join(strange)}, says its modules.json, and lcm has {', '.join(_MODULES)} alone: "
            "name another model"
        )
    said, described = (
        _read(folder / f"{name}.json") for name in ("config_sentence_transformers", "sentence_bert_config")
    )
    prompts = said.get("prompts") or {}
    usual = prompts.get(said.get("default_prompt_name")) or ""
    limits = (
        described.get("max_seq_length"),
        _read(folder / "tokenizer_config.json").get("model_max_length"),
        config.get("max_position_embeddings"),
    )
    settings = {
        "max_tokens": next((limit for limit in limits if isinstance(limit, int) and limit <= _LONGEST), None),
        "truncate_dim": said.get("truncate_dim"),
        "query_prefix": prompts.get("query", usual),
        "document_prefix": next((prompts[one] for one in ("document", "passage", "corpus") if one in prompts), usual),
        "is_lower_case": bool(described.get("do_lower_case")),
    } | dict(own)
    max_tokens, positions = settings["max_tokens"], config.get("max_position_embeddings")
    if max_tokens is None:
        raise ModelError(f"no file in {folder} says how many tokens the model reads: set embedder.max_tokens")
    if positions and max_tokens > positions:
        raise ModelError(f"max_tokens is {max_tokens}, but {folder} holds a model that reads {positions}")
    widths = config.get("matryoshka_dimensions")
    if widths and own.get("truncate_dim", widths[0]) not in widths:
        trained = ", ".join(map(str, widths))
        raise ModelError(f"truncate_dim is {own['truncate_dim']}, but {folder} was trained for the widths {trained}")
    if "pooling" not in own:
        has_prefix = bool(settings["query_prefix"] or settings["document_prefix"])
        settings["pooling"] = pooling_of(folder, has_prefix)
    return settings


def pooling_of(folder: Path, has_prefix: bool) -> Pooling:
    """The pooling that the model in a folder was trained with.

    Raises:
        ModelError: if no file says it, or lcm has no such pooling.
    """
    path = folder / "1_Pooling" / "config.json"
    told = _read(path)
    named = told.get("pooling_mode") or [
        key.removeprefix("pooling_mode_") for key, is_on in told.items() if key.startswith("pooling_mode_") and is_on
    ]
    modes = [named] if isinstance(named, str) else named
    if len(modes) == 1 and modes[0] in _POOLINGS and (told.get("include_prompt", True) or not has_prefix):
        return _POOLINGS[modes[0]]
    said = f"pools by {' and '.join(modes)}" if modes else "does not exist or names no pooling"
    without = "" if told.get("include_prompt", True) else " and leaves out prompts"
    raise ModelError(
        f"{path} {said}{without}: set embedder.pooling to one of {', '.join(SHARES)}, or name another model"
    )


def read_json(path: Path, kind: type = dict) -> Any:
    """What a file holds, an object or a list.

    Raises:
        ModelError: if it holds none.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as err:
        raise ModelError(f"{path} cannot be read: {err}") from err
    if not isinstance(found, kind):
        raise ModelError(f"{path} holds no JSON {'object' if kind is dict else 'list'}")
    return found


def _read(path: Path, kind: type = dict) -> Any:
    """As `read_json`; an empty one where there is no such file."""
    return read_json(path, kind) if path.is_file() else kind()
