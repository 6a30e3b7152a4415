"""The laws of `Embedder`, over every YAML of its group; the model folders stand in for real ones."""

from collections.abc import Iterator

import numpy as np
import pytest

from lcm.protocols.models import Embedder
from lcm.retrieval.embedder.hashing import Hashing
from pipelines.config import building
from tests.lcm.retrieval.reranker.loopback import serving
from tests.support.composing import composed
from tests.support.embedding_server import EmbeddingServer
from tests.support.models import BuildModel, describe
from tests.support.richest import once_a_class

TEXTS = ["a kettle", "the goats escaped", "", "来週の火曜日", "x " * 1500, "the goats escaped", "\x00 \ud800 é"]
STAND_INS = {
    "hub": ["embedder.model={model}"],
    "onnx": ["embedder.directory={model}"],
    "nomic": ["embedder.directory={model}", "embedder.file=model.onnx"],
}
"""Choices that need a folder, and what points them to one."""


@pytest.fixture(params=once_a_class("embedder"))
def embedder(
    request: pytest.FixtureRequest, build_model: BuildModel, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Embedder]:
    overrides = [f"embedder={request.param}"]
    if request.param == "openai_compatible":
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with serving(EmbeddingServer(Hashing())) as server:
            own = {"base_url": f"{server.url}/v1", "dimensions": 384, "max_tokens": 512, "api_key_env": "null"}
            overrides += [f"embedder.{key}={value}" for key, value in own.items()]
            yield building.build(composed(overrides), "embedder")
        return
    if request.param == "minilm":
        request.getfixturevalue("minilm_cache")
    if request.param in STAND_INS:
        model = build_model()
        describe(model, pooling="mean_tokens", max_seq_length=256)
        overrides += [override.format(model=model) for override in STAND_INS[request.param]]
    yield building.build(composed(overrides), "embedder")


def test_rows_have_unit_length(embedder: Embedder) -> None:
    for kind in ("query", "document"):
        rows = embedder.embed(TEXTS, kind)
        assert rows.shape == (len(TEXTS), embedder.dim)
        assert rows.dtype == np.float32
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_a_row_does_not_depend_on_what_stands_beside_it(embedder: Embedder) -> None:
    rows = embedder.embed(TEXTS, "document")
    assert np.array_equal(rows[::-1], embedder.embed(TEXTS[::-1], "document"))
    for text, row in zip(TEXTS, rows, strict=True):
        assert np.array_equal(embedder.embed([text], "document")[0], row)


def test_no_text_gives_no_row(embedder: Embedder) -> None:
    assert embedder.embed([], "query").shape == (0, embedder.dim)
    assert embedder.windows([]) == []


def test_windows_cover_the_text_and_a_short_one_is_its_own(embedder: Embedder) -> None:
    long = " ".join(f"word{i}" for i in range(4000))
    short, pieces = embedder.windows(["a kettle", long])
    assert short == ["a kettle"]
    end = 0
    for piece in pieces:
        start = long.index(piece)
        assert start <= end
        end = start + len(piece)
    assert end == len(long)
    assert embedder.name
