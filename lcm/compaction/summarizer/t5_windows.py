"""A text as the windows that a T5 reads: whole sentences, wherever a sentence is not longer than a window."""

from collections.abc import Callable, Iterator

from tokenizers import Encoding, Tokenizer

from lcm.compaction.sentences import sentences
from lcm.retrieval.embedder.windows import cut


def windows(text: str, tokenizer: Tokenizer, prefix: str, max_tokens: int) -> list[list[int]]:
    """The tokens of each window: prefix, its share of the text, end token; at most `max_tokens`.

    Windows do not overlap, together they are the text, and each holds as many sentences as it can; only a sentence that
    is longer than a window is cut, between words where that can be. What is blank is left out.
    """

    def encode(piece: str) -> list[int]:
        ids: list[int] = tokenizer.encode(prefix + piece).ids
        return ids

    def fits(piece: str) -> bool:
        return len(encode(piece)) <= max_tokens

    whole = encode(text)
    if len(whole) <= max_tokens:
        return [whole] if text.strip() else []
    room = max_tokens - len(encode(""))
    found = []
    for window in _packed(text, tokenizer, room, fits):
        # Pieces read together may come to a token more than each by itself.
        parts = (
            [window] if fits(window) else _cut(window, tokenizer.encode(window, add_special_tokens=False), room, fits)
        )
        found += [encode(part) for part in parts if part.strip()]
    return found


def _packed(text: str, tokenizer: Tokenizer, room: int, fits: Callable[[str], bool]) -> Iterator[str]:
    window, tokens = "", 0
    for sentence in sentences(text):
        encoding = _bare(sentence, tokenizer)
        for piece in [sentence] if len(encoding) <= room else _cut(sentence, encoding, room, fits):
            count = len(encoding) if piece is sentence else len(_bare(piece, tokenizer))
            if window and tokens + count > room:
                yield window
                window, tokens = "", 0
            window += piece
            tokens += count
    if window:
        yield window


def _bare(text: str, tokenizer: Tokenizer) -> Encoding:
    return tokenizer.encode(text, add_special_tokens=False)


def _cut(text: str, encoding: Encoding, room: int, fits: Callable[[str], bool]) -> list[str]:
    words = encoding.word_ids
    return cut(
        text,
        starts=[start for start, _ in encoding.offsets],
        first_of_word=[i == 0 or word != words[i - 1] for i, word in enumerate(words)],
        budget=room,
        overlap=0,
        fits=fits,
    )
