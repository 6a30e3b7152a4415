"""Models that tests take as fixtures: tiny ones that can be worked out by hand, the real MiniLM and a trained T5.

Exports are made once and stand beside the environment's packages, so the next run of the tests finds them.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from lcm.compaction.summarizer.t5 import T5
from lcm.records.summary import SummaryRequest
from lcm.retrieval.embedder import session as session_module
from tests.support import tiny_t5 as tiny
from tests.support.once import made_for_environment

ROOT = Path(__file__).parents[2]
EMBEDDER = ROOT / "lcm" / "retrieval" / "embedder"
EXPORTERS = ("torch", "transformers", "optimum", "onnx", "onnxruntime")

STEPS = ("Transformer", "Pooling", "Normalize")
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,:_"

BuildModel = Callable[..., Path]


@pytest.fixture
def build_model(tmp_path: Path) -> BuildModel:
    """A model directory: token vector = row of a random table, plus a row for its position if asked.

    Its tokenizer knows single letters only, so a word of n letters has n tokens; as published ones do, it comes
    with truncation and padding switched on, at lengths that are not the model's.
    """

    def build(
        name: str = "tiny", width: int = 16, positions: bool = False, pooled: bool = False, seed: int = 0
    ) -> Path:
        directory = tmp_path / name
        directory.mkdir()
        vocabulary = _save_tokenizer(directory / "tokenizer.json")
        table = np.random.default_rng(seed).standard_normal((vocabulary, width)).astype(np.float32)
        np.save(directory / "table.npy", table)
        inputs = ["input_ids", "attention_mask"]
        initializers = [numpy_helper.from_array(table, "table")]
        nodes = [
            helper.make_node("Gather", ["table", "input_ids"], ["words"]),
            helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["mask", "last"], ["mask_column"]),
            helper.make_node("Mul", ["words", "mask_column"], ["masked"]),
        ]
        initializers.append(numpy_helper.from_array(np.array([-1]), "last"))
        if positions:
            inputs.append("position_ids")
            table = np.arange(4096 * width, dtype=np.float32).reshape(4096, width) / width / 4096
            initializers.append(numpy_helper.from_array(table, "places"))
            nodes.append(helper.make_node("Gather", ["places", "position_ids"], ["place"]))
            nodes.append(helper.make_node("Add", ["masked", "place"], ["last_hidden_state"]))
        else:
            nodes.append(helper.make_node("Identity", ["masked"], ["last_hidden_state"]))
        if pooled:
            nodes.append(helper.make_node("ReduceMean", ["last_hidden_state"], ["sentence"], axes=[1], keepdims=0))
        output = ("sentence", ["batch", width]) if pooled else ("last_hidden_state", ["batch", "length", width])
        graph = helper.make_graph(
            nodes,
            "tiny",
            [helper.make_tensor_value_info(entry, TensorProto.INT64, ["batch", "length"]) for entry in inputs],
            [helper.make_tensor_value_info(output[0], TensorProto.FLOAT, output[1])],
            initializers,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, directory / "model.onnx")
        return directory

    return build


def describe(directory: Path, pooling: str = "", **settings: object) -> None:
    """Put the files of sentence-transformers beside a model; settings go to sentence_bert_config.json."""
    (directory / "1_Pooling").mkdir(exist_ok=True)
    modes = {f"pooling_mode_{mode}": mode == pooling for mode in ("cls_token", "mean_tokens", pooling)}
    (directory / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 16, **modes}))
    (directory / "sentence_bert_config.json").write_text(json.dumps(settings))


@pytest.fixture
def bert(tmp_path: Path, build_model: BuildModel, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of weights drawn at random, and a cache of its own."""
    import torch
    from transformers import BertConfig, BertModel

    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    folder = build_model("bert")
    (folder / "model.onnx").unlink()
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(vocab_size=100, max_position_embeddings=64, **shape)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    describe(folder, pooling="cls_token", max_seq_length=32)
    named = enumerate(zip(STEPS, ("", "1_Pooling", "2_Normalize"), strict=True))
    steps = [
        {"idx": i, "name": f"{i}", "path": path, "type": f"sentence_transformers.models.{step}"}
        for i, (step, path) in named
    ]
    (folder / "modules.json").write_text(json.dumps(steps))
    return folder


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for CUDA: the same graph in fp16, the same batches, run by the processors."""
    monkeypatch.setattr(session_module, "cuda_failure", lambda: None)
    monkeypatch.setitem(session_module.PROVIDERS, "cuda", ["CPUExecutionProvider"])


def _save_tokenizer(path: Path) -> int:
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=10_000))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=6)
    tokenizer.save(str(path))
    return len(tokens)


EXPORT = """
import logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stdout)
from lcm.retrieval.embedder.onnx import MiniLM
print(MiniLM(threads=1).name)
"""


def export_minilm(cache: Path, processes: int = 1) -> list[str]:
    """Export MiniLM into a cache folder, by so many at once; gives what each printed: logs, then the model's name."""
    environment = os.environ | {"LCM_CACHE_DIR": str(cache), "HF_HOME": str(cache / "no-hub")}
    command = [sys.executable, "-c", EXPORT]
    all_at_once = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(processes)
    ]
    outputs = [process.communicate(timeout=300)[0].strip() for process in all_at_once]
    assert not any(process.returncode for process in all_at_once)
    return outputs


@pytest.fixture(scope="session")
def exported_minilm() -> Path:
    """A folder with the exported MiniLM below `models`, read-only; `minilm_cache` is a cache that has it."""
    sources = (*EMBEDDER.glob("*.py"), ROOT / "lcm" / "files.py")
    return made_for_environment("minilm", sources, EXPORTERS, export_minilm)


@pytest.fixture
def minilm_cache(exported_minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process's cache, empty but for the exported model."""
    return _cache_with(exported_minilm, tmp_path / "minilm-cache", monkeypatch)


def linked(made: Path, cache: Path) -> None:
    """Show the models of one cache in another, so that whatever else is exported there stays out of the first."""
    (cache / "models").mkdir(parents=True, exist_ok=True)
    for model in (made / "models").iterdir():
        (cache / "models" / model.name).symlink_to(model)


class TinyT5(NamedTuple):
    """Folders of two T5 as transformers saves them, and of their exports."""

    trained: Path
    untrained: Path
    cache: Path
    """Holds the exports of both, below `models`."""


@pytest.fixture(scope="session")
def built_t5() -> TinyT5:
    """One trained by 140 steps and one with random weights, both exported; read-only: `tiny_t5` has a cache of them."""
    package = ROOT / "lcm" / "compaction" / "summarizer"
    sources = (EMBEDDER / "export.py", *package.glob("*.py"), ROOT / "lcm" / "files.py", Path(tiny.__file__))
    return _t5_below(made_for_environment("tiny-t5", sources, EXPORTERS, _build_t5))


def _t5_below(place: Path) -> TinyT5:
    return TinyT5(place / "tiny", place / "untrained", place / "cache")


def _build_t5(place: Path) -> None:
    made = _t5_below(place)
    tiny.build(made.untrained, steps=0)
    tiny.build(made.trained, steps=140)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LCM_CACHE_DIR", str(made.cache))
        for model in (made.trained, made.untrained):
            T5(model=str(model)).summarize([SummaryRequest("the weather was fine again.", 8)], incidents=Counter())


@pytest.fixture
def tiny_t5(built_t5: TinyT5, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TinyT5:
    """The two T5, and this process's cache, empty but for their exports."""
    return built_t5._replace(cache=_cache_with(built_t5.cache, tmp_path / "t5-cache", monkeypatch))


def _cache_with(made: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    linked(made, cache)
    monkeypatch.setenv("LCM_CACHE_DIR", str(cache))
    return cache
