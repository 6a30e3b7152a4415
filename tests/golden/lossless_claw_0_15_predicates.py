"""The predicates and assertions that `deviations.yaml` names of lossless-claw 0.15."""

from typing import Any

from lcm.javascript import trim
from lcm.records.summary import FALLBACK_MARK
from tests.golden.adapters.lossless_claw.tokens import text_of


def has_nothing_to_summarise(case: dict[str, Any]) -> bool:
    return case["op"] == "emergency" and not trim(text_of(case["source"]))


def is_no_summary(case: dict[str, Any], found: dict[str, Any], expected: dict[str, Any]) -> None:
    """The failure of the summarizer says why."""
    assert (found["content"], found["tokens"]) == ("", 0)
    assert expected["content"] == FALLBACK_MARK
