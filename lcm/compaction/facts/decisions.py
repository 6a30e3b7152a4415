"""What was settled."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lcm.compaction.facts.statement import ReadText, Statement
from lcm.compaction.facts.wording import gist, is_negative

_DECIDES = re.compile(
    r"\b(?:decided (?:to|on|that|against|not to)|decision(?: is|:| was)|have chosen|we chose|i chose|settled on|"
    r"opted (?:for|to)|agreed(?: on| to| that|:)|(?:let's|let us|we'll|we will|i'll|i will|i'm going to|we're going to|"
    r"we are going to|i am going to) (?:go with|go for|stick (?:with|to)|keep|use|switch to|do|take|skip|drop|"
    r"adopt)|"
    r"going with|sticking with|go ahead with|we're keeping|we keep|signed off on|the plan is(?: now)? to|final answer|"
    r"(?:instead of|rather than) \w+[^.?!]*\bwe\b|made up (?:my|our) mind|(?:is|are) (?:in|out) of scope)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\?\s*$|^\W*(?:should|shall|could|would|if|whether|maybe|perhaps|what if|have (?:you|we))\b|"
    r"\b(?:haven't|not yet|need to) decide",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Decisions:
    """Sentences with the words of a decision ("decided to", "let's go with", "we'll keep") that ask nothing."""

    def find(self, read: ReadText) -> Iterator[Statement]:
        for start, end in read.sentences:
            said = read.text[start:end]
            if _DECIDES.search(said.replace("’", "'")) and not _OPEN.search(said) and (about := gist(said)):
                yield Statement("decision", about, "no" if is_negative(said) else "yes", said, start, end)
