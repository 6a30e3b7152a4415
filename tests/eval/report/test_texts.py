"""What a page says of a document that a memory holds otherwise than it was said."""

from datetime import timedelta

import polars as pl
import pytest

from eval.dataset.dataset import QRELS_SCHEMA, Dataset
from eval.report.insight import StoredDocument
from eval.report.packing import Blocks
from eval.report.texts import Texts
from tests.support.workspaces import LINES, transcript

SAID = transcript(LINES)
FIRST = SAID.messages[0]
WORKSPACE = SAID.workspace_id


def texts() -> Texts:
    return Texts(Dataset("tiny", "tiny", "0", (SAID,), (), pl.DataFrame(schema=QRELS_SCHEMA)), 1 << 20)


def number(of: Texts, stored: StoredDocument | None) -> int:
    return of.document(WORKSPACE, "d", [FIRST.message_id], 5, stored)


def told(of: Texts) -> list[tuple[str | None, str | None]]:
    """Own words and own date of each document."""
    return [(text, at) for _, _, _, text, at in of.rows]


def test_what_is_stored_as_it_was_said_is_told_once() -> None:
    assert FIRST.created_at is not None
    found = texts()
    assert number(found, None) == number(found, StoredDocument(FIRST.content, FIRST.created_at))
    assert told(found) == [(None, None)]


@pytest.mark.parametrize(("words", "days"), [(FIRST.content[:9], 0), (FIRST.content, -365), (FIRST.content[:9], -365)])
def test_two_memories_that_hold_a_document_otherwise_are_told_apart(words: str, days: int) -> None:
    assert FIRST.created_at is not None
    found, at = texts(), FIRST.created_at + timedelta(days=days)
    assert number(found, None) != number(found, StoredDocument(words, at))
    own = (None if words == FIRST.content else words, f"{at:%Y-%m-%d %H:%M}" if days else None)
    assert told(found) == [(None, None), own]
    found.pack(Blocks())
