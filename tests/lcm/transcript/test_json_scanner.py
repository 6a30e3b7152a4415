"""Documents read piece by piece are what json.loads reads whole."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.transcript.json_scanner import MAX_DEPTH, JsonError, Member, members, parse
from tests.lcm.store.contents import json_values

documents = st.lists(json_values, max_size=4) | st.dictionaries(st.text(max_size=3), json_values, max_size=4)


def chunks(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


@given(documents, st.integers(1, 9), st.sampled_from([None, 0, 3]))
def test_a_document_is_given_whole_whatever_the_chunks(document: object, size: int, indent: int | None) -> None:
    found: list | dict = [] if isinstance(document, list) else {}
    for member in members(chunks(json.dumps(document, indent=indent), size)):
        if isinstance(found, list):
            assert (member.key, member.is_element) == (None, True)
            found.append(member.value)
        elif member.is_element:
            found.setdefault(member.key, []).append(member.value)
        else:
            found[member.key] = member.value
    assert json.dumps(found) == json.dumps(document)


def test_each_value_has_the_line_where_it_begins() -> None:
    text = '{\n "a": [\n  1,\n\n  {"b":\n 2}],\n "c": []\n, "d": 3}'
    assert list(members(chunks(text, 2))) == [
        Member(3, "a", 1, True),
        Member(5, "a", {"b": 2}, True),
        Member(7, "c", [], False),
        Member(8, "d", 3, False),
    ]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_number_cut_by_a_chunk_is_not_taken_for_a_shorter_one(size: int) -> None:
    assert [m.value for m in members(chunks("[1234567, -1.25e-3, 12]", size))] == [1234567, -0.00125, 12]
    assert [m.value for m in members(chunks("1234567", size))] == [1234567]


@pytest.mark.parametrize(
    ("text", "before", "error"),
    [
        ("[1, 2, oops, 3]", [1, 2], "not JSON: Expecting value"),
        ('[1, {"a": ', [1], "not JSON: "),
        ("[1 2]", [1], "not JSON: expected ',' or ']', got '2'"),
        ("[1", [1], "not JSON: expected ',' or ']', got 'the end'"),
        ('{"a": 1 "b": 2}', [1], "not JSON: expected ',' or '}', got '\"'"),
        ('{"a": [1, 2}', [1, 2], "not JSON: expected ',' or ']', got '}'"),
        ("{1: 2}", [], "not JSON: expected '\"', got '1'"),
        ('{"a": 1,}', [1], "not JSON: expected '\"', got '}'"),
        ("[1] [2]", [1], "not JSON: more text after the end"),
        ("", [], "not JSON: Expecting value"),
        ("[" + "9" * 5000 + "]", [], "JSON beyond what can be read: Exceeds the limit"),
        ("[1, " + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1) + "]", [1], "nested deeper than 200"),
        ("[1, " + "[" * 100_000, [1], "JSON beyond what can be read"),
    ],
)
def test_what_stood_before_the_damage_is_given(text: str, before: list, error: str) -> None:
    found = []
    with pytest.raises(JsonError, match=error):
        for member in members(chunks(text, 5)):
            found.append(member.value)  # a list of the members would be lost at the error
    assert found == before


@pytest.mark.parametrize("size", [1, 5, 8, 100])
def test_what_came_before_a_torn_chunk_is_given(size: int) -> None:
    def torn() -> Iterator[str]:
        yield from chunks('{"a": [{"b": "word"}, [1, 2, 3], ', size)
        raise OSError("torn")

    found = []
    with pytest.raises(OSError, match="torn"):
        for member in members(torn()):
            found.append(member.value)
    assert found == [{"b": "word"}, [1, 2, 3]]


LONG: list[Any] = ["x" * 500, {"a": '"}' * 200}, [["\\", '\\"', {}] * 60, "\n" * 300], {"b": [{"c": 1}] * 100}]


@pytest.mark.parametrize("long", LONG)
@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_value_too_long_is_passed_over(
    long: Any, size: int, indent: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lcm.transcript.json_scanner.MAX_VALUE_CHARACTERS", 100)
    told = "a value of more than 16 Mi characters"
    listed = json.dumps([1, long, {"d": 2}], indent=indent)
    found = list(members(chunks(listed, size)))
    if size < 100:
        assert [(one.value, one.problem) for one in found] == [(1, ""), (None, told), ({"d": 2}, "")]
    else:  # what is there already is read
        assert [one.value for one in found] == [1, long, {"d": 2}]
    assert found[2].line == 1 + listed[: listed.rindex("{")].count("\n")
    held = members(chunks(json.dumps({"a": long, "b": 3}, indent=indent), 7))
    assert {one.key: one.value for one in held if not one.problem}["b"] == 3


def test_a_value_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lcm.transcript.json_scanner.MAX_VALUE_CHARACTERS", 100)
    for cut in ('[1, "' + "x" * 500, "[1, [" + "[]," * 200, '[1, "' + "x" * 500 + "\\"):
        found = []
        with pytest.raises(JsonError, match="a value of more than 16 Mi characters that does not end"):
            for member in members(chunks(cut, 7)):
                found.append(member.value)  # a list of the members would be lost at the error
        assert found == [1]


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1])
def test_nesting_has_a_limit(depth: int) -> None:
    text = '{"a":' * depth + "1" + "}" * depth
    if depth > MAX_DEPTH:
        with pytest.raises(JsonError, match="nested deeper"):
            parse(text)
    else:
        assert json.dumps(parse(text), separators=(",", ":")) == text
    assert parse("[" + "[]," * 300 + "[]]") == [[]] * 301
