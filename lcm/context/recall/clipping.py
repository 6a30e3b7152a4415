"""What is too long to show, clipped with a mark: never left out whole, never cut unmarked."""

from collections.abc import Sequence

from lcm.protocols.models import TokenEstimator

_SHRINK = 0.9


def clipped(texts: Sequence[str], cap: int, tokens: TokenEstimator) -> str:
    """The texts, one a line or more, within a cap: short ones whole, long ones as far as an equal share goes.

    A mark says how many tokens of a text are left out. Empty where not even the marks fit.
    """
    counts = tokens.count(texts)
    whole = "\n".join(texts)
    if tokens.count([whole])[0] <= cap:
        return whole
    share = _share(counts, cap)
    while share >= 1:
        told = "\n".join(_beginning(*one, share, tokens) for one in zip(texts, counts, strict=True))
        if tokens.count([told])[0] <= cap:
            return told
        share = int(share * _SHRINK)
    return clipped([whole], cap, tokens) if len(texts) > 1 else ""


def _share(counts: Sequence[int], cap: int) -> int:
    """The most that each may take, where all together may take `cap` and what one leaves is for the others."""
    left = cap
    for place, count in enumerate(sorted(counts)):
        share = left // (len(counts) - place)
        if count > share:
            return share
        left -= count
    return max(counts, default=0)


def _beginning(text: str, count: int, share: int, tokens: TokenEstimator) -> str:
    """A text that takes no more than its share, else its beginning and the mark."""
    if count <= share:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if tokens.count([_marked(text, middle, count, tokens)])[0] <= share:
            low = middle
        else:
            high = middle - 1
    return _marked(text, low, count, tokens)


def _marked(text: str, units: int, count: int, tokens: TokenEstimator) -> str:
    kept = text[:units]
    return f"{kept} [... {count - tokens.count([kept])[0]:,} of {count:,} tokens left out]".lstrip()
