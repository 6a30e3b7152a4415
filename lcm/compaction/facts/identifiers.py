"""Hashes, ids, versions, and names in code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lcm.compaction.facts.statement import ReadText, Statement
from lcm.compaction.facts.wording import label

_OPAQUE = (
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"  # a UUID
    r"|(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,64}"  # a hash
    r"|[A-Z][A-Z0-9]{0,9}-\d{1,8}(?:-\d{1,8})*|[A-Z]{2,3}\d{2,6}"  # a ticket, a train
    r"|(?=[A-Za-z0-9]*\d)[a-z]{2,10}_[A-Za-z0-9]{5,40}"  # an id with its type before it
    r"|v\d+(?:\.\d+){1,3}(?:-[\w.]+)?|\d+\.\d+\.\d+(?:[-+][\w.]+)?"  # a version
    r"|(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])(?!\d+[A-Z]{1,3}\b)[A-Z0-9]{5,12}"  # a reference
)
_IDENTIFIER = re.compile(rf"(?<![\w./#@:-])(?:{_OPAQUE}|\#\d{{1,7}})(?![\w/@-]|\.\w)")
_CODE_NAME = re.compile(r"`([A-Za-z_]\w*(?:[._]\w+)+|[a-z]+(?:[A-Z]\w*)+|[A-Z]\w*[a-z]\w*[A-Z]\w*)(?:\(\))?`")
_SAYS = re.compile(r"(?:\bis(?: now)?|\bwas|[=:])\s*[`'\"*]*$", re.IGNORECASE)
_FILE_END = re.compile(r"\.[a-z]{1,5}$")


@dataclass(frozen=True, slots=True)
class Identifiers:
    """Words that no dictionary has: each is about itself, unless "is", "=" or ":" binds it to a label before it."""

    def find(self, read: ReadText) -> Iterator[Statement]:
        for place in read.places:
            sentence = read.words(place)
            for match in _IDENTIFIER.finditer(sentence):
                before = sentence[: match.start()]
                about = label(before, "") if _SAYS.search(before) else ""
                yield _statement(about, match[0], place[0] + match.start())
            for match in _CODE_NAME.finditer(sentence):
                if not _FILE_END.search(match[1]):
                    yield _statement("", match[1], place[0] + match.start(1))


def _statement(about: str, said: str, start: int) -> Statement:
    return Statement("identifier", about or said, said if about else "", said, start, start + len(said))
