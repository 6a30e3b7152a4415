"""What an answerer is shown: texts in order until a budget of tokens is spent, the first that no longer fits cut."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace

from eval.answering.answerer import Excerpt
from lcm.protocols.models import TokenEstimator


def within(excerpts: Iterable[Excerpt], budget_tokens: int, estimator: TokenEstimator) -> list[Excerpt]:
    """The excerpts as far as the budget goes, read as `recall@Bt` reads documents; those without words are left out."""
    shown, left = list[Excerpt](), budget_tokens
    for excerpt in excerpts:
        if not excerpt.text.strip():
            continue
        text = _cut(excerpt.text, left, estimator)
        if text:
            shown.append(replace(excerpt, text=text))
        left -= _tokens(text, estimator)
        if left <= 0 or len(text) < len(excerpt.text):
            break
    return shown


def _cut(text: str, most_tokens: int, estimator: TokenEstimator) -> str:
    """The longest beginning of a text of at most so many tokens."""
    if _tokens(text, estimator) <= most_tokens:
        return text
    lengths = range(len(text))
    return text[: bisect_right(lengths, most_tokens, key=lambda length: _tokens(text[:length], estimator)) - 1]


def _tokens(text: str, estimator: TokenEstimator) -> int:
    return estimator.count([text])[0]
