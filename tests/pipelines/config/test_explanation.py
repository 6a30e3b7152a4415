"""What Hydra's grammar refuses is told with what to write instead."""

import shlex

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import OverrideParseException
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pipelines.config.explanation import explain

PARSER = OverridesParser.create()


def refused(override: str) -> OverrideParseException | None:
    try:
        PARSER.parse_overrides([override])
    except OverrideParseException as error:
        return error
    return None


@given(st.text(st.sampled_from("ab /.,=()[]{}'\"\\#!&;:~^`*%@|<>ü"), min_size=1, max_size=12))
@example("/a(b).jsonl")
@example("/a=b/c#.jsonl")
@example('/o\'neil "x"\\')
@example('/a\\"b')
@example("/a\\")
def test_a_path_that_is_refused_is_told_as_it_is_to_be_written(path: str) -> None:
    path = f"/{path}"
    assume((error := refused(f"dataset.file={path}")) is not None)
    remedy = explain(error).partition("is not an override: quote its value, ")[2]
    lexer = shlex.shlex(remedy, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    assert [written.value() for written in PARSER.parse_overrides([lexer.get_token()])] == [path]


@pytest.mark.parametrize("override", ["a", "a=[1,(", "a='x", "x=="])
def test_what_is_no_text_is_told_the_form_of_an_override(override: str) -> None:
    assert "write KEY=VALUE or GROUP=CHOICE" in explain(refused(override))
