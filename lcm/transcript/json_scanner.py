"""One JSON value after another from text that arrives in chunks: a long list is never whole in memory."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

MAX_VALUE_CHARACTERS = 16 * 2**20
"""A value longer than this is not read; a list's elements are values of their own."""

MAX_DEPTH = 200
"""Deeper nesting is not read: what can be parsed must also be written again."""

_LONGEST_TOKEN = len("\\ud83d\\ude00")
"""How far before the end of the text an error may stand that more text mends."""

_DECODER = json.JSONDecoder()
_WHITE_SPACE = re.compile(r"[ \t\n\r]*")
_BETWEEN, _WITHIN = re.compile(r'[^"\[\]{}]*'), re.compile(r'[^"\\]*')
"""What says nothing of where a value ends, between strings and within one."""


class JsonError(ValueError):
    """What stands there is not JSON, or not JSON that can be read."""


class _TooLongError(JsonError):
    pass


class Member(NamedTuple):
    """A value of the outermost object or array of a document."""

    line: int
    """Where it begins, from 1."""
    key: str | None
    """None in an array."""
    value: Any
    is_element: bool
    """One of a list: of the array itself, or of the list under `key`."""
    problem: str = ""
    """Why it is too long to be read, and was passed over; its value is None."""


def parse(text: str) -> Any:
    """Parse one value.

    Raises:
        JsonError: if it is not JSON, is nested too deeply, or holds a number of thousands of digits.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as err:
        raise JsonError(f"not JSON: {err.msg} (character {err.pos + 1})") from err
    except (RecursionError, ValueError) as err:
        raise JsonError(f"JSON beyond what can be read: {err}") from err
    _require_shallow(text, value)
    return value


def members(chunks: Iterator[str]) -> Iterator[Member]:
    """Read a document's outermost value piece by piece; a list under a key of an object comes element by element.

    An empty list under a key comes as a value of its own. A value that is neither object nor array comes alone, with
    no key.

    Raises:
        JsonError: at the first place that is not JSON; what stood before it has been given.
    """
    scanner = _Scanner(chunks)
    match scanner.peek():
        case "[":
            yield from _elements(scanner, None)
        case "{":
            yield from _members_of_object(scanner)
        case _:
            yield Member(scanner.line, None, scanner.value(), False)
    if scanner.peek():
        raise JsonError("not JSON: more text after the end")


def _elements(scanner: "_Scanner", key: str | None) -> Iterator[Member]:
    """The values of an array: of the document itself, or of one under a key of it."""
    scanner.expect("[")
    is_done = scanner.skips("]")
    while not is_done:
        scanner.peek()
        line = scanner.line
        value, problem = scanner.value_or_problem()
        yield Member(line, key, value, True, problem)
        is_done = scanner.expect(",]") == "]"


def _members_of_object(scanner: "_Scanner") -> Iterator[Member]:
    scanner.expect("{")
    is_done = scanner.skips("}")
    while not is_done:
        line = scanner.line
        key = scanner.value() if scanner.peek() == '"' else scanner.expect('"')
        scanner.expect(":")
        if scanner.peek() == "[":
            held = _elements(scanner, key)
            yield next(held, Member(line, key, [], False))
            yield from held
        else:
            value, problem = scanner.value_or_problem()
            yield Member(line, key, value, False, problem)
        is_done = scanner.expect(",}") == "}"
        scanner.peek()


class _Scanner:
    def __init__(self, chunks: Iterator[str]) -> None:
        self.line = 1
        self._chunks = chunks
        self._torn: Exception | None = None
        """Why no more chunks come."""
        self._buffer = ""
        self._at = 0

    def peek(self) -> str:
        """The next character that is not white space, left where it is; empty at the end."""
        while True:
            space = _WHITE_SPACE.match(self._buffer, self._at)
            assert space is not None  # it matches the empty text too
            self.line += space[0].count("\n")
            self._at = space.end()
            if self._at < len(self._buffer) or not self._extend(1):
                return self._buffer[self._at : self._at + 1]

    def expect(self, characters: str) -> str:
        """Take one of the characters.

        Raises:
            JsonError: if another one comes.
        """
        found = self.peek()
        if not found or found not in characters:
            raise JsonError(f"not JSON: expected {' or '.join(map(repr, characters))}, got {found or 'the end'!r}")
        self._at += 1
        return found

    def skips(self, character: str) -> bool:
        """Take the character if it is the next; whether it was."""
        return self.peek() == character and bool(self.expect(character))

    def value_or_problem(self) -> tuple[Any, str]:
        """Take one whole value; one that is too long is passed over, and told."""
        try:
            return self.value(), ""
        except _TooLongError as error:
            self._pass_over()
            return None, str(error)

    def _pass_over(self) -> None:
        """Take an object, an array or a string, and keep nothing of it."""
        depth, silent = 0, _BETWEEN
        while True:
            passed = silent.match(self._buffer, self._at)
            assert passed is not None  # it matches the empty text too
            self.line += passed[0].count("\n")
            self._at = passed.end()
            found = self._buffer[self._at : self._at + 1]
            width = 2 if found == "\\" else 1
            if self._at + width > len(self._buffer):
                if not self._extend(width):
                    raise JsonError("a value of more than 16 Mi characters that does not end")
                continue
            self._at += width
            if found == '"':
                silent = _WITHIN if silent is _BETWEEN else _BETWEEN
            elif silent is _BETWEEN:
                depth += 1 if found in "[{" else -1
            if depth <= 0 and silent is _BETWEEN:
                return

    def value(self) -> Any:
        """Take one whole value, reading on for as long as it may only be cut off."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as err:
                is_cut_off = err.pos > len(self._buffer) - _LONGEST_TOKEN or err.msg.startswith("Unterminated string")
                if not is_cut_off:
                    raise JsonError(f"not JSON: {err.msg}") from err
                if len(self._buffer) - self._at > MAX_VALUE_CHARACTERS:
                    raise _TooLongError("a value of more than 16 Mi characters") from err
                if not self._extend(max(1, len(self._buffer) - self._at)):
                    raise JsonError(f"not JSON: {err.msg}") from err
            except (RecursionError, ValueError) as err:
                raise JsonError(f"JSON beyond what can be read: {err}") from err
            else:
                # A number may go on behind the buffer, also where `1.5` is what can be read of `1.5e-`.
                may_go_on = isinstance(value, int | float) and end + len("e-") >= len(self._buffer)
                if not may_go_on or not self._extend(1):
                    break
        text = self._buffer[self._at : end]
        _require_shallow(text, value)
        self.line += text.count("\n")
        self._at = end
        return value

    def _extend(self, characters: int) -> bool:
        """Read at least so many characters more, forgetting what was taken; False at the end of the text.

        Where the chunks end in an error, what came before it is read first.
        """
        pieces: list[str] = []
        try:
            while characters > 0 and self._torn is None and (piece := next(self._chunks, "")):
                pieces.append(piece)
                characters -= len(piece)
        except (OSError, ValueError) as error:
            self._torn = error
        if pieces:
            self._buffer, self._at = "".join([self._buffer[self._at :], *pieces]), 0
        elif self._torn is not None:
            raise self._torn
        return bool(pieces)


def _require_shallow(text: str, value: Any) -> None:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise JsonError(f"JSON beyond what can be read: nested deeper than {MAX_DEPTH} levels")
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
