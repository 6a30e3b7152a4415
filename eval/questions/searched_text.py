"""The texts of a message in which a quotation may stand."""

import json
import unicodedata
from collections.abc import Iterator

from lcm.records.conversation import Message

_DEEPEST = 4
"""How often JSON may stand as text within JSON."""

_PLAIN = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "..."})


def searched_texts(message: Message) -> list[str]:
    """Its words, and its tools with their arguments and results: as JSON text, and the strings within.

    What a model thought is not among them: it said that to nobody.
    """
    texts = {message.content: None}
    for part in message.parts:
        if part.part_type != "reasoning" and part.text:
            texts[part.text] = None
        for value in (part.tool_input, part.tool_output):
            if value:
                texts[f"{part.tool_name} {value}" if part.tool_name else value] = None
                texts |= dict.fromkeys(_strings(value, 0))
    return [text for text in texts if text]


def folded(text: str) -> str:
    """The text as it is compared where it need not be the same to the letter: case, white space, kinds of quotes."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_PLAIN).split()).casefold()


def _strings(text: str, depth: int) -> Iterator[str]:
    """The strings in JSON text, and in strings that are JSON text themselves."""
    if depth < _DEEPEST and text.lstrip()[:1] in ("{", "[", '"'):
        try:
            value = json.loads(text)
        except (RecursionError, ValueError):
            return
        waiting = [value]
        while waiting:
            one = waiting.pop()
            if isinstance(one, str):
                yield one
                yield from _strings(one, depth + 1)
            elif isinstance(one, list):
                waiting += one
            elif isinstance(one, dict):
                waiting += one.values()
