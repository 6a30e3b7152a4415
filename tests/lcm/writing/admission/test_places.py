"""A candidate that is to take the place of an earlier one."""

from dataclasses import replace

import pytest

from lcm.writing.admission.changes import DocumentAnnotated, DocumentCreated, DocumentEnded
from tests.lcm.writing.admission.tables import candidate, document
from tests.lcm.writing.admission.test_intake import NOW, deciding, known, take


@pytest.mark.parametrize(
    ("action", "label", "changes"),
    [
        ("create", None, [DocumentCreated, DocumentEnded]),
        ("merge", None, [DocumentCreated, DocumentEnded]),
        ("supersede", None, [DocumentCreated, DocumentEnded]),
        ("contextualize", "work", [DocumentCreated, DocumentEnded]),
        ("contradict", "work", [DocumentAnnotated, DocumentCreated, DocumentEnded]),
        ("support", None, [DocumentAnnotated]),
        ("skip", None, []),
    ],
)
def test_what_is_made_of_a_candidate_takes_the_place_that_it_names_and_no_other(
    action: str, label: str | None, changes: list[type]
) -> None:
    gone, call = document("gone", "look", "preferences", invalidated_at=NOW), document("call", "look at", "preferences")
    table = known("preferences").holding((gone, 0.95), (call, 0.99))
    later = replace(candidate("look at it: vim", "preferences"), supersedes=("gone", "call", "unknown"))
    taken = take(deciding(action, label), later, table)
    assert [type(change) for change in taken.changes] == changes
    assert taken.decision.matched_id in (None, "old")  # never compared with what it repeats
    made = [change.document.supersedes for change in taken.changes if isinstance(change, DocumentCreated)]
    ended = [change.document_id for change in taken.changes if isinstance(change, DocumentEnded)]
    assert made == ended == ["call"] * len(made)
