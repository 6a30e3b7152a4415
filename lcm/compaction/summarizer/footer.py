"""The last line of a summary: what it left out, as a cue to expand it."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lcm.compaction.facts.finding import statements_in
from lcm.compaction.facts.reading import Kind
from lcm.protocols.models import TokenEstimator
from lcm.text import load_stop_words, pairs, split_words, words_in

FOOTER = "Expand for details about: "
NOTHING_NAMED = "exact wording"

_TERM = re.compile(r"[^\W_][\w'’]*(?:[./_-]+\w+)*")
_SHORTEST_WORD = 3
_PAIR_WEIGHT = 2.0  # two words that stand together twice say more than either
_SPECIAL_WEIGHT = 3.0  # names and identifiers
_DULL = re.compile(r"^\d|^[0-9a-f]{16,}$|['’]")  # numbers, digests, "here's"
_LONGEST_NAME = 60  # characters
_LONGEST_PATH = 30  # characters: of a longer path its end, which finds it too
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
    # What programs and those who write them say all the time.
    "assistant", "async", "await", "bash", "catch", "characters", "check", "class", "code", "command", "const",
    "defines", "edited", "error", "export", "false", "file", "files", "fix", "function", "git", "grep", "head",
    "import", "lines", "line", "modified", "none", "npm", "null", "output", "ran", "read", "result", "return", "run",
    "cannot", "create", "json", "markdown", "promise", "python", "remove", "sed", "self", "text", "tool", "true", "try",
    "type", "typescript", "undefined", "update", "user", "wrote",
}  # fmt: skip
_NAMING: tuple[Kind, ...] = ("name", "identifier", "path", "url")  # their words alone say what the fact is
_MOST_TERMS = 8
_MOST_TRIED = 200
_BEFORE_FIRST = " \t\"'(*`-#>"
_SPECIAL = re.compile(r"[0-9_./]|\w[A-Z]")


def footer(
    dropped: Sequence[str],
    named: Mapping[str, int],
    kept: str,
    earlier: Sequence[str],
    budget_tokens: int,
    token_estimator: TokenEstimator,
) -> str:
    """Name what was dropped: as many terms as the budget holds, eight of them words, at the least `exact wording`.

    First what earlier footers named; then names, identifiers, paths and addresses as they were written, those that
    were said most often first, then the shorter; then terms.

    A term is a content word or two neighbouring ones, no number. It weighs as often as it was dropped, a name or an
    identifier three times as much, a pair that stands together more than once twice, times log(1 + sentences / those
    that hold it): what stands in every line tells nothing of one. A plain word that was dropped once is named where
    there is nothing else; a term whose words the summary holds never is.

    Args:
        dropped: the sentences left out.
        named: what they name, as `names` gives it.
        kept: the summary without this line.
        earlier: the lists of the footers of the summaries that were condensed.
    """
    weights, written = _weighed(dropped)
    told = [term.strip().rstrip(".") for line in earlier for term in line.split(",") if term.strip()]
    written |= {name.casefold(): name for name in named} | {term.casefold(): term for term in reversed(told)}
    counts = Counter(term.casefold() for term in told)
    del counts[NOTHING_NAMED]
    least = math.log(1 + len(dropped))  # a plain word that was dropped once
    exact = [
        *sorted(counts, key=lambda key: -counts[key]),
        *(name.casefold() for name in sorted(named, key=lambda name: (-named[name], len(name)))),
    ]
    terms = sorted(weights, key=lambda key: -weights[key])[:_MOST_TRIED]
    line, used = FOOTER + NOTHING_NAMED, set(words_in(kept))
    chosen: list[str] = []
    for place, key in enumerate([*exact, *terms]):
        words = words_in(key)
        is_word = place >= len(exact)
        if not words or used.issuperset(words) or (is_word and chosen and weights[key] <= least):
            continue
        if is_word and len(chosen) >= _MOST_TERMS:
            break
        longer = FOOTER + ", ".join([*chosen, written[key]])
        if token_estimator.count([longer])[0] <= budget_tokens:
            line, used = longer, used | set(words)
            chosen.append(written[key])
    return line


def names(texts: Iterable[str]) -> Counter[str]:
    """What texts name, as it is written for the first time: how many of them name it.

    People and things, identifiers, paths and addresses, as the finders of facts find them; no list, and none too long
    for a line.
    """
    uses: Counter[str] = Counter()
    written: dict[str, str] = {}
    for text in texts:
        found = [one for one in statements_in(text) if one.kind in _NAMING and not one.value]
        told = [_end(one.said) if one.kind == "path" else one.said for one in found]
        said = {name.casefold(): name for name in told if len(name) <= _LONGEST_NAME and "," not in name}
        uses.update(written.setdefault(key, name) for key, name in said.items())
    return uses


def _end(path: str) -> str:
    """Of a long path the file and its folder."""
    return path if len(path) <= _LONGEST_PATH else "/".join(path.rstrip("/").split("/")[-2:])


def _weighed(dropped: Sequence[str]) -> tuple[dict[str, float], dict[str, str]]:
    """What each term weighs, and how it is written; pairs that stand together once are none."""
    uses: defaultdict[str, float] = defaultdict(float)
    holders, pairs = Counter[str](), Counter[str]()
    written: dict[str, str] = {}
    for sentence in dropped:
        found = list(_terms(sentence))
        for key, name, weight in found:
            written.setdefault(key, name)
            uses[key] += weight
            pairs[key] += weight == _PAIR_WEIGHT
        holders.update({key for key, _, _ in found})
    weights = {key: use * math.log(1 + len(dropped) / holders[key]) for key, use in uses.items() if pairs[key] != 1}
    return weights, written


def _terms(sentence: str) -> Iterator[tuple[str, str, float]]:
    """The content words of a sentence, and the pairs of neighbouring ones: key, as it is written, weight of a use."""
    stop_words = load_stop_words("english")
    before: tuple[str, str] | None = None
    before_end = 0
    for match in _TERM.finditer(sentence):
        word, key = match[0], match[0].casefold()
        runs = split_words(word)[1]
        yield from ((pair, pair, 1.0) for pair in pairs(runs))
        if runs or len(word) < _SHORTEST_WORD or key in stop_words or key in _FILLERS or _DULL.search(word):
            before = None
            continue
        is_special = _SPECIAL.search(word) or (word[0].isupper() and sentence[: match.start()].strip(_BEFORE_FIRST))
        name = (word.rsplit("/", 1)[-1] if len(word) > _LONGEST_NAME else word) if is_special else key
        yield key, name, _SPECIAL_WEIGHT if is_special else 1.0
        if before and sentence[before_end : match.start()] == " ":
            yield f"{before[0]} {key}", f"{before[1]} {name}", _PAIR_WEIGHT
        before, before_end = (key, name), match.end()
