"""A model that a preset names has nothing of it unpickled or called, unless the user trusts its folder."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from lcm.compaction.summarizer.t5_files import T5Files
from lcm.errors import ModelError

CONFIG = {"model_type": "t5", "auto_map": {"AutoConfig": "evil.Evil", "AutoModelForSeq2SeqLM": "evil.Evil"}}


class Touch:
    """What makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.path}",)


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("LCM_TRUST", raising=False)
    return tmp_path / "canary"


def hostile_model(folder: Path, canary: Path) -> Path:
    """A T5 whose weights, code and descriptions want code run."""
    folder.mkdir()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Touch(canary)))
    (folder / "evil.py").write_text(f'open("{canary}", "w").close()\n\n\nclass Evil:\n    pass\n')
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text(json.dumps({"auto_map": {"AutoTokenizer": ["evil.Evil", None]}}))
    return folder


def test_a_pickle_is_not_read_unless_its_folder_is_trusted(tmp_path: Path, canary: Path) -> None:
    model = hostile_model(tmp_path / "model", canary)
    with pytest.raises(ModelError, match=rf"pytorch_model\.bin is a pickle, .* say trust=\[{model}\] on"):
        T5Files.find(str(model), "fp32")
    index = {"weight_map": {"shared.weight": "pytorch_model.bin"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelError, match=r"pytorch_model\.bin is a pickle"):
        T5Files.find(str(model), "fp32")
    assert not canary.exists()


def test_an_index_names_nothing_but_files_beside_it(tmp_path: Path, canary: Path) -> None:
    model = hostile_model(tmp_path / "model", canary)
    for weight_map in ({"w": "../x.safetensors"}, {"w": "/dev/zero"}, {}, None, "x"):
        (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
        with pytest.raises(ModelError, match=r"names no files beside it"):
            T5Files.find(str(model), "fp32")


@pytest.mark.slow
@pytest.mark.parametrize("named", ["by itself", pytest.param("by an index", marks=pytest.mark.full)])
def test_neither_a_pickle_that_is_trusted_nor_code_beside_weights_is_executed(named, tmp_path, canary, monkeypatch):
    """Torch unpickles tensors alone, and the code beside is not even there where the weights are converted."""
    from safetensors.numpy import save_file

    model = hostile_model(tmp_path / "model", canary)
    monkeypatch.setenv("LCM_TRUST", str(tmp_path))
    if named == "by an index":
        save_file({"shared.weight": np.zeros((4, 4), np.float32)}, model / "model.safetensors")
        for name in ("pytorch_model.bin.index.json", "renamed.safetensors.index.json"):
            (model / name).write_text(json.dumps({"weight_map": {"shared.weight": "pytorch_model.bin"}}))
        config = CONFIG | {"transformers_weights": "renamed.safetensors.index.json"}
        (model / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"could not be exported to ONNX"):
        T5Files.find(str(model), "fp32")
    assert not canary.exists()
