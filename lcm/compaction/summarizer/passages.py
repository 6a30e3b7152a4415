"""The source of a summary as what it is made of: who said what and when, sentence by sentence."""

import re
from collections import Counter
from dataclasses import dataclass

from lcm.compaction.summarizer.file_operations import FILES
from lcm.compaction.summarizer.footer import FOOTER
from lcm.compaction.summarizer.sentences import sentences

_TIME = re.compile(r"[ \t]*\[(?P<from>\d{4}-\d\d-\d\d[^\[\]\n]{0,40}?)(?P<to> - [^\[\]\n]{1,40})?\]:?[ \t]*")
_LABEL = re.compile(r"(#?\w[\w .'@-]{0,30}#?):[ \t]+(?=\S)")
_LABELLED_SHARE = 0.5  # of the lines: fewer are the keys of code and lists
_CODE_INDENT = re.compile(r"\t|    ")
_CODE_MARK = re.compile(r"[{}\[\]<>;=|\\_]|\w\(")  # a bracket after a space is prose
_CODE_MARK_SHARE = 0.04
_CODE_ENDS = ("{", "}", "(", "[", "]", ";", "=")
_HOUR_LENGTH = len("2026-01-01 00")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a source."""

    text: str
    """Without its speaker, and without white space at its ends."""
    turn: int
    """Which line it stands in."""
    place: int
    """How many lines with words stand before that one, in the source or, where summaries are condensed, in its own."""
    is_prose: bool = True
    """Looks like nothing that a program reads or prints."""
    speaker: str = ""
    time: str = ""
    """As the source writes it; of a range its beginning."""

    @property
    def hour(self) -> str:
        """What two times of one hour share."""
        return self.time[:_HOUR_LENGTH]

    @property
    def label(self) -> str:
        """What stands before the words of its speaker."""
        return f"{self.speaker}: " if self.speaker else ""

    @property
    def hint(self) -> str:
        """What says when it was said."""
        return f"[{self.time}] " if self.time else ""


@dataclass(frozen=True, slots=True)
class Passages:
    """Sentences to choose from, and what earlier summaries said that they left out."""

    sentences: tuple[Sentence, ...]
    footers: tuple[str, ...]
    """What stands behind `Expand for details about: `, in order."""


def read_source(text: str) -> Passages:
    """Read a source.

    A time is `[2026-01-01 00:05 UTC]`, or a range of two, at the beginning of a line: it holds until the next. A
    speaker is what stands before a colon at the beginning of a line, if it stands behind a time, or if half of all
    lines have such a beginning that others share: it holds for its line. The lines of an earlier summary on files and
    on what it left out are no sentences. Code is told from prose by indentation, by what a line ends with, and by more
    than one bracket or operator in 25 characters (round brackets count behind a word alone).
    """
    lines = text.splitlines()
    times = [_TIME.match(line) for line in lines]
    rests = [line[time.end() :] if time else line for line, time in zip(lines, times, strict=True)]
    labels = [_LABEL.match(rest) for rest in rests]
    uses = Counter(label[1] for label in labels if label)
    shared = sum(count for count in uses.values() if count > 1)
    is_dialogue = shared >= _LABELLED_SHARE * sum(1 for rest in rests if rest.strip())
    found: list[Sentence] = []
    footers: list[str] = []
    now, place, is_first = "", 0, False
    for turn, (rest, time, label) in enumerate(zip(rests, times, labels, strict=True)):
        if time:
            now = time["from"]
            place = 0 if time["to"] else place
            is_first = True
        bare = rest.strip()
        if bare.startswith(FOOTER):
            footers.append(bare.removeprefix(FOOTER))
        elif bare and not bare.startswith(FILES):
            speaker = label[1] if label and (is_first or (is_dialogue and uses[label[1]] > 1)) else ""
            words = rest[label.end() :] if label and speaker else bare
            is_indented = not is_first and _CODE_INDENT.match(rest) is not None
            pieces = [piece.strip() for piece in sentences(words)]
            found += [Sentence(p, turn, place, not is_indented and _is_prose(p), speaker, now) for p in pieces]
            is_first = False
            place += 1
    return Passages(tuple(found), tuple(footers))


def _is_prose(sentence: str) -> bool:
    is_marked = len(_CODE_MARK.findall(sentence)) > _CODE_MARK_SHARE * len(sentence)
    return not is_marked and not sentence.endswith(_CODE_ENDS)
