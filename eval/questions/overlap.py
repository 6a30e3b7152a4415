"""How many of its words a question shares with what answers it: where they are many, words alone find it."""

from collections.abc import Sequence

from lcm.retrieval.ranking.evidence.text_facts import content_words

OF_OVERLAP = "of their content words with their evidence"
"""What a note of the mean overlap ends with: it is true of the evidence that the questions came with, and no other."""


def overlap(question: str, evidence: Sequence[str]) -> float | None:
    """The share of a question's distinct content words that a text of its evidence holds, mean over these texts.

    Words as text indexes cut them, without stop words and without stemming.

    Returns:
        In [0, 1]; None where the question has no content words, or there is no evidence.
    """
    asked = set(content_words(question))
    if not asked or not evidence:
        return None
    return sum(len(asked & set(content_words(text))) / len(asked) for text in evidence) / len(evidence)
