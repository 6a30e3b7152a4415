"""Small files in the format of each published dataset."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.eval.dataset.test_dialogsum import write_small_dialogsum
from tests.eval.dataset.test_personamem import write_small_personamem
from tests.eval.dataset.test_qmsum import write_small_qmsum
from tests.support.small_beam import write_small_beam
from tests.support.small_collection import write_small_beir
from tests.support.small_lmeb import write_small_lmeb
from tests.support.small_locomo import RECORD, write_small_locomo
from tests.support.small_longmemeval import RECORD as RECORDED
from tests.support.small_longmemeval import write_small_longmemeval


def _two_conversations(directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return write_small_locomo(directory, monkeypatch, RECORD, RECORD | {"sample_id": "conv-2"})


def _two_haystacks(directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return write_small_longmemeval(directory, monkeypatch, RECORDED, RECORDED | {"haystack_id": "hay2"})


SMALL_DATASETS: Mapping[str, Callable[[Path, pytest.MonkeyPatch], str]] = {
    "beam": write_small_beam,
    "beir": write_small_beir,
    "dialogsum": write_small_dialogsum,
    "lmeb": write_small_lmeb,
    "locomo": _two_conversations,
    "longmemeval": _two_haystacks,
    "personamem": write_small_personamem,
    "qmsum": write_small_qmsum,
}
