"""Files that are written out in a message."""

from lcm.transcript.large_files import file_blocks

NAMES = {
    '<file name="a">': "a",
    "<file NAME='a b'>": "a b",
    "<file name = a>": "a",
    '<file name="a" name="b">': "b",
    '<file name="a" name="">': "a",
    '<file name="a" name=" ">': "a",
    '<file name="">': None,
    "<file>": None,
}


def test_the_last_name_that_is_not_empty_counts() -> None:
    found = {opening: file_blocks(f"see {opening}words</file> there") for opening in NAMES}
    assert {opening: [(one.name, one.body) for one in blocks] for opening, blocks in found.items()} == {
        opening: [(name, "words")] for opening, name in NAMES.items()
    }
