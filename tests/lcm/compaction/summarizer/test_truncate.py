from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.summarizer.chain import Truncate, cut
from lcm.javascript import first_units, utf16_length
from lcm.records.summary import SummaryRequest

MARKER = "[Truncated for context management]"
TEXT = st.text(st.sampled_from("ab \n来😀\ud83d\ude00\ud800"), max_size=40)


def summary(text: str, *, is_aggressive: bool = False, **settings: Any) -> str:
    (result,) = Truncate(**settings).summarize(
        [SummaryRequest(text, 100, is_aggressive=is_aggressive)], incidents=Counter()
    )
    assert result.failure is None
    assert (result.confidence, result.method) == (0.0, "truncate")
    return result.text


def test_a_long_text_is_cut_and_says_so() -> None:
    for is_aggressive, units in ((False, 3600), (True, 2400)):
        assert summary("x" * (units + 1), is_aggressive=is_aggressive) == "x" * units + "\n" + MARKER
        assert summary("x" * units, is_aggressive=is_aggressive) == "x" * units
    assert summary("  as it is \n") == "  as it is \n"


def test_no_character_is_cut_in_two() -> None:
    assert summary("xx😀y", max_units=3, marker="...") == "xx\n..."
    assert summary("xx😀y", max_units=4, marker="...") == "xx😀\n..."


def test_of_nothing_there_is_no_summary() -> None:
    for text in ("", " \n\t", "\ufeff"):
        (result,) = Truncate().summarize([SummaryRequest(text, 100)], incidents=Counter())
        assert (result.text, result.confidence) == ("", 0.0)
        assert str(result.failure) == "there is nothing to summarise: the text is blank"


@given(TEXT, st.integers(2, 40))
def test_what_is_kept_is_a_beginning_that_fits_and_lacks_less_than_a_character(text: str, units: int) -> None:
    kept = first_units(text, units, "dropped")
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")  # halves of a character
    assert joined.startswith(kept)
    assert min(units, utf16_length(text)) - 1 <= utf16_length(kept) <= units
    assert cut(text, units, "[cut]").endswith("\n[cut]") is (utf16_length(text) > units)
