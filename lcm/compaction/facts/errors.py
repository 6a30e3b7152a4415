"""What went wrong, in the words of the program that told it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lcm.compaction.facts.statement import ReadText, Statement
from lcm.compaction.facts.wording import folded

_ERROR = re.compile(
    r"(?<![\w.])(?:[A-Za-z_][\w.]{0,80}(?:Error|Exception|Warning|Timeout)\b[:(][^\n]{1,300}"
    r"|(?:fatal|panic|error|ERROR|Error|FATAL)(?:\[\w+\])?: [^\n]{1,300}"
    r"|FAILED [\w./:\[\]-]+[^\n]{0,200}"
    r"|[^\n:]{0,120}: (?:command not found|No such file or directory|[Pp]ermission denied|[Cc]onnection refused)"
    r"|HTTP(?:/\d(?:\.\d)?)? [45]\d\d[^\n]{0,80})"
)
_CODE = re.compile(r"[{;,(]$|\$\{|\w\(\w+: |\binstanceof\b|\bany\)")
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Errors:
    """Lines that name an error and say what it is; words about errors are none."""

    def find(self, read: ReadText) -> Iterator[Statement]:
        for match in _ERROR.finditer(read.text):
            said = match[0][:_LONGEST].rstrip(" .`'\")")
            if " " in said and not _CODE.search(said) and read.tells(match.start()):
                yield Statement("error", folded(said), "", said, match.start(), match.start() + len(said))
