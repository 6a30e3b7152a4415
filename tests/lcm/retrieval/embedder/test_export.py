"""Exports of models: made once, whole or absent; a real conversion is in test_minilm.py."""

import json
import logging
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lcm.errors import ModelError
from lcm.faults import counting
from lcm.retrieval.embedder import export as export_module
from lcm.retrieval.embedder.export import Precision, export, find_export, models_dir

WEIGHTS = "ab" * 32


@pytest.fixture
def converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The precisions that a stand-in of the converter was asked for; all tools are there."""
    asked: list[str] = []

    apart = export_module._run_apart

    def convert(program: str, source: Path, target: Path, precision: Precision) -> None:
        if program != export_module.__name__:
            apart(program, source, target, precision)
        asked.append(precision)
        (target / "model.onnx").write_bytes(b"converted")

    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(export_module, "installed", lambda tool: "1")
    monkeypatch.setattr(export_module, "_run_apart", convert)
    return asked


def test_several_at_once_convert_once_and_the_record_says_of_what(converted: list[str], tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as callers:
        found = set(callers.map(lambda _: export(tmp_path, WEIGHTS, "int8"), range(8)))
    (directory,) = found
    assert converted == ["int8"]
    assert find_export(WEIGHTS, "int8") == directory
    assert find_export(WEIGHTS, "fp32") is find_export("cd" * 32, "int8") is None
    assert {path.name for path in directory.iterdir()} == {"model.onnx", "export.json"}
    record = json.loads((directory / "export.json").read_text())
    assert (record["weights_sha256"], record["precision"]) == (WEIGHTS, "int8")


def test_a_damaged_export_is_made_again_and_what_a_killed_process_left_goes(
    converted: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = export(tmp_path, WEIGHTS, "int8") / "model.onnx"
    model.write_bytes(b"conv")
    torn = Path(f"{model.parent}.tmp-killed")
    torn.mkdir()
    with caplog.at_level(logging.WARNING), counting(incidents := Counter[str]()):
        export(tmp_path, WEIGHTS, "int8")
    assert incidents == {"damaged exported model": 1}
    assert "is damaged; it is exported again" in caplog.text
    assert model.read_bytes() == b"converted"
    assert not torn.exists()
    assert len(converted) == 2


@pytest.mark.slow
def test_a_failed_export_is_told_in_one_line_and_leaves_nothing(converted: list[str], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"^[^\n]* could not be exported to ONNX: [^\n]*No module named lcm\.absent$"):
        export(tmp_path, WEIGHTS, "int8", program="lcm.absent")
    assert [path.suffix for path in models_dir().iterdir()] == [".lock"]
