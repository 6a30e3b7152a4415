import shutil
from collections import Counter
from pathlib import Path

import huggingface_hub.constants
import pytest

from lcm.compaction.summarizer.t5 import T5
from lcm.compaction.summarizer.t5_files import T5Files, find_folder
from lcm.errors import ModelError
from lcm.records.summary import SummaryRequest
from tests.support import tiny_t5 as toy

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]

[(TEXT, SUMMARY)] = toy.examples(seed=1000, count=1)


def said(model: Path | str, **settings) -> str:
    [result] = T5(model=str(model), **settings).summarize([SummaryRequest(TEXT, 14)], incidents=Counter())
    assert result.failure is None
    return result.text


@pytest.fixture
def onnx_folder(tiny_t5, tmp_path, monkeypatch):
    """What was exported of the trained one, elsewhere, and an empty cache."""
    folder = tmp_path / "exported"
    shutil.copytree(T5Files.find(str(tiny_t5.trained), "fp32").folder, folder)
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    return folder


def test_export_is_made_once_and_named_after_its_weights(tiny_t5):
    first, again = (T5Files.find(str(tiny_t5.trained), "fp32") for _ in range(2))
    assert first == again
    assert first.folder.parent == tiny_t5.cache / "models"
    assert first.folder != T5Files.find(str(tiny_t5.untrained), "fp32").folder
    assert {path.name for path in first.folder.iterdir()} == {
        "encoder_model.onnx", "decoder_model.onnx", "decoder_with_past_model.onnx", "config.json",
        "generation_config.json", "tokenizer.json", "export.json",
    }  # fmt: skip
    assert not list(first.folder.parent.glob("*.tmp-*"))


def test_graphs_in_a_folder_are_used_as_they_are(onnx_folder, tmp_path):
    assert said(onnx_folder) == SUMMARY
    (onnx_folder / "onnx").mkdir()
    for graph in onnx_folder.glob("*.onnx"):
        graph.rename(onnx_folder / "onnx" / graph.name)
    assert said(onnx_folder) == SUMMARY
    assert not (tmp_path / "cache").exists()


def test_int8_is_made_of_a_folders_graphs_and_used_where_a_folder_has_it(onnx_folder, tmp_path):
    assert said(onnx_folder, precision="int8") == SUMMARY
    quantized = T5Files.find(str(onnx_folder), "int8").folder
    assert quantized.parent == tmp_path / "cache" / "models"
    assert T5Files.find(str(quantized), "int8").folder == quantized
    with pytest.raises(ModelError, match=r"holds int8 graphs only; set summarizer\.precision to int8"):
        T5Files.find(str(quantized), "fp32")


def test_hub_id_is_found_in_the_local_cache(onnx_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    repository = tmp_path / "hub" / "models--someone--tiny-t5"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    (repository / "snapshots").mkdir()
    (tmp_path / "hub" / "models--google-t5--t5-small").symlink_to(repository)
    onnx_folder.rename(repository / "snapshots" / "abc")
    assert find_folder("t5-small") == tmp_path / "hub" / "models--google-t5--t5-small" / "snapshots" / "abc"
    [result] = T5(model="someone/tiny-t5").summarize([SummaryRequest(TEXT, 14)], incidents=Counter())
    assert (result.text, result.model) == (SUMMARY, "someone/tiny-t5-fp32")


def test_missing_model_is_one_line_that_names_the_key():
    for model in (None, "nobody/no-such-t5", "/no/such/folder", "two words"):
        with pytest.raises(ModelError, match=r"summarizer\.model.*hub cache") as error:
            T5Files.find(model, "fp32")
        assert "\n" not in str(error.value)


DAMAGED = [
    ("encoder_model.onnx", b"no graph", "encoder_model.onnx is no model that onnxruntime can open"),
    ("tokenizer.json", b"{}", "tokenizer.json is no tokenizer"),
    ("tokenizer.json", None, "holds no tokenizer.json"),
    ("encoder_model.onnx", None, "holds neither model.safetensors nor encoder_model.onnx"),
    ("config.json", b'{"model_type": "bart"}', "a model of type 'bart'; summarizer=t5 reads longt5, mt5, t5, umt5"),
    ("config.json", b"{", "config.json cannot be read"),
    ("config.json", None, "holds no config.json"),
]


def test_damage_is_told_in_one_line(onnx_folder):
    for name, content, problem in DAMAGED:  # each beside those before it
        (onnx_folder / name).write_bytes(content) if content else (onnx_folder / name).unlink()
        [result] = T5(model=str(onnx_folder)).summarize([SummaryRequest(TEXT, 14)], incidents=Counter())
        assert problem in str(result.failure)
        assert "\n" not in str(result.failure)
