"""The beginning of a text that has so many tokens."""

from bisect import bisect_right

from lcm.protocols.models import TokenEstimator


def first_tokens(text: str, most_tokens: float, token_estimator: TokenEstimator) -> str:
    """The longest beginning of whole code points that has no more tokens; empty where there is none."""
    if token_estimator.count([text])[0] <= most_tokens:
        return text
    fits = bisect_right(range(len(text)), most_tokens, key=lambda end: token_estimator.count([text[:end]])[0])
    return text[: max(0, fits - 1)]
