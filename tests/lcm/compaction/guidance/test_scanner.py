import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.guidance.scanner import ByteScanner

FRAME = ByteScanner()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("é You must not go.", [(7, 11, "forbidden")]),
        ("If it fails, make sure to check it.", [(13, 25, "obligation")]),
        ("ON_DISK_FULL -> Delete_Oldest", [(0, 12, "obligation")]),
        ("to get it going, then run it", [(22, 25, "obligation"), (22, 25, "obligation")]),
        ("It ran,check it", [(7, 12, "obligation")]),
        ("It ran, check it", []),
        ("The design goal is: preserve order", []),
    ],
)
def test_offsets_are_bytes_and_every_rule_fires(text: str, found: list[tuple[int, int, str]]) -> None:
    assert [finding[:3] for finding in FRAME.read(text).findings] == found


@given(st.text(max_size=200) | st.text(alphabet="you must if do not,;: test ON->\n", max_size=80))
def test_findings_lie_within_the_text_whatever_it_is(text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    assert all(0 <= found.start < found.end <= size for found in FRAME.read(text).findings)
