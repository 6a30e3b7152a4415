"""One sentence under reading, and the cues that stand in it."""

from collections.abc import Sequence

from lcm.compaction.guidance.grammar import grammar
from lcm.compaction.guidance.reading import Modality, RuleMatch
from lcm.compaction.guidance.segments import Segment, without_asides
from lcm.compaction.guidance.sentences import Sentence, Word


class SentenceCues:
    """What is known of a sentence while its parts are read from left to right."""

    def __init__(self, sentence: Sentence) -> None:
        self.known = grammar()
        self.is_item = sentence.is_item
        self.words = without_asides(sentence.words)
        self.text = " ".join(word.text for word in self.words)
        self.is_strong = self.on_sentence("strong")
        self.holds = False
        """A condition stood before the part that is read now."""
        self.is_labelled = False
        """The part stands behind a label and a colon."""

    def has(self, cue: str, segment: Segment) -> bool:
        if cue == "condition":
            return self.holds
        if cue == "item":
            return self.is_item
        if cue == "labelled":
            return self.is_labelled
        if cue == "one_off":
            return self.on_sentence(cue) and not self.is_strong
        if cue in self.known.on_sentence:
            return self.on_sentence(cue)
        return self.on_segment(cue, segment)

    def on_sentence(self, cue: str) -> bool:
        return self.known.on_sentence[cue].search(self.text) is not None

    def on_segment(self, cue: str, segment: Segment) -> bool:
        return self.known.on_segment[cue].search(segment.text) is not None

    def is_verb(self, word: str) -> bool:
        return word in self.known.verbs["conduct"] or word in self.known.verbs["work"] or word == "be"


def finding(words: Sequence[Word], first: int, last: int, modality: Modality, rule: str) -> RuleMatch:
    """What the words from the first to the last say, in code points."""
    return RuleMatch(words[first].start, words[min(last, len(words) - 1)].end, modality, rule)
