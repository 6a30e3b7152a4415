import pytest

from lcm.records.conversation import LargeFile
from lcm.transcript.large_files import file_reference, tool_output_reference


def large_file(name: str | None, mime_type: str | None, explored: str) -> LargeFile:
    return LargeFile("file_0123456789abcdef", 0, 0, name, mime_type, 12_345, explored)


@pytest.mark.parametrize("nothing", ["", " \n"])
def test_what_a_file_is_not_told_is_said_to_be_unknown(nothing: str) -> None:
    for file in (large_file(nothing, nothing, nothing), large_file(None, None, nothing)):
        head, _, explored = file_reference(file).partition("\n\n")
        assert head == "[LCM File: file_0123456789abcdef | unknown | unknown | 12,345 bytes]"
        assert explored == "Exploration Summary:\n(no summary available)"


def test_what_a_file_is_told_stands_trimmed() -> None:
    assert file_reference(large_file(" a.txt ", "text/plain", " words ")) == (
        "[LCM File: file_0123456789abcdef | a.txt | text/plain | 12,345 bytes]\n\nExploration Summary:\nwords"
    )


def test_a_result_of_no_named_tool_is_of_an_unknown_one() -> None:
    file = large_file("read.txt", "text/plain", "words")
    assert "| tool=unknown |" in tool_output_reference(file, " ")
    assert "| tool=read |" in tool_output_reference(file, "read ")
