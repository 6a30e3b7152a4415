"""By which rules a component works that follows an original system."""

from typing import Literal

Rules = Literal["corrected", "original"]
"""By which a component works that follows an original: its rules with their mistakes put right, or to the letter."""


VersionedRules = Literal["corrected", "original", "1.4.4"]
"""Likewise, where the documents of an original (`original`) want other rules than its code of that version."""
