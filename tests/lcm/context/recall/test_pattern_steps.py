"""How long patterns become when they are compiled."""

from lcm.context.recall.grep import written_out_steps

STEPS = {
    "": 0,
    "abc": 3,
    "a{1000}": 1000,
    "a{2,5}b": 5 + 1,
    "a{3,}": 3,
    "[a-z]{4}": 4,
    r"\{4}": 1 + 2,
    "a{,7}": 7,
    "[{4}]": 1,
    "a{4}{5}": 20,
    "a{b}": 4,
    "(?:a{10}){10}": 10 * (10 + 1 + 1),  # the colon and the group count too
}


def test_repetitions_are_counted_as_the_compiler_writes_them_out() -> None:
    assert {pattern: written_out_steps(pattern) for pattern in STEPS} == STEPS


def test_a_few_characters_cannot_be_billions_of_steps() -> None:
    assert written_out_steps("(?:(?:(?:a{1000}){1000}){1000}){1000}") > 1000**4
