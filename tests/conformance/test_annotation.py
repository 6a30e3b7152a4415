"""The laws of `Annotation`, over every YAML of its group."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lcm.protocols.writing import Annotation
from lcm.records.document import Candidate
from pipelines.config import building
from tests.support.composing import composed
from tests.support.richest import once_a_class

TEXTS = ("My name is Ada", "tomorrow we meet", "hm", "我喜欢茶", "", "the fix: always restart")
CANDIDATES = [Candidate(text, source_message_ids=(f"m{i}",)) for i, text in enumerate(TEXTS)]
INSTANTS = [datetime(2026, 1, 1 + i, tzinfo=UTC) for i in range(len(TEXTS))]


@pytest.fixture(params=once_a_class("annotation"))
def annotation(request: pytest.FixtureRequest) -> Annotation:
    return building.build(composed([f"annotation={request.param}"]), "annotation")


def test_texts_sources_and_order_stay(annotation: Annotation) -> None:
    kept = [(c.text, c.source_message_ids, c.kind) for c in annotation.annotate(CANDIDATES, INSTANTS)]
    assert kept == [(c.text, c.source_message_ids, c.kind) for c in CANDIDATES]


def test_equal_candidates_give_equal_ones_whatever_stands_beside_them(annotation: Annotation) -> None:
    together = annotation.annotate(CANDIDATES, INSTANTS)
    alone = [annotation.annotate([c], [at])[0] for c, at in zip(CANDIDATES, INSTANTS, strict=True)]
    assert together == alone == annotation.annotate([replace(c) for c in CANDIDATES], INSTANTS)


def test_nothing_expires_before_it_is_said(annotation: Annotation) -> None:
    for candidate, at in zip(annotation.annotate(CANDIDATES, INSTANTS), INSTANTS, strict=True):
        assert candidate.valid_until is None or candidate.valid_until > at


def test_no_candidate_gives_none(annotation: Annotation) -> None:
    assert annotation.annotate([], []) == []
