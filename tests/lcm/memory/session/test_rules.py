"""Which sessions are written, and the bounds of what is taken in."""

from dataclasses import fields, replace

import pytest
import yaml

from lcm.memory.session import SessionRules
from tests.conftest import ROOT
from tests.lcm.refusals import assert_refused


def test_the_default_choice_is_the_class_default() -> None:
    values = yaml.safe_load((ROOT / "conf/session/default.yaml").read_text())
    assert values.pop("_target_") == "lcm.memory.session.SessionRules"
    assert set(values) == {field.name for field in fields(SessionRules)}
    assert values.pop("leaf_chunk_tokens") == "${oc.select:compaction.leaf_chunk_tokens,20000}"
    assert replace(SessionRules(**values), ignore_patterns=(), stateless_patterns=()) == SessionRules()
    assert (values["ignore_patterns"], values["stateless_patterns"]) == ([], [])


def test_a_key_hides_the_id_from_patterns_and_the_stateless_ones_see_no_id() -> None:
    rules = SessionRules(ignore_patterns=["cron-*"], stateless_patterns=["sub-*"])
    assert rules.ignores("cron-1")
    assert not rules.ignores("cron-1", "main")
    assert rules.is_stateless(" sub-1 ")
    assert rules.writes("sub-1")
    assert not SessionRules(stateless_patterns=["sub-*"], skip_stateless=False).is_stateless("sub-1")


def test_values_out_of_range_are_named() -> None:
    assert_refused(SessionRules, "be >= 0 or null", bootstrap_max_tokens=-1, import_cap_share=float("nan"))
    assert_refused(SessionRules, "be >= 1", leaf_chunk_tokens=0)
    assert_refused(SessionRules, "be >= 1 or null", large_file_threshold_tokens=0)
    assert_refused(SessionRules, "be >= -1", new_session_retain_depth=-2)
    assert_refused(SessionRules, "be >= 0", import_cap_messages=-1)
    assert_refused(SessionRules, "be one of: corrected, original", rules="1.4.4")


@pytest.mark.parametrize(
    ("bound", "chunk", "most"),
    [(None, 80_000, None), (7, 80_000, 7), (0, 20_000, 6000), (0, 80_001, 24_000), (0, 1, 6000)],
)
def test_a_bound_of_zero_follows_the_leaf_chunk(bound: int | None, chunk: int, most: int | None) -> None:
    assert SessionRules(bootstrap_max_tokens=bound, leaf_chunk_tokens=chunk).first_import_tokens == most
