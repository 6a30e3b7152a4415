"""A text cut into the windows that a model reads."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence


def cut(
    text: str,
    starts: Sequence[int],
    first_of_word: Sequence[bool],
    budget: int,
    overlap: int,
    fits: Callable[[str], bool],
) -> list[str]:
    """Pieces of at most `budget` tokens that together hold every character of `text`.

    A piece read alone may have more tokens than it had in its text; such a piece is shortened until it `fits`, but
    never below one character. Pieces begin and end between words wherever a word is not longer than half a piece.

    Args:
        starts: where each token of `text` begins, in characters, ascending.
        first_of_word: whether that token begins a word.
        overlap: how many tokens of a piece the next one repeats, more where a word would be split.
    """
    pieces = []
    begin = 0  # of the piece, in characters
    token = 0  # the first one of the piece
    covered = 0  # characters that pieces hold
    while True:
        end_token = min(token + budget, len(starts))
        if end_token < len(starts):
            end_token = _word_start(first_of_word, end_token, token + budget // 2)
        end = _end(text, starts, begin, end_token)
        while end - begin > 1 and not fits(text[begin:end]):
            end_token = max(end_token - 1, token + 1)
            shorter = _end(text, starts, begin, end_token)
            end = shorter if shorter < end else begin + (end - begin) // 2
        if end <= covered:  # shortened so far that it says nothing new: begin where the last one ends
            begin, token = covered, bisect_left(starts, covered)
            continue
        pieces.append(text[begin:end])
        covered = end
        if end == len(text):
            return pieces
        # The next piece starts `overlap` tokens back, yet always beyond the start of this one and not beyond its end.
        following = bisect_left(starts, end)
        earliest = bisect_right(starts, begin)
        wanted = _word_start(first_of_word, following - overlap, following - 2 * overlap)
        token = max(wanted, earliest)
        begin = min(starts[token], end) if token < len(starts) else end
        token = bisect_left(starts, begin)


def _end(text: str, starts: Sequence[int], begin: int, end_token: int) -> int:
    """Where the token after the piece begins, so that the space between them belongs to the piece."""
    return max(starts[end_token], begin + 1) if end_token < len(starts) else len(text)


def _word_start(first_of_word: Sequence[bool], token: int, lowest: int) -> int:
    """The last token in (lowest, token] that begins a word; `token` itself if none does."""
    for candidate in range(token, max(lowest, 0), -1):
        if first_of_word[candidate]:
            return candidate
    return token
