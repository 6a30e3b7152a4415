"""The laws of `Extraction`, over every YAML of its group."""

import pytest

from lcm.protocols import Extraction
from pipelines import configuration
from tests.workspaces import transcript


@pytest.fixture(params=configuration.groups()["extraction"])
def extraction(request: pytest.FixtureRequest) -> Extraction:
    return configuration.build(configuration.composed([f"extraction={request.param}"]), "extraction")


def test_every_candidate_names_messages_that_it_was_given(extraction: Extraction) -> None:
    messages = transcript().messages
    candidates = extraction.extract(messages)
    assert candidates
    order = {message.message_id: i for i, message in enumerate(messages)}
    for candidate in candidates:
        positions = [order[message_id] for message_id in candidate.source_message_ids]
        assert positions
        assert positions == sorted(positions)
        assert candidate.text.strip()


def test_equal_messages_give_equal_candidates(extraction: Extraction) -> None:
    assert extraction.extract(transcript().messages) == extraction.extract(transcript().messages)


def test_no_message_gives_no_candidate(extraction: Extraction) -> None:
    assert extraction.extract([]) == []
