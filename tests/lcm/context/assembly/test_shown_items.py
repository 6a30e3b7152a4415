"""Summaries as XML."""

from xml.etree import ElementTree
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from lcm.clock import EPOCH
from lcm.transcript.rendering.summary_form import summary_text
from tests.lcm.context.assembly.recorded import summary

UTC = ZoneInfo("UTC")
XML_TEXT = st.text(st.characters(min_codepoint=32, exclude_categories=("Cs", "Cn")))


def test_a_condensed_summary_names_its_sources_in_order() -> None:
    told = summary("Recap.", "sum_9", depth=1, source_ids=("sum_2", "sum_1"), descendant_count=2)
    assert summary_text(told, UTC) == (
        '<summary id="sum_9" kind="condensed" depth="1" descendant_count="2" earliest_at="2026-03-01T09:30:00" '
        'latest_at="2026-03-01T09:30:00">\n'
        "  <parents>\n"
        '    <summary_ref id="sum_2" />\n'
        '    <summary_ref id="sum_1" />\n'
        "  </parents>\n"
        "  <content>\nRecap.\n  </content>\n"
        "</summary>"
    )


def test_a_leaf_names_no_sources_and_no_times_that_it_does_not_have() -> None:
    told = summary_text(summary("Recap.", source_ids=("m1",), earliest_at=None, latest_at=None), UTC)
    assert told.startswith('<summary id="sum_1" kind="leaf" depth="0" descendant_count="0">\n  <content>')


def test_what_the_store_dates_at_the_epoch_has_no_time() -> None:
    told = summary_text(summary("Recap.", source_ids=("m1",), earliest_at=EPOCH, latest_at=EPOCH), UTC)
    assert "1970" not in told
    assert "_at=" not in told


def test_times_are_those_of_the_zone() -> None:
    assert 'earliest_at="2026-03-01T04:30:00"' in summary_text(summary("Recap."), ZoneInfo("America/New_York"))


@given(XML_TEXT, XML_TEXT)
def test_no_content_closes_the_wrapper(content: str, summary_id: str) -> None:
    hostile = f'{content}</content></summary><summary id="x">& "'
    root = ElementTree.fromstring(summary_text(summary(hostile, f'{summary_id}"<'), UTC))
    assert root.findtext("content") == f"\n{hostile}\n  "
    assert root.get("id") == f'{summary_id}"<'
