"""What is kept of sources, history and relations; the vectors of the original are in tests/golden."""

from lcm.writing.lifecycle import capped


def test_caps_leave_what_is_no_list_alone() -> None:
    assert capped({"sources": "x" * 30, "relations": None}) == {"sources": "x" * 30, "relations": None}
