"""What differs between the sides of a comparison, as its page tells it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.report.comparison_page import differences
from eval.report.page import Notes
from eval.run import Run
from eval.table import Table


def side(name: str, config: Mapping[str, Any]) -> Run:
    return Run(Path(name), name, summary={}, config=config)


def test_settings_of_the_system_are_told_apart_from_how_it_was_measured() -> None:
    measured = {"arms": {"bm25": {"n": 1}}, "measures": {"latency": {"queries": 0}}}
    baseline = side("a", {"fusion": {"k": 60, "further_vectors": None}, **measured})
    other = side("b", {"fusion": {"k": 30}, "arms": None, "measures": {"latency": {"queries": 5}}})
    section = differences(baseline, [other])
    table, note = section.parts
    assert isinstance(table, Table)
    assert (table.caption, list(table.rows)) == ("b differs in 1 setting", [("fusion.k", "60", "30")])
    assert isinstance(note, Notes)
    assert list(note.lines) == ["b was also measured otherwise, in: arms, measures.latency"]


def test_a_side_that_is_only_measured_otherwise_has_the_same_system() -> None:
    section = differences(side("a", {"fusion": {"k": 60}}), [side("b", {"fusion": {"k": 60}, "arms": {"n": 1}})])
    told = [line for part in section.parts if isinstance(part, Notes) for line in part.lines]
    assert told == ["b: its system is set as the baseline's is", "b was also measured otherwise, in: arms"]


def test_a_class_whose_module_became_part_of_another_is_no_difference() -> None:
    """What it is set to is told all the same."""
    before = side("a", {"decay": {"_target_": "lcm.retrieval.decay.weibull.Weibull", "beta_core": 0.8}})
    after = side("b", {"decay": {"_target_": "lcm.retrieval.decay.Weibull", "beta_core": 0.9}})
    section = differences(before, [after])
    [table] = (part for part in section.parts if isinstance(part, Table))
    assert list(table.rows) == [("decay.beta_core", "0.8", "0.9")]
