"""The end of a conversation, cut to a number of characters."""

from collections.abc import Sequence

from lcm.encoding import well_formed
from lcm.javascript import utf16_length
from lcm.records import Message


def last_texts(messages: Sequence[Message], max_chars: int) -> list[str]:
    """What was said in the last `max_chars` UTF-16 units, a message a text, in order; the first may lack its begin."""
    texts: list[str] = []
    room = max_chars
    for message in reversed(messages):
        if room <= 0:
            break
        texts.append(last_chars(message.content, room))
        room -= utf16_length(message.content) + 1  # one for the line break between two messages
    return texts[::-1]


def last_lines(messages: Sequence[Message], max_chars: int) -> str:
    """The same for a prompt: `speaker: words`, a message a paragraph."""
    texts = last_texts(messages, max_chars)
    tail = messages[len(messages) - len(texts) :]
    return "\n".join(
        f"{message.author or message.role}: {well_formed(text)}" for message, text in zip(tail, texts, strict=True)
    )


def last_chars(text: str, count: int) -> str:
    """The last `count` UTF-16 units; a character that would be cut in two is left out."""
    if utf16_length(text) <= count:
        return text
    return text.encode("utf-16-le", "surrogatepass")[-2 * count :].decode("utf-16-le", "ignore")
