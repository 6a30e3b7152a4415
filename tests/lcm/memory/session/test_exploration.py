"""Large files: what is told of them, with and without a summarizer."""

from collections import Counter
from collections.abc import Sequence

import pytest

from lcm.errors import ModelError
from lcm.javascript import utf16_length
from lcm.memory.session import Exploration, text_sample
from lcm.records.summary import SummaryRequest, SummaryResult
from lcm.token_estimator import Utf16Units


class Names:
    """A summarizer that says how long its texts are, or that it cannot."""

    def __init__(self, failure: ModelError | None = None) -> None:
        self.failure = failure

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        words = [f"{len(request.text)} units" for request in requests]
        return [SummaryResult("" if self.failure else text, 1.0, "names", failure=self.failure) for text in words]


@pytest.mark.parametrize(
    ("name", "text", "facts"),
    [
        ("a.json", "[1, NaN]", ["failed to parse"]),
        ("a.json", "null", ["Top-level type: null."]),
        ("a.json", '{"a": [true]}', ["object(keys=1: a)"]),
        ("a.tsv", "x\ty\n1\t2\n", ["Rows: 1.", "Columns (2): x, y."]),
        ("a.csv", "\n\n", ["no rows found"]),
        ("a.xml", "<?xml?><r><b/><b/><c d='1'>t</c></r>", ["Root element: r.", "seen: b, c."]),
        ("a.yml", "a:\n  b: 1\nc:\n", ["Top-level keys (2): a, c."]),
        ("a.py", "from b import c\nclass D:\n  def e(self): pass", ["Lines: 3.", "(1): from b import c.", "class D:"]),
        ("a.md", "# Head\nwords\nALL CAPITALS", ["Words: 5.", "Lines: 3.", "# Head | ALL CAPITALS."]),
        (None, "{}", ["JSON"]),
    ],
)
def test_a_file_is_described_by_its_kind_or_its_mime_type(name: str | None, text: str, facts: list[str]) -> None:
    mime_type = None if name else "application/json; charset=utf-8"
    described = Exploration().explore(text, name, mime_type, incidents=Counter())
    assert [fact for fact in facts if fact not in described] == []


def test_a_description_has_some_two_hundred_tokens_however_long_the_text() -> None:
    for text in ("word " * 20_000, "😀" * 10_000, "# a heading\n" * 5_000):
        assert Utf16Units().count([Exploration().explore(text, "a.txt", incidents=Counter())])[0] <= 500


def test_a_summarizer_reads_the_beginning_middle_and_end_of_a_long_text() -> None:
    text = "b" * 5000 + "m" * 10_000 + "e" * 5000
    sample = text_sample(text)
    assert (sample.count("b" * 2400), sample.count("m" * 2400), sample.count("e" * 2400)) == (1, 1, 1)
    assert Exploration(Names()).explore(text, incidents=Counter()) == f"{utf16_length(sample)} units"


def test_a_summarizer_that_fails_is_replaced_and_told_of(caplog: pytest.LogCaptureFixture) -> None:
    told = Exploration(Names(ModelError("no model"))).explore("some words", "a.txt", incidents=Counter())
    assert told == Exploration().explore("some words", "a.txt", incidents=Counter())
    assert "no summary of the large file a.txt: no model" in caplog.text
