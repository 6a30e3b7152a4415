"""By which rules a component works that follows an original system."""

from typing import Literal

Rules = Literal["corrected", "original"]
"""By which a component works that follows an original: its rules with their mistakes put right, or to the letter."""

LosslessRules = Literal["corrected", "original", "0.15"]
"""Likewise, where a newer version of an original has other rules: `original` is the first that was followed."""

VersionedRules = Literal["corrected", "original", "1.4.4"]
"""Likewise, where the documents of an original (`original`) want other rules than its code of that version."""
