"""Which notes of an Obsidian vault are meant for the memory.

Source: libravdb memory 1.4.4.
"""

import re

from lcm.context.authored.front_matter import front_matter
from lcm.context.authored.lines import lines_of

_KEYS = ("tags:", "tag:", "openclaw:", "memory:")
_FENCES = ("```", "~~~")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_TAG = re.compile(r"(?:^|\s)#[^\W\d_]")


def is_tagged(text: str) -> bool:
    """Say whether a note is tagged: its front matter names tags or the memory, or a `#tag` stands in its words.

    What stands between fences or in a heading is no tag, nor what starts with another character than a letter.
    """
    lines = lines_of(text.removeprefix("\ufeff"))
    head = front_matter(lines, "any")
    if head is not None and any(line.startswith(_KEYS) for line in head.lines):
        return True
    is_fenced = False
    for line in lines[head.length if head else 0 :]:
        if line.text.lstrip().startswith(_FENCES):
            is_fenced = not is_fenced
        elif not is_fenced and not _HEADING.match(line.text) and _TAG.search(line.text):
            return True
    return False
