"""Tiny models that can be worked out by hand, and one place for the exports of the real one."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from filelock import FileLock
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

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
from lcm.retrieval.embedder.minilm import MiniLM
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
def exported_minilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with the model, for all tests and workers."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # the workers' folders are neighbours: what is beside them is shared
        shared = shared.parent
    cache, done = shared / "minilm-cache", shared / "minilm-done"
    with FileLock(shared / "minilm.lock"):
        if not done.exists():
            export_minilm(cache)
            done.touch()
    return cache


@pytest.fixture
def minilm_cache(exported_minilm: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the exported model, as this process's cache."""
    monkeypatch.setenv("LCM_CACHE_DIR", str(exported_minilm))
    return exported_minilm
