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


def as_told(error: OverrideParseException, remedy: str) -> object:
    """The value of an override written as the shell is given it."""
    lexer = shlex.shlex(explain(error).partition(f"is not an override: {remedy}")[2], posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    (written,) = PARSER.parse_overrides([lexer.get_token()])
    return written.value()


@given(st.text(st.sampled_from("ab /.,=()[]{}'\"\\#!&;:~^`*%@|<>ü"), min_size=1, max_size=12))
@example("/a(b).jsonl")
@example("/a=b/c#.jsonl")
@example('/o\'neil "x"\\')
@example('/a\\"b')
@example("/a\\")
def test_a_path_that_is_refused_is_told_as_it_is_to_be_written(path: str) -> None:
    path = f"/{path}"
    assume((error := refused(f"dataset.file={path}")) is not None)
    assert as_told(error, "quote its value, ") == path


@given(st.lists(st.text(st.sampled_from("ab /.=()\\#!&;:~^`*%@|<>ü"), min_size=1, max_size=8), min_size=1, max_size=3))
@example(["a b(c).jsonl", "x\\"])
def test_paths_of_a_list_that_is_refused_are_told_as_they_are_to_be_written(names: list[str]) -> None:
    paths = [f"/{name}".strip() for name in names]
    assume((error := refused(f"dataset.paths=[{','.join(paths)}]")) is not None)
    assert as_told(error, "quote its values, ") == paths


@pytest.mark.parametrize("override", ["a", "a=[1,(", "a='x", "x=="])
def test_what_is_no_text_is_told_the_form_of_an_override(override: str) -> None:
    assert "write KEY=VALUE or GROUP=CHOICE" in explain(refused(override))
