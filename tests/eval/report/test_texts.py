"""What a page says of a document that a memory holds otherwise than it was said."""

from datetime import timedelta

import polars as pl
import pytest

from eval.dataset.dataset import QRELS_SCHEMA, Dataset
from eval.report.explorer import Texts
from eval.report.page import Blocks
from eval.report.ranking import StoredDocument
from tests.support.workspaces import LINES, transcript

SAID = transcript(LINES)
FIRST = SAID.messages[0]
WORKSPACE = SAID.workspace_id


def texts() -> Texts:
    return Texts(Dataset("tiny", "tiny", "0", (SAID,), (), pl.DataFrame(schema=QRELS_SCHEMA)), 1 << 20)


@pytest.mark.parametrize(
    ("words", "days"), [(FIRST.content, 0), (FIRST.content[:9], 0), (FIRST.content, -365), (FIRST.content[:9], -365)]
)
def test_a_document_is_told_once_unless_a_memory_holds_it_otherwise_than_it_was_said(words: str, days: int) -> None:
    """By the number of its row, which has its own words and date where these differ."""
    assert FIRST.created_at is not None
    found, at = texts(), FIRST.created_at + timedelta(days=days)
    stored = [None, StoredDocument(words, at)]
    first, second = (found.document(WORKSPACE, "d", [FIRST.message_id], 5, one) for one in stored)
    own = (None if words == FIRST.content else words, f"{at:%Y-%m-%d %H:%M}" if days else None)
    is_same = own == (None, None)
    assert (first == second) == is_same
    assert [(text, at) for _, _, _, text, at in found.rows] == [(None, None), own][: 2 - is_same]
    found.pack(Blocks())
