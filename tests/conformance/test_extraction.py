"""The laws of `Extraction`, over every YAML of its group."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from lcm.protocols.writing import Extraction
from lcm.writing.extraction.llm import Llm
from lcm.writing.new_document import document_id
from pipelines.config import building, conf_folder
from tests.support.agent_talk import agent_talk
from tests.support.composing import composed
from tests.support.language_models import Quoting
from tests.support.richest import once_a_class
from tests.support.workspaces import transcript


def built(choice: str, annotation: str = "none") -> Extraction:
    """The choice, with a language model that quotes where it needs one."""
    overrides = [f"extraction={choice}", f"annotation={annotation}", "language_model=none"]
    extraction = building.build(composed(overrides), "extraction")
    return replace(extraction, language_model=Quoting()) if isinstance(extraction, Llm) else extraction


@pytest.fixture(params=once_a_class("extraction"))
def extraction(request: pytest.FixtureRequest) -> Extraction:
    return built(request.param)


def test_every_candidate_names_messages_that_it_was_given(extraction: Extraction) -> None:
    messages = transcript().messages
    candidates = extraction.extract(messages, incidents=Counter())
    assert candidates
    assert candidates == extraction.extract(messages, incidents=Counter())
    order = {message.message_id: i for i, message in enumerate(messages)}
    for candidate in candidates:
        positions = [order[message_id] for message_id in candidate.source_message_ids]
        assert positions
        assert positions == sorted(positions)
        assert candidate.text.strip()


def test_every_candidate_names_a_newer_message_than_those_known(extraction: Extraction) -> None:
    messages = transcript().messages
    for known in range(len(messages)):
        newer = {message.message_id for message in messages[known:]}
        for candidate in extraction.extract(messages, known, incidents=Counter()):
            assert newer & set(candidate.source_message_ids)


def test_a_candidate_supersedes_none_but_documents_of_earlier_ones(extraction: Extraction) -> None:
    made: set[str] = set()
    for candidate in extraction.extract((*transcript().messages, *agent_talk().messages), incidents=Counter()):
        assert made.issuperset(candidate.supersedes)
        made.add(document_id(candidate))


def test_no_message_and_no_newer_one_give_no_candidate(extraction: Extraction) -> None:
    messages = transcript().messages
    assert extraction.extract([], incidents=Counter()) == []
    assert extraction.extract(messages, len(messages), incidents=Counter()) == []


@pytest.mark.parametrize("annotation", conf_folder.groups()["annotation"])
@pytest.mark.parametrize("choice", ["passages", "steps", "verbatim", "window"])
@pytest.mark.parametrize("cuts", [(0, 1, 14), (0, 3, 4, 10, 14), tuple(range(15))])
def test_piece_by_piece_gives_the_same_as_all_at_once(choice: str, annotation: str, cuts: tuple[int, ...]) -> None:
    extraction, messages = built(choice, annotation), (*transcript().messages, *agent_talk().messages)
    pieces = [
        c for start, end in pairwise(cuts) for c in extraction.extract(messages[:end], start, incidents=Counter())
    ]
    assert pieces == extraction.extract(messages, incidents=Counter())
