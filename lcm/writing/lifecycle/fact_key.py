"""The key of a replaceable truth: two documents of one key speak of the same thing.

Source: memory-lancedb-pro, deriveFactKey.
"""

import re

from lcm.javascript import WHITE_SPACE, trim, utf16_length
from lcm.writing.lifecycle.categories import VERSIONED

MAX_TOPIC_LENGTH = 120
"""UTF-16 units of what stands before the separator."""

_BEFORE_COLON = re.compile(r"([^\n\r\u2028\u2029]+?)[:：]")
# White space before an arrow is not of the topic, so that a full stop there is a final one; before a colon it is.
_BEFORE_ARROW = re.compile(rf"([^\n\r\u2028\u2029]{{1,{MAX_TOPIC_LENGTH}}}?)[{WHITE_SPACE}]*(?:->|=>)")
_BLANKS = re.compile(f"[{WHITE_SPACE}]+")


def fact_key(category: str, abstract: str) -> str | None:
    """The category and the topic of a preference or an entity; None for another category, or where no topic is left.

    The topic is what stands before the first colon, else before the first arrow, of 1 to 120 units on the first line;
    else the whole abstract. Case, runs of white space and final full stops, "!" and "?" do not tell topics apart.
    """
    if category not in VERSIONED:
        return None
    topic = _topic(trim(abstract))
    normal = trim(_BLANKS.sub(" ", topic.lower()).rstrip("。.!?"))
    return f"{category}:{normal}" if normal else None


def _topic(abstract: str) -> str:
    for pattern in (_BEFORE_COLON, _BEFORE_ARROW):
        found = pattern.match(abstract)
        if found and utf16_length(found[1]) <= MAX_TOPIC_LENGTH:
            return found[1]
    return abstract
