"""The laws of SummaryDocuments, over every choice."""

import pytest

from lcm.protocols.compaction import SummaryDocuments
from lcm.protocols.contract import contract_of
from pipelines.config import building
from tests.lcm.memory.test_folded_documents import fold, opened
from tests.support.composing import composed
from tests.support.richest import once_a_class


@pytest.fixture(params=once_a_class("summary_documents"))
def summary_documents(request: pytest.FixtureRequest) -> SummaryDocuments:
    found: SummaryDocuments = building.build(composed([f"summary_documents={request.param}"]), "summary_documents")
    return found


def test_a_summary_stands_for_what_lies_beneath_it_and_ends_nothing_else(summary_documents: SummaryDocuments) -> None:
    with opened(summary_documents=summary_documents) as memory:
        summary = fold(memory, 0, 3, "goats in the kitchen")
        memory.catch_up()
        found = memory.documents
        made = found.filter(kind="summary")
        assert made.is_empty() == contract_of(summary_documents).is_off
        for sources in made["source_message_ids"].to_list():
            assert tuple(sources) == summary.source_ids
        ended = found.filter(found["invalidated_at"].is_not_null())["source_message_ids"].to_list()
        assert all(set(sources) <= set(summary.source_ids) for sources in ended)
