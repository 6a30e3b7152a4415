"""Onnx against a model small enough to compute by hand."""

import math
import os
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from tokenizers import Tokenizer

from lcm.errors import ModelError
from lcm.retrieval.embedder.onnx import Onnx
from lcm.retrieval.vector_index.hnsw_tiers import HnswTiers
from tests.lcm.refusals import assert_refused
from tests.support.models import BuildModel


def whole_tokenizer(directory: str | Path) -> Tokenizer:
    """A model's tokenizer that neither pads nor cuts."""
    tokenizer = Tokenizer.from_file(str(Path(directory) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def by_hand(directory: Path, text: str) -> np.ndarray:
    """The token vectors of one text, special tokens included."""
    return np.load(directory / "table.npy")[whole_tokenizer(directory).encode(text).ids].astype(np.float64)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / math.sqrt((vector**2).sum())


def test_a_row_is_the_normalised_mean_of_all_token_vectors(build_model: BuildModel) -> None:
    directory = build_model()
    text = "more than the six letters that its tokenizer.json would pad or cut to"
    row = Onnx(str(directory), max_tokens=128).embed([text], "document")[0]
    np.testing.assert_allclose(row, unit(by_hand(directory, text).mean(axis=0)), atol=1e-6)


def test_cls_pooling_takes_the_first_token_and_a_graph_that_pools_is_taken_at_its_word(build_model: BuildModel) -> None:
    directory, pooled = build_model(), build_model("pooled", pooled=True)
    row = Onnx(str(directory), pooling="cls").embed(["abc"], "document")[0]
    np.testing.assert_allclose(row, unit(by_hand(directory, "abc")[0]), atol=1e-6)
    plain, by_itself = (Onnx(str(one)).embed(["abc def", "x"], "query") for one in (directory, pooled))
    np.testing.assert_allclose(by_itself, plain, atol=1e-6)


def test_position_ids_are_fed_to_a_graph_that_wants_them(build_model: BuildModel) -> None:
    directory = build_model(positions=True)
    row = Onnx(str(directory)).embed(["abc"], "document")[0]
    width = row.size
    places = np.arange(5 * width).reshape(5, width) / width / 4096
    np.testing.assert_allclose(row, unit((by_hand(directory, "abc") + places).mean(axis=0)), atol=1e-6)


@pytest.mark.parametrize("dim", [768, 64])
def test_nomic_rows_are_prefixed_layer_normed_then_truncated(build_model: BuildModel, dim: int) -> None:
    directory = build_model(width=768)
    prefixes = {f"{kind}_prefix": f"search_{kind}: " for kind in ("query", "document")}
    embedder = Onnx(str(directory), max_tokens=64, overlap_tokens=8, truncate_dim=dim, layer_norm=True, **prefixes)
    assert embedder.dim == dim
    for kind in ("query", "document"):
        pooled = by_hand(directory, f"search_{kind}: cats purr").mean(axis=0)
        normed = (pooled - pooled.mean()) / math.sqrt(pooled.var() + 1e-5)
        row = embedder.embed(["cats purr"], kind)[0]
        np.testing.assert_allclose(row, unit(normed[:dim]), atol=1e-6)


def test_what_lies_beyond_the_window_is_not_read(build_model: BuildModel) -> None:
    embedder = Onnx(str(build_model()), max_tokens=8, overlap_tokens=0)
    rows = embedder.embed(["abcdef", "abcdefghijk", "abcde"], "document")  # 6 letters and 2 special tokens fit
    assert rows[0].tobytes() == rows[1].tobytes()
    assert rows[0].tobytes() != rows[2].tobytes()


def test_neighbouring_windows_repeat_the_overlap_and_keep_words_whole(build_model: BuildModel) -> None:
    embedder = Onnx(str(build_model()), max_tokens=22, overlap_tokens=4)
    words = [f"{a}{b}" for a in "abcdefghij" for b in "klmno"]
    [windows] = embedder.windows([" ".join(words)])
    pieces = [window.split() for window in windows]
    assert {word for piece in pieces for word in piece} == set(words)
    assert [len(piece) for piece in pieces[:-1]] == [10] * (len(pieces) - 1)  # 20 letters beside 2 special tokens
    assert all(one[-2:] == following[:2] for one, following in pairwise(pieces))
    assert embedder.windows(["né"]) == [["né"]]


def test_a_window_leaves_room_for_the_longer_prefix(build_model: BuildModel) -> None:
    prefixes = {"query_prefix": "q: ", "document_prefix": "document: "}
    embedder = Onnx(str(build_model()), max_tokens=32, overlap_tokens=4, **prefixes)
    [windows] = embedder.windows(["abcdefg hij " * 20])
    tokenizer = whole_tokenizer(embedder.directory)
    assert max(len(tokenizer.encode("document: " + window)) for window in windows) <= 32
    assert len(windows) > 1


def test_name_follows_weights_and_settings_but_not_place_or_threads(build_model: BuildModel) -> None:
    one, same, other = build_model("one"), build_model("same"), build_model("other", seed=1)
    name, of_other = Onnx(str(one)).name, Onnx(str(other)).name
    assert name == Onnx(str(same), threads=3).name
    settings = {"layer_norm": True, "truncate_dim": 8, "max_tokens": 128, "document_prefix": "d: ", "pooling": "cls"}
    assert len({name, of_other, *(Onnx(str(one), **{key: value}).name for key, value in settings.items())}) == 7
    (one / "model.onnx").write_bytes((other / "model.onnx").read_bytes())
    os.utime(one / "model.onnx", ns=(1, 1))
    assert Onnx(str(one)).name == of_other


def test_an_embedder_travels_closes_and_opens_again(build_model: BuildModel) -> None:
    embedder = Onnx(str(build_model()))
    row = embedder.embed(["abc"], "query").tobytes()
    copy = pickle.loads(pickle.dumps(embedder))
    assert copy == embedder
    embedder.close()
    embedder.close()
    assert embedder.embed(["abc"], "query").tobytes() == copy.embed(["abc"], "query").tobytes() == row


def test_threads_that_come_first_together_get_the_same_rows_as_one(build_model: BuildModel) -> None:
    directory, texts = str(build_model()), ["abc", "xyz " * 30]
    embedder = Onnx(directory, threads=2)
    with ThreadPoolExecutor(8) as callers:
        rows = list(callers.map(lambda _: embedder.embed(texts, "query").tobytes(), range(32)))
    assert set(rows) == {Onnx(directory, threads=1).embed(texts, "query").tobytes()}


def test_settings_out_of_range_are_refused() -> None:
    build = partial(Onnx, "nowhere")
    with pytest.raises(ValueError, match="directory must name a folder"):
        Onnx("")
    assert_refused(build, "end in .onnx", file="model.bin")
    assert_refused(build, "be >= 8 or null", max_tokens=3)
    assert_refused(build, "be between 0 and a quarter of max_tokens (64)", overlap_tokens=65)
    assert_refused(build, "be >= 2 or null", truncate_dim=1)
    assert_refused(build, "be one of: cls, lasttoken, mean, weightedmean", pooling="max")
    assert_refused(build, "be one of: auto, cpu, cuda", device="gpu")
    assert_refused(build, "be >= 1 or null", threads=0)


def test_a_missing_or_foreign_file_is_told_in_one_line(build_model: BuildModel, tmp_path: Path) -> None:
    nowhere = Onnx(str(tmp_path / "nowhere"))  # constructing opens nothing
    for use in (lambda: nowhere.embed(["a"], "query"), lambda: nowhere.name, lambda: nowhere.windows(["é"])):
        with pytest.raises(ModelError, match=r"^[^\n]*nowhere[^\n]* does not exist: set directory [^\n]*$"):
            use()
    directory = build_model()
    (directory / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ModelError, match=r"^[^\n]*model\.onnx is no model that onnxruntime can open[^\n]*$"):
        Onnx(str(directory)).embed(["a"], "query")
    (directory / "tokenizer.json").write_text("{}")
    broken = build_model("broken")
    (broken / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match=r"^[^\n]*tokenizer\.json is no tokenizer[^\n]*$"):
        Onnx(str(broken)).embed(["a"], "query")


def test_settings_that_the_model_cannot_meet_are_told(build_model: BuildModel) -> None:
    directory = str(build_model(width=16))
    with pytest.raises(ModelError, match=r"truncate_dim is 32, but .* gives 16 values"):
        Onnx(directory, truncate_dim=32).embed(["a"], "query")
    with pytest.raises(ModelError, match="max_tokens 8 leaves no room"):
        Onnx(directory, max_tokens=8, overlap_tokens=0, query_prefix="abcdef ").embed(["a"], "query")


def test_tiers_cut_vectors_to_what_a_shorter_one_of_the_model_would_be(build_model: BuildModel) -> None:
    directory, texts = (
        str(build_model(width=768)),
        [f"letter {letter} of {number}" for number, letter in enumerate("xyz")],
    )
    index = HnswTiers(widths=(128, 256, None)).build(768, incidents=Counter())
    index.add(texts, Onnx(directory).embed(texts, "document"))
    for tier in index._tiers:
        shorter = Onnx(directory, truncate_dim=tier.width).embed(texts, "document")
        np.testing.assert_allclose(tier.rows, shorter, atol=2**-12)


@pytest.mark.parametrize("is_link", [False, True])
def test_weights_outside_of_the_models_folder_are_not_read(is_link, build_model, tmp_path):
    directory = build_model()
    model = onnx.load(directory / "model.onnx")
    (table,) = (tensor for tensor in model.graph.initializer if tensor.name == "table")
    (tmp_path / "private").write_bytes(table.raw_data)
    (directory / "link").symlink_to(tmp_path / "private")
    table.ClearField("raw_data")
    table.data_location = onnx.TensorProto.EXTERNAL
    table.external_data.add(key="location", value="link" if is_link else "../private")
    (directory / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=r"is no model that onnxruntime can open: .*escapes model directory"):
        Onnx(str(directory)).embed(["a"], "query")
