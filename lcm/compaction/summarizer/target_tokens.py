"""How long a summary is asked to be."""

import math

_LEAF_FLOOR_TOKENS = 192
_AGGRESSIVE_FLOOR_TOKENS = 96
_CONDENSED_FLOOR_TOKENS = 512
LEAF_SHARE = 0.35
"""Of the tokens of a text that a leaf is asked to have."""
_AGGRESSIVE_SHARE_OF_TEXT = 0.2
_AGGRESSIVE_SHARE_OF_TARGET = 0.55


def requested_tokens(
    text_tokens: int,
    depth: int,
    is_aggressive: bool,
    leaf_target_tokens: int,
    condensed_target_tokens: int,
    leaf_share: float = LEAF_SHARE,
) -> int:
    """The length to ask for; an aim, no bound.

    A condensed summary: the condensed target, at least 512. A leaf, with the target L of at least 192 and a text of n
    tokens: min(L, 0.35 n), at least 192; aggressive min(0.55 L, 0.2 n), at least 96. Fractions are rounded down.

    Args:
        text_tokens: of the text to be summarised.
        depth: of the summary to be made; 0 is a leaf.
        is_aggressive: the first answer was too long.
        leaf_target_tokens: wished for a leaf.
        condensed_target_tokens: wished for a condensed summary.
        leaf_share: in the place of 0.35.
    Source: lossless-claw 0.6.3.
    """
    if depth > 0:
        return max(_CONDENSED_FLOOR_TOKENS, condensed_target_tokens)
    target = max(_LEAF_FLOOR_TOKENS, leaf_target_tokens)
    if not is_aggressive:
        return max(_LEAF_FLOOR_TOKENS, min(target, math.floor(leaf_share * text_tokens)))
    tight = max(_AGGRESSIVE_FLOOR_TOKENS, min(target, math.floor(_AGGRESSIVE_SHARE_OF_TARGET * target)))
    return max(_AGGRESSIVE_FLOOR_TOKENS, min(tight, math.floor(_AGGRESSIVE_SHARE_OF_TEXT * text_tokens)))
