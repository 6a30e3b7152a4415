"""How well the corrected frame detects guidance, on sentences of others and on the corpora."""

import hashlib
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

SENTENCES = Path(__file__).parent / "sentences"
TEST_SHA256 = "3b5a4f62780cbf9f8121a52ca1eb24db34fb36354dec3ec6e6ce66baf01114ff"
BOUND = 0.85


@pytest.fixture(scope="module")
def measuring(root: Path) -> ModuleType:
    """The script that makes the tables of docs/guidance.md."""
    spec = importlib.util.spec_from_file_location("guidance_detection", root / "experiments/guidance_detection.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_held_out_sentences_are_the_frozen_ones() -> None:
    """More than two hundred of all sentences were written by somebody else."""
    assert hashlib.sha256((SENTENCES / "test.json").read_bytes()).hexdigest() == TEST_SHA256
    assert [len(json.loads((SENTENCES / name).read_text())) for name in ("dev.json", "test.json")] == [150, 280]


@pytest.mark.parametrize("name", ["dev", "own", "test"])
def test_every_label_is_found_with_precision_and_recall_above_the_bound(measuring: ModuleType, name: str) -> None:
    rates = measuring.rates(measuring.sentence_pairs(measuring.FRAMES["corrected"], name))
    assert set(rates) == {"obligation", "prohibition", "permission", "none"}
    assert min(min(rate) for rate in rates.values()) >= BOUND


def test_rates_divide_by_what_was_found_and_by_what_is_labelled(measuring: ModuleType) -> None:
    pairs = [("a", "a"), ("a", "b"), ("b", "b"), ("b", "b")]
    assert measuring.rates(pairs) == {"a": (1 / 1, 1 / 2), "b": (2 / 3, 2 / 2)}
