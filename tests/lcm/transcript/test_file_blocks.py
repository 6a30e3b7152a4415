"""Files that are written out in a message."""

import pytest

from lcm.transcript.file_blocks import file_blocks


@pytest.mark.parametrize(
    ("opening", "name"),
    [
        ('<file name="a">', "a"),
        ("<file NAME='a b'>", "a b"),
        ("<file name = a>", "a"),
        ('<file name="a" name="b">', "b"),
        ('<file name="a" name="">', "a"),
        ('<file name="a" name=" ">', "a"),
        ('<file name="">', None),
        ("<file>", None),
    ],
)
def test_the_last_name_that_is_not_empty_counts(opening: str, name: str | None) -> None:
    (block,) = file_blocks(f"see {opening}words</file> there")
    assert (block.name, block.body) == (name, "words")
