"""Overrides are read as Hydra reads them; what its grammar refuses is told with what to write instead."""

import shlex

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import OverrideParseException
from hypothesis import assume, example, given
from hypothesis import strategies as st

from lcm.errors import LcmError
from pipelines.config.overrides import asked, no_override

PARSER = OverridesParser.create()


def refused(override: str) -> OverrideParseException | None:
    try:
        PARSER.parse_overrides([override])
    except OverrideParseException as error:
        return error
    return None


def as_told(error: OverrideParseException, remedy: str) -> object:
    """The value of an override written as the shell is given it."""
    lexer = shlex.shlex(no_override(error).partition(f"is not an override: {remedy}")[2], posix=True)
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
    assert "write KEY=VALUE or GROUP=CHOICE" in no_override(refused(override))


KEYS = st.text(st.sampled_from("ab_.-/@+~$0"), max_size=6)
WORDS = (
    "null", "TRUE", "nan", "-inf", "1_0", "007", "-0", "1e3", "1.", "[]", "[a,-1.50,/b]", "[a,[b]]", "a,b",
    "{a:1}", "${a.b}", "~/a", "a/b.c-d", "-a", "0x1", "1.5.2", "/1", "[null,false]", "?", ".5", "1.0", "-", "--",
    "inf/x", "nan-1", "infinity", "on", "1-2", "a-", "_", "range(1,3)",
)  # fmt: skip
VALUES = st.one_of(st.sampled_from(WORDS), st.text(st.sampled_from("ab1._-/,[]{}: '\"\\$()="), max_size=8))


@given(KEYS, st.sampled_from(["=", ""]), VALUES)
@example("~a", "", "")
@example("++a.b", "=", "[1,b]")
@example("group/part@far.away", "=", "choice")
def test_an_override_is_read_as_hydra_reads_it(key: str, equals: str, value: str) -> None:
    text = f"{key}{equals}{value}"
    if refused(text) is not None:
        with pytest.raises(LcmError):
            asked(text)
        return
    try:
        (theirs,) = PARSER.parse_overrides([text])
        value_read = None if theirs.is_sweep_override() else theirs.value()
    except Exception:  # of a function that cannot be called so, which is told when it is composed
        return
    ours = asked(text)
    signs = {"CHANGE": "", "ADD": "+", "FORCE_ADD": "++", "DEL": "~"}
    assert (ours.sign, ours.key, ours.package) == (signs[theirs.type.name], theirs.key_or_group, theirs.package)
    assert (ours.swept is not None) == theirs.is_sweep_override()
    assert repr(ours.value) == repr(value_read)
