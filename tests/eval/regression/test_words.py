"""What the documents of a gate's report say."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from eval.dataset.dataset import QRELS_SCHEMA, Dataset
from eval.regression.regression import with_words
from eval.regression.report import markdown
from lcm.records.conversation import Message, Transcript
from tests.eval.regression.test_reports import compared

LIMIT = 65_536
"""Characters of a comment on a pull request."""


def said(**texts: str) -> Dataset:
    messages = tuple(Message(name, "user", text, "s") for name, text in texts.items())
    return Dataset("toy", "", "a" * 64, (Transcript("c", messages, "w"),), (), pl.DataFrame(schema=QRELS_SCHEMA))


def test_documents_are_shown_by_what_they_say(tmp_path: Path) -> None:
    shown = markdown(with_words(compared(tmp_path), said(m1="The cat | is\nMia.", m2="x" * 200))).splitlines()
    assert rf"| 1 | The cat \| is Mia. **evidence** | {'x' * 69}… |" in shown


def test_a_document_whose_messages_nobody_knows_is_shown_by_its_id(tmp_path: Path) -> None:
    assert "| 1 | m1 **evidence** | m2 |" in markdown(with_words(compared(tmp_path), said(m9="?"))).splitlines()


def test_a_secret_in_a_message_is_not_reported(tmp_path: Path) -> None:
    key = "sk-" + "a1B2" * 12
    found = with_words(compared(tmp_path), said(m1=f"The key is {key}.", m2="No."))
    assert key not in markdown(found)
    assert key not in str(found.worse)


@pytest.mark.parametrize("text", ["|" * 300, "w" * 300, "日本語" * 100])
def test_a_report_fits_into_a_comment(tmp_path: Path, text: str) -> None:
    found = with_words(compared(tmp_path), said(m1=text, m2=text))
    full = tuple(
        replace(query, baseline=(query.baseline or ())[:1] * 10, candidate=(query.candidate or ())[:1] * 10)
        for query in found.worse[:1] * 10
    )
    assert len(markdown(replace(found, worse=full, better=full))) < LIMIT
