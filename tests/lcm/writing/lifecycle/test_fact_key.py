"""The key of a replaceable truth; the vectors of the original are in tests/golden."""

from lcm.writing.lifecycle import fact_key


def test_a_topic_has_at_most_120_units() -> None:
    longest = "\U0001f600" * 60
    assert fact_key("entities", f"{longest}: y") == f"entities:{longest}"
    assert fact_key("entities", f"{longest}x: y") == f"entities:{longest}x: y"
