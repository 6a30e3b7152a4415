"""Settings out of range are refused at construction, in words that name the setting, its range and its value."""

from collections.abc import Callable
from math import nan
from typing import Any

import pytest

from lcm.compaction.guidance.scanner import ByteScanner
from lcm.compaction.recent_tail import RecentTail
from lcm.context.assembly.budget_shares import BudgetShares
from lcm.context.assembly.continuity import Continuity
from lcm.context.assembly.lossless import Lossless
from lcm.context.authored.files import AuthoredFiles
from lcm.token_estimator.utf16_units import Utf16Units


def lossless(**settings: Any) -> object:
    return Lossless(Utf16Units(), **settings)


def continuity(**settings: Any) -> object:
    return Continuity(Utf16Units(), **settings)


def authored(**settings: Any) -> object:
    return AuthoredFiles(ByteScanner(), **settings)


REFUSED: list[tuple[Callable[..., object], dict[str, Any], str]] = [
    (lossless, {"fresh_tail_count": -1}, "fresh_tail_count must be >= 0, got -1"),
    (lossless, {"fresh_tail_max_tokens": 0}, "fresh_tail_max_tokens must be > 0 or null, got 0"),
    (lossless, {"max_budget_tokens": nan}, "max_budget_tokens must be > 0 or null, got nan"),
    (lossless, {"default_budget_tokens": -5}, "default_budget_tokens must be > 0 or null, got -5"),
    (lossless, {"eviction": "oldest"}, "eviction must be one of: chronological, relevance, got 'oldest'"),
    (lossless, {"rules": "1.4.4"}, "rules must be one of: corrected, original, got '1.4.4'"),
    (lossless, {"timezone": "Mars/Base"}, "timezone must be an IANA name such as Europe/Madrid, got 'Mars/Base'"),
    (continuity, {"token_budget_fraction": nan}, "token_budget_fraction must be in (0, 1], got nan"),
    (continuity, {"rules": "1.4"}, "rules must be one of: 1.4.4, corrected, original, got '1.4'"),
    (BudgetShares, {"soft_fraction": 1.5}, "soft_fraction must be in [0, 1], got 1.5"),
    (RecentTail, {"min_turns": -1}, "min_turns must be >= 0, got -1"),
    (RecentTail, {"budget_fraction": nan}, "budget_fraction must be in [0, 1] or null, got nan"),
    (authored, {"paths": "a.md"}, "paths must be a list of texts, got 'a.md'"),
    (authored, {"exclude": [1]}, "exclude must be a list of texts, got [1]"),
    (authored, {"adapter": "notion"}, "adapter must be one of: generic, obsidian, got 'notion'"),
    (authored, {"rules": "1.4.4"}, "rules must be one of: corrected, original, got '1.4.4'"),
    (authored, {"authority": nan}, "authority must be in [0, 1], got nan"),
    (authored, {"max_file_bytes": 0}, "max_file_bytes must be > 0, got 0"),
    (authored, {"max_hard_tokens": -1}, "max_hard_tokens must be >= 0 or null, got -1"),
]


def test_a_setting_out_of_range_is_refused_by_name() -> None:
    said = []
    for made, settings, _ in REFUSED:
        with pytest.raises(ValueError) as refusal:
            made(**settings)
        said.append(str(refusal.value))
    assert said == [message for _, _, message in REFUSED]
