import math
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import polars as pl
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from lcm.errors import ModelError
from lcm.retrieval.embedder import session as session_module
from lcm.retrieval.reranker import Blend, CrossEncoder
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.reranker.conftest import TWO_QUERIES, batch, scores

LETTERS = "abcdefghijklmnopqrstuvwxyz,?"
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS]
WIDTH = 8


def build_cross_encoder(directory: Path, labels: int = 1) -> np.ndarray:
    """logit = (sum of the rows of the first text's tokens) · (that of the second's) / 10, `labels` times; the table.

    Special tokens have rows of zeros, every letter is a token. As published ones do, the tokenizer comes with padding
    and truncation switched on.
    """
    directory.mkdir(exist_ok=True)
    vocabulary = {token: i for i, token in enumerate(TOKENS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split("", "isolated")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_truncation(6)
    tokenizer.enable_padding(length=40)
    tokenizer.save(str(directory / "tokenizer.json"))

    table = np.random.default_rng(1).standard_normal((len(TOKENS), WIDTH)).astype(np.float32)
    table[:4] = 0
    constants = {"table": table, "ten": np.array(10, np.float32), "labels": np.ones((1, labels), np.float32)}
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["words"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["token_type_ids"], ["type"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["mask", "type"], ["in_second"]),
        helper.make_node("Sub", ["mask", "in_second"], ["in_first"]),
        helper.make_node("Einsum", ["words", "in_first"], ["first"], equation="blw,bl->bw"),
        helper.make_node("Einsum", ["words", "in_second"], ["second"], equation="blw,bl->bw"),
        helper.make_node("Div", ["first", "ten"], ["tenth"]),
        helper.make_node("Einsum", ["tenth", "second", "labels"], ["logits"], equation="bw,bw,ol->bl"),
    ]
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(entry, TensorProto.INT64, ["batch", "length"]) for entry in inputs],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", labels])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, directory / "model.onnx")
    return table


@pytest.fixture
def table(tmp_path: Path) -> np.ndarray:
    return build_cross_encoder(tmp_path)


def encoder(directory: Path, **settings: Any) -> CrossEncoder:
    return CrossEncoder(blend=Blend(), directory=str(directory), **settings)


def logit(table: np.ndarray, query: str, document: str) -> float:
    sums = [
        sum(table[TOKENS.index(letter)].astype(float) for letter in text if letter in LETTERS)
        for text in (query, document)
    ]
    return float(sums[0] @ sums[1]) / 10


def test_the_score_is_the_logistic_function_of_the_logit(table: np.ndarray, tmp_path: Path) -> None:
    pair = ("what broke?", "the kettle is broken")
    x = logit(table, *pair)
    assert encoder(tmp_path).scores([pair]) == pytest.approx([1 / (1 + math.exp(-x))], abs=1e-6)
    assert encoder(tmp_path, activation="none").scores([pair]) == pytest.approx([x], abs=1e-4)


def test_scores_are_blended_and_the_best_comes_first(table: np.ndarray, tmp_path: Path) -> None:
    asked = batch()
    after = encoder(tmp_path, threads=2)(TWO_QUERIES, asked)
    text = dict(asked.documents.iter_rows())
    expected = {}
    for name, score, floor in (("kettle", 0.8, 0.95), ("goats", 0.5, 0.5), ("tea", 0.4, 0.9)):
        s = 1 / (1 + math.exp(-logit(table, "what broke?", text[name])))
        expected[name] = max(floor * score, 0.6 * s + 0.4 * score)
    assert scores(after) == pytest.approx(expected, abs=1e-6)
    assert list(scores(after).values()) == sorted(scores(after).values(), reverse=True)
    assert after["query_id"].to_list() == ["q0"] * 3 + ["q1"] * 3
    assert after["reranker_score"].is_between(0, 1).all()
    windowed = encoder(tmp_path, window=1)(TWO_QUERIES, batch())
    assert windowed["document_id"].to_list() == ["kettle", "tea"]


def test_a_score_does_not_depend_on_the_pairs_beside_it(table: np.ndarray, tmp_path: Path) -> None:
    pairs = [("goats", "a" * n + "tea") for n in range(40)]
    together = encoder(tmp_path).scores(pairs)
    assert together[::-1] == encoder(tmp_path, threads=1).scores(pairs[::-1])
    assert together == [encoder(tmp_path, threads=3).scores([pair])[0] for pair in pairs]


def test_a_pair_too_long_loses_the_end_of_its_longer_text(table: np.ndarray, tmp_path: Path) -> None:
    short = encoder(tmp_path, max_tokens=16, activation="none")
    # [CLS] tea [SEP] + 10 letters + [SEP] are 16 tokens.
    assert short.scores([("tea", "goats" * 50)]) == short.scores([("tea", "goats" * 2)])
    assert short.scores([("goats" * 50, "tea")]) == short.scores([("goats" * 2, "tea")])
    assert short.scores([("tea", "goats" * 50)]) != encoder(tmp_path, activation="none").scores([("tea", "goats" * 50)])


def test_half_a_surrogate_pair_no_text_and_a_huge_logit_are_scored(table: np.ndarray, tmp_path: Path) -> None:
    pairs = [("e" * 500, "e" * 500), ("\ud800", "tea"), ("", ""), ("tea", "")]
    scored = encoder(tmp_path, max_tokens=4096).scores(pairs)
    assert scored[0] == 1.0
    assert all(0 <= score <= 1 for score in scored)


def test_without_a_directory_the_first_use_says_what_to_set() -> None:
    reranker = CrossEncoder(blend=Blend())
    assert reranker(TWO_QUERIES.clear(), batch()).schema == TWO_QUERIES.schema | {"reranker_score": pl.Float64()}
    with pytest.raises(
        ModelError,
        match=r"^reranker=cross_encoder has no model: .* reranker\.directory .* reranker\.model to .*$",
    ):
        reranker(TWO_QUERIES, batch())


def test_a_missing_or_foreign_file_is_one_line(table: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"absent holds neither an \.onnx file nor model\.safetensors"):
        encoder(tmp_path / "absent").scores([("a", "b")])
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(ModelError, match=r"model\.onnx is no model that onnxruntime can open") as raised:
        encoder(tmp_path).scores([("a", "b")])
    assert "\n" not in str(raised.value)


def test_a_classifier_of_several_labels_is_no_reranker(tmp_path: Path) -> None:
    build_cross_encoder(tmp_path, labels=3)
    with pytest.raises(ModelError, match=r"gives 'logits' of shape \['batch', 3\]; a cross-encoder gives one logit"):
        encoder(tmp_path).scores([("a", "b")])


def test_a_model_that_gives_no_number_is_an_error(tmp_path: Path) -> None:
    build_cross_encoder(tmp_path)
    model = onnx.load(tmp_path / "model.onnx")
    (ten,) = [entry for entry in model.graph.initializer if entry.name == "ten"]
    ten.CopyFrom(numpy_helper.from_array(np.array(np.nan, np.float32), "ten"))
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(ModelError, match="gives nan for 'b'"):
        encoder(tmp_path).scores([("a", "b")])


def test_it_closes_and_opens_again_and_travels_unopened(table: np.ndarray, tmp_path: Path) -> None:
    reranker = encoder(tmp_path)
    before = reranker.scores([("tea", "goats")])
    reranker.close()
    assert reranker.scores([("tea", "goats")]) == before
    assert pickle.loads(pickle.dumps(reranker)).scores([("tea", "goats")]) == before


def test_a_bad_setting_is_refused() -> None:
    build = partial(CrossEncoder, blend=Blend())
    assert_refused(build, "be >= 1 or null", window=0, threads=0)
    assert_refused(build, "end in .onnx", file="model.bin")
    assert_refused(build, "be >= 16", max_tokens=15)
    assert_refused(build, "be one of: none, sigmoid", activation="softmax")


def test_on_cuda_the_pairs_of_all_queries_are_scored_in_batches(
    table: np.ndarray, tmp_path: Path, cuda: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "_TOKENS_A_BATCH", 60)
    pairs = [("goats", "a" * n + "tea") for n in range(40)] + [("", ""), ("tea", "\ud800")]
    on_cpu, on_cuda = (encoder(tmp_path, device=device, max_tokens=20).scores(pairs) for device in ("cpu", "cuda"))
    assert on_cuda == pytest.approx(on_cpu, abs=2e-3)
    with monkeypatch.context() as without:
        without.setattr(session_module, "cuda_failure", lambda: "there is no GPU")
        with pytest.raises(ModelError, match=r"^device is cuda, but there is no GPU: pip install 'lcm-harness\[gpu\]'"):
            encoder(tmp_path, device="cuda").scores(pairs)


@pytest.mark.slow
def test_weights_of_a_classifier_are_exported_as_one(bert: Path, tmp_path: Path) -> None:
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    build_cross_encoder(bert)  # for its tokenizer, which reads pairs
    (bert / "model.onnx").unlink()
    config = BertConfig.from_pretrained(bert, num_labels=1)
    model = BertForSequenceClassification(config).eval()
    model.save_pretrained(bert)
    named = CrossEncoder(blend=Blend(), model=str(bert), precision="fp32", activation="none")
    session = named._session.get(named._open_session)
    ids = session.tokenizer.encode("tea", "the goats").ids
    types = [0] * ids.index(3) + [0] + [1] * (len(ids) - ids.index(3) - 1)
    assert session.tokenizer.encode("tea", "the goats").type_ids == types
    with torch.no_grad():
        logit = float(model(input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([types])).logits[0, 0])
    assert named.scores([("tea", "the goats")]) == pytest.approx([logit], abs=1e-4)
