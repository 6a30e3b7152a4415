"""What stands between two marks at the head of a Markdown file: YAML about the file; and which notes are tagged.

Source: libravdb memory 1.4.4.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lcm.context.authored.lines import Line, lines_of
from lcm.records.rules import Rules

_OPENING = "---"
_CLOSING = ("---", "...")
_KEY = "hop_targets:"
_COMMENT = re.compile(r"(?:^|\s)#.*")
_QUOTES = "\"'"

_TAG_KEYS = ("tags:", "tag:", "openclaw:", "memory:")
_FENCES = ("```", "~~~")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_TAG = re.compile(r"(?:^|\s)#[^\W\d_]")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The head of a file."""

    lines: tuple[str, ...]
    """Between the marks."""
    length: int
    """In lines, with both marks."""

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()

    @property
    def hop_targets(self) -> tuple[str, ...]:
        """The ids under the key `hop_targets`, each once: one, some between brackets, or a list in the lines below.

        The original leaves one of the quotes in a bracketed list whose end is quoted, so that its target names
        nothing; here every id is taken out of its own quotes.
        """
        found: list[str] = []
        is_listing = False
        for line in self.lines:
            if line.startswith(_KEY):
                value = _COMMENT.sub("", line.removeprefix(_KEY)).strip()
                is_listing = not value
                found += value.removeprefix("[").removesuffix("]").split(",")
            elif is_listing and line.strip():
                is_listing = line.strip().startswith("- ")
                found += [_COMMENT.sub("", line.strip()[1:])] if is_listing else []
        targets = (target.strip().strip(_QUOTES).strip() for target in found)
        return tuple(dict.fromkeys(filter(None, targets)))


def front_matter(lines: Sequence[Line], rules: Rules) -> FrontMatter | None:
    """The front matter of a file, if it has any.

    Args:
        lines: of the whole file.
        rules: `original` sees a mark only where LF ends it: in a file with CR LF, or one that ends right behind the
            second mark, there is no front matter, and Markdown takes it for headings and rules. `corrected` sees it
            there too, and with blanks behind a mark.
    """
    if not lines or not _is_mark(lines[0], (_OPENING,), rules):
        return None
    for number, line in enumerate(lines[1:], 1):
        if _is_mark(line, _CLOSING, rules):
            return FrontMatter(tuple(inner.text for inner in lines[1:number]), number + 1)
    return None


def _is_mark(line: Line, marks: Sequence[str], rules: Rules) -> bool:
    if rules == "original":
        return line.text in marks and line.end == "\n"
    return line.text.rstrip(" \t") in marks


def is_tagged(text: str) -> bool:
    """Say whether a note is tagged: its front matter names tags or the memory, or a `#tag` stands in its words.

    What stands between fences or in a heading is no tag, nor what starts with another character than a letter.
    """
    lines = lines_of(text.removeprefix("\ufeff"))
    head = front_matter(lines, "corrected")
    if head is not None and any(line.startswith(_TAG_KEYS) for line in head.lines):
        return True
    is_fenced = False
    for line in lines[head.length if head else 0 :]:
        if line.text.lstrip().startswith(_FENCES):
            is_fenced = not is_fenced
        elif not is_fenced and not _HEADING.match(line.text) and _TAG.search(line.text):
            return True
    return False
