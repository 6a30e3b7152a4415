"""A system as its page draws it: what is off is absent, in runs of today and of before."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from eval.report.system_flow import is_on
from tests.conftest import ROOT

CHOICES = [
    path
    for group in (
        *("admission", "annotation", "authored", "compaction", "decay", "deduplication", "extraction", "fusion"),
        *("guidance", "recovery", "reinforcement", "reranker", "summarizer", "summary_documents", "summary_expansion"),
    )
    for path in sorted((ROOT / "conf" / group).glob("*.yaml"))
]


@pytest.mark.parametrize("path", CHOICES, ids=lambda path: f"{path.parent.name}={path.stem}")
def test_all_choices_but_none_are_on(path: Path) -> None:
    node: dict[str, Any] = yaml.safe_load(path.read_text())
    if "_target_" in node:
        assert is_on(node) == (path.stem != "none")


def test_what_was_off_in_a_module_of_its_own_is_off() -> None:
    assert not is_on({"_target_": "lcm.writing.admission.none.AdmitAll"})
    assert not is_on(None)
