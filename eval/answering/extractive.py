"""An answer in a sentence of what was shown: no model, the same every time. A floor, and no more.

Source: ours.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eval.answering.answerer import Excerpt
from lcm.checks import check_range
from lcm.context.answerer import counted_in, question_words, ranked_sentences, rarity, words_of


@dataclass(frozen=True, slots=True)
class Extractive:
    """Quotes the sentence that is nearest to the question by BM25; says nothing where that speaks of too little of it.

    A ranking is believed: score / rank ** rank_discount. Else all rankings that show the same texts would answer alike.

    Of options it takes the one whose own words, those that not all options have, are best known to the excerpts: by the
    mean rarity of a word in the excerpts where it stands there, 0 where it does not; of equal ones the first.
    """

    least_covered: float = 0.2
    """The share of the question's words that the sentence must hold."""
    rank_discount: float = 0.5
    """How soon a sentence of what was ranked lower is held back; 0: not at all."""

    def __post_init__(self) -> None:
        check_range(self, "least_covered", ge=0, le=1)
        check_range(self, "rank_discount", ge=0)

    def answer(self, question: str, excerpts: Sequence[Excerpt]) -> str:
        ranked = ranked_sentences([one.text for one in excerpts], question_words(question))
        if not ranked:
            return ""
        best = max(ranked, key=lambda one: one.score / (excerpts[one.source].rank or 1) ** self.rank_discount)
        return best.text if best.covered >= self.least_covered else ""

    def choose(self, question: str, excerpts: Sequence[Excerpt], options: Mapping[str, str]) -> str:
        said = [words for excerpt in excerpts for _, words in counted_in(excerpt.text)]
        known = {word for words in said for word in words}
        of_option = {name: set(words_of(text)) for name, text in options.items()}
        of_all = set.intersection(*of_option.values()) if of_option else set()

        def support(name: str) -> float:
            own = of_option[name] - of_all
            weight = rarity(own & known, said)
            return math.fsum(weight.values()) / max(1, len(own))

        best = max(options, key=support, default="")
        return best if best and support(best) > 0 else ""
