"""The last line of a summary: what it left out, as a cue to expand it."""

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from lcm.protocols.models import TokenEstimator
from lcm.retrieval.text_index.words import load_stop_words, split_words, windows

FOOTER = "Expand for details about: "
NOTHING_NAMED = "exact wording"

_TERM = re.compile(r"[^\W_][\w'’]*(?:[./_-]+\w+)*")
_SHORTEST_WORD = 3
_PAIR_WEIGHT = 1.5  # two words that stand together twice say more than either
_SPECIAL_WEIGHT = 1.5  # names, numbers, identifiers
_EARLIER_WEIGHT = 3.0  # what an earlier summary left out is still left out
_FILLERS = {
    "about", "actually", "after", "again", "all", "also", "any", "back", "basically", "because", "been", "before",
    "being", "both", "can", "can't", "could", "did", "didn't", "does", "doesn't", "doing", "don't", "done", "each",
    "even", "every", "example", "few", "first", "from", "get", "give", "going", "gonna", "good", "got", "great",
    "had", "has", "have", "he's", "her", "here", "him", "his", "how", "i'll", "i'm", "i've", "into", "it's", "its",
    "just", "kind", "know", "let", "like", "look", "lot", "made", "make", "many", "may", "maybe", "mean", "more",
    "most", "much", "must", "need", "new", "now", "off", "okay", "one", "only", "other", "our", "out", "over",
    "own", "per", "quite", "really", "right", "said", "same", "say", "see", "she", "should", "some", "something",
    "sort", "still", "sure", "take", "than", "that's", "them", "these", "thing", "things", "think", "those",
    "through", "time", "too", "two", "under", "until", "use", "used", "using", "very", "via", "want", "was", "way",
    "we're", "well", "were", "what", "when", "where", "which", "while", "who", "why", "will", "with", "without",
    "would", "yeah", "yes", "you", "you're", "your",
}  # fmt: skip
_MOST_TERMS = 8
_MOST_TRIED = 200
_BEFORE_FIRST = " \t\"'(*`-#>"
_SPECIAL = re.compile(r"[0-9_./]|\w[A-Z]")


def footer(
    dropped: Sequence[str], kept: str, earlier: Sequence[str], budget_tokens: int, token_estimator: TokenEstimator
) -> str:
    """Name what was dropped: at most eight terms, as many as the budget holds, at the least `exact wording`.

    A term is a content word or two neighbouring ones; it weighs as often as it was dropped (a pair, a name, a number or
    an identifier half as much again), what an earlier footer named three more. A term whose words the summary itself
    holds is not named.

    Args:
        dropped: the sentences left out.
        kept: the summary without this line.
        earlier: the lists of the footers of the summaries that were condensed.
    """
    held = set(_keys(kept))
    weights: defaultdict[str, float] = defaultdict(float)
    pairs: Counter[str] = Counter()
    names: dict[str, str] = {}
    for sentence in dropped:
        _count(sentence, weights, pairs, names)
    weights.update({pair: _PAIR_WEIGHT * count for pair, count in pairs.items() if count > 1})
    for term in (term.strip().rstrip(".") for line in earlier for term in line.split(",")):
        if term and term.casefold() != NOTHING_NAMED:
            names.setdefault(term.casefold(), term)
            weights[term.casefold()] += _EARLIER_WEIGHT
    ranked = sorted(weights, key=lambda key: -weights[key])
    line, used = FOOTER + NOTHING_NAMED, held
    chosen: list[str] = []
    for key in ranked[:_MOST_TRIED]:
        words = _keys(key)
        if not words or used.issuperset(words):
            continue
        longer = FOOTER + ", ".join([*chosen, names[key]])
        if token_estimator.count([longer])[0] > budget_tokens:
            continue
        line, used = longer, used | set(words)
        chosen.append(names[key])
        if len(chosen) == _MOST_TERMS:
            break
    return line


def _count(sentence: str, weights: dict[str, float], pairs: Counter[str], names: dict[str, str]) -> None:
    """Add the terms of a sentence: their weights, how often each pair stands together, and how a term is written."""
    stop_words = load_stop_words("english")
    before, before_end = "", 0
    for match in _TERM.finditer(sentence):
        word = match[0]
        key = word.casefold()
        if runs := split_words(word)[1]:
            for pair in (pair for run in runs for pair in windows(run, 2)):
                names.setdefault(pair, pair)
                weights[pair] += 1
        if runs or len(word) < _SHORTEST_WORD or key in stop_words or key in _FILLERS:
            before = ""
            continue
        is_special = _SPECIAL.search(word) or (word[0].isupper() and sentence[: match.start()].strip(_BEFORE_FIRST))
        weights[key] += _SPECIAL_WEIGHT if is_special else 1
        names.setdefault(key, word if is_special else key)
        if before and sentence[before_end : match.start()] == " ":
            pair = f"{before} {key}"
            pairs[pair] += 1
            names.setdefault(pair, f"{names[before]} {names[key]}")
        before, before_end = key, match.end()


def _keys(text: str) -> list[str]:
    words, runs = split_words(text)
    return [*words, *itertools.chain.from_iterable(windows(run, 2) for run in runs)]
