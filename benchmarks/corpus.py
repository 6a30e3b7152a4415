"""Seeded text, transcripts, queries and vectors that look like recorded ones.

Words follow Zipf's law with the English stop words in front, lengths are log-normal, vectors lie near a space of few
dimensions, as those of texts do: drawn evenly in all of them, no vector would have neighbours.
"""

import functools
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

from lcm.protocols.models import Vectors
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from lcm.text import load_stop_words
from lcm.transcript.parts import decompose

START = datetime(2026, 1, 1, tzinfo=UTC)
MEAN_CHARACTERS = 300
"""Of a message's words: the median of the log-normal lengths."""
LINE_CHARACTERS = 700
"""As above, for messages that take about 1 KB as a line of JSON."""

_LENGTH_SIGMA = 0.7
_SHORTEST, _LONGEST = 8, 20_000  # characters
_WORDS = 20_000
_MEAN_WORD = 6.9  # characters, the space included
_AT_ONCE = 1000  # messages drawn together
_SYLLABLES = (
    "ba", "bren", "cor", "da", "del", "dor", "fi", "gan", "hal", "ja", "kel", "ku", "lan", "mi", "mor", "ne", "no",
    "pra", "ri", "ros", "sa", "sten", "ta", "tor", "ul", "ve", "wen", "zo",
)  # fmt: skip
_ACCENTED_EVERY = 100  # words
_TOOLS = ("search", "read_file", "run_tests")
_SESSION_MESSAGES = 40
_LATENT_DIMENSIONS, _NOISE = 32, 0.5
_QUERY_WORDS = (4, 12)


def native_messages(seed: int, median_characters: int = MEAN_CHARACTERS) -> Iterator[dict[str, Any]]:
    """Messages as OpenAI chat records them, without end.

    Users and assistants in turn; every fifth assistant calls one or two tools, whose results follow; every tenth
    message has its text in two or three blocks.
    """
    rng = np.random.default_rng(seed)
    texts = _texts(rng, median_characters)
    for number in count():
        yield {"role": "user", "content": _blocks(next(texts), number)}
        if number % 5:
            yield {"role": "assistant", "content": _blocks(next(texts), number + 5)}
            continue
        calls = [
            {
                "id": f"call_{number}_{i}",
                "type": "function",
                "function": {"name": _TOOLS[i], "arguments": json.dumps({"query": next(texts)[:60]})},
            }
            for i in range(1 + number % 2)
        ]
        yield {"role": "assistant", "content": next(texts), "tool_calls": calls}
        for call in calls:
            yield {"role": "tool", "tool_call_id": call["id"], "content": next(texts)}


def transcript(messages: int, seed: int, name: str = "talk", median_characters: int = MEAN_CHARACTERS) -> Transcript:
    """So many messages of one conversation, a minute apart, a new session every 40."""
    return Transcript(
        conversation_id=name,
        messages=tuple(
            _message(native, number, name)
            for number, native in enumerate(islice(native_messages(seed, median_characters), messages))
        ),
    )


def write_chat(path: Path, size_bytes: int, seed: int) -> int:
    """Write a file of JSON lines in OpenAI's chat format; returns how many messages it holds."""
    written = lines = 0
    with path.open("w", encoding="utf-8") as file:
        for native in native_messages(seed, LINE_CHARACTERS):
            if written >= size_bytes:
                break
            line = json.dumps(native, ensure_ascii=False) + "\n"
            file.write(line)
            written += len(line.encode())
            lines += 1
    return lines


def texts(number: int, seed: int) -> list[str]:
    """What messages say, without the messages."""
    return list(islice(_texts(np.random.default_rng([seed, 3]), MEAN_CHARACTERS), number))


def queries(number: int, seed: int) -> list[Query]:
    """Questions of a few words, asked when everything has been said."""
    rng = np.random.default_rng([seed, 1])
    vocabulary, cumulated = _vocabulary()
    lengths = rng.integers(*_QUERY_WORDS, number)
    asked_at = START + timedelta(days=365 * 10)
    return [
        Query(f"q{i}", " ".join(vocabulary[place] for place in _draw(rng, cumulated, length)) + "?", asked_at)
        for i, length in enumerate(lengths.tolist())
    ]


def unit_vectors(number: int, dim: int, seed: int) -> Vectors:
    """Vectors near a space of 32 dimensions, the same for every `seed`, drawn anew for each."""
    space = np.random.default_rng(dim).standard_normal((min(_LATENT_DIMENSIONS, dim), dim), dtype=np.float32)
    rng = np.random.default_rng([seed, 2])
    rows = rng.standard_normal((number, len(space)), dtype=np.float32) @ space
    rows += _NOISE * rng.standard_normal(rows.shape, dtype=np.float32)
    unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _message(native: dict[str, Any], number: int, name: str) -> Message:
    said = decompose(native)
    return Message(
        message_id=f"{name}:{number}",
        role=said.role,
        content=said.content,
        session_id=f"{name}:session {number // _SESSION_MESSAGES}",
        created_at=START + timedelta(minutes=number),
        parts=said.parts,
        envelope=said.envelope,
    )


def _blocks(text: str, number: int) -> str | list[dict[str, str]]:
    """The text as it is, or every tenth time cut into two or three blocks."""
    if number % 10:
        return text
    size = len(text) // (2 + number // 10 % 2) + 1
    return [{"type": "text", "text": text[start : start + size]} for start in range(0, len(text), size)]


def _texts(rng: np.random.Generator, median_characters: int) -> Iterator[str]:
    vocabulary, cumulated = _vocabulary()
    while True:
        characters = rng.lognormal(np.log(median_characters), _LENGTH_SIGMA, _AT_ONCE).clip(_SHORTEST, _LONGEST)
        ends = np.cumsum(np.ceil(characters / _MEAN_WORD).astype(int))
        words = [vocabulary[place] for place in _draw(rng, cumulated, int(ends[-1]))]
        for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            yield " ".join(words[start:end]).capitalize() + "."


@functools.cache
def _vocabulary() -> tuple[list[str], np.ndarray[Any, np.dtype[np.float64]]]:
    """Words, the most frequent first, and how likely each or one before it is."""
    rng = np.random.default_rng(0)
    syllables = rng.integers(len(_SYLLABLES), size=(2 * _WORDS, 4)).tolist()
    lengths = rng.integers(2, 5, len(syllables)).tolist()
    made = ["".join(_SYLLABLES[i] for i in row[:length]) for row, length in zip(syllables, lengths, strict=True)]
    accented = [f"{word}é" if i % _ACCENTED_EVERY == 0 else word for i, word in enumerate(made)]
    words = list(dict.fromkeys([*sorted(load_stop_words("english")), *accented]))[:_WORDS]
    weights = 1 / np.arange(1, len(words) + 1)
    return words, np.cumsum(weights / weights.sum())


def _draw(rng: np.random.Generator, cumulated: np.ndarray[Any, np.dtype[np.float64]], number: int) -> list[int]:
    places: list[int] = np.searchsorted(cumulated[:-1], rng.random(number)).tolist()
    return places
