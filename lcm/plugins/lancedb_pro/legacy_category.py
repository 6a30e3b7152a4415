"""From the older vocabulary of the plugin's rows to the six memory categories.

Source: memory-lancedb-pro, reverseMapLegacyCategory and normalizeCategory.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from lcm.javascript import trim, utf16_length
from lcm.records import MEMORY_CATEGORIES

PROFILE_LENGTH = 200
"""UTF-16 units from which a fact no longer counts as a self-description."""

CATEGORY_OF: Mapping[str, str] = MappingProxyType(
    {"preference": "preferences", "entity": "entities", "decision": "events", "other": "patterns"}
)

# Word boundaries are those of ASCII. Chinese has none, so its cues count wherever they stand: the original asks for
# boundaries around them too, and so hardly ever finds one.
_SELF_DESCRIPTION = re.compile(r"\b(?:my |i am |i'm |name is )\b|叫我|我的|我是", re.ASCII | re.IGNORECASE)


def memory_category(legacy: str | None, text: str) -> str:
    """The memory category of a row that names none: a short self-description among the facts is a profile, any other
    fact a case, and what is unknown a pattern."""
    if legacy == "fact":
        is_profile = utf16_length(text) < PROFILE_LENGTH and _SELF_DESCRIPTION.search(text)
        return "profile" if is_profile else "cases"
    return CATEGORY_OF.get(legacy or "", "patterns")


def normalized(category: str) -> str | None:
    """One of the six categories, whatever its case and the white space around it; None for anything else."""
    name = trim(category.lower())
    return name if name in MEMORY_CATEGORIES else None
