"""Settings out of range are refused at construction, in words that name the setting, its range and its value."""

from functools import partial
from math import nan

from lcm.compaction.guidance.scanner import ByteScanner
from lcm.compaction.recent_tail import RecentTail
from lcm.context.assembly.continuity import Continuity
from lcm.context.assembly.lossless import Lossless
from lcm.context.assembly.parts import BudgetShares
from lcm.context.authored import AuthoredFiles
from lcm.token_estimator import Utf16Units
from tests.lcm.refusals import assert_refused


def test_settings_of_assemblies_out_of_range_are_refused() -> None:
    lossless, continuity = partial(Lossless, Utf16Units()), partial(Continuity, Utf16Units())
    assert_refused(lossless, "be >= 0", fresh_tail_count=-1)
    assert_refused(lossless, "be >= 0 or null", fresh_tail_max_tokens=-1)
    assert_refused(lossless, "be > 0 or null", max_budget_tokens=nan, default_budget_tokens=-5)
    assert_refused(lossless, "be one of: chronological, relevance", eviction="oldest")
    assert_refused(lossless, "be one of: 0.15, corrected, original", rules="1.4.4")
    assert_refused(lossless, "be an IANA name such as Europe/Madrid", timezone="Mars/Base")
    assert_refused(continuity, "be in (0, 1]", token_budget_fraction=nan)
    assert_refused(continuity, "be one of: 1.4.4, corrected, original", rules="1.4")
    assert_refused(BudgetShares, "be in [0, 1]", soft_fraction=1.5)
    assert_refused(RecentTail, "be >= 0", min_turns=-1)
    assert_refused(RecentTail, "be in [0, 1] or null", budget_fraction=nan)


def test_settings_of_authored_files_out_of_range_are_refused() -> None:
    authored = partial(AuthoredFiles, ByteScanner())
    assert_refused(authored, "be a list of texts", paths="a.md", exclude=[[1]])
    assert_refused(authored, "be one of: generic, obsidian", adapter="notion")
    assert_refused(authored, "be one of: corrected, original", rules="1.4.4")
    assert_refused(authored, "be in [0, 1]", authority=nan)
    assert_refused(authored, "be > 0", max_file_bytes=0)
    assert_refused(authored, "be >= 0 or null", max_hard_tokens=-1)
