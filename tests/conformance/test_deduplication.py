"""The laws of `Deduplication`, over every YAML of its group; those that ask a model with several replies."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcm.protocols.contract import contract_of
from lcm.protocols.writing import Deduplication
from lcm.records.document import ACTIONS, MEMORY_CATEGORIES
from pipelines.config import building, conf_folder
from tests.lcm.writing.admission.tables import TOWARDS, Table, at_cosine, candidate, document
from tests.support.composing import composed

MODELS = {
    "none": {"_target_": "lcm.language_model.replies.NoModel"},
    **{
        f"{decision}-{index}": {
            "_target_": "tests.support.language_models.Replying",
            "text": f'{{"decision": "{decision}", "match_index": {index}, "abstract": "both"}}',
        }
        for decision, index in (("merge", 1), ("merge", 1.5), ("supersede", 9), ("support", 1), ("skip", 1), ("no", 1))
    },
}
TEXTS = st.sampled_from(["Editor: vim", "Editor: emacs", "I like tea from Lipton", "I like milk from Lipton", "茶", ""])
CATEGORIES = st.sampled_from([*MEMORY_CATEGORIES, "other"])
COSINES = st.sampled_from([1.0, 0.96, 0.9, 0.6, 0.5, 0.0, -1.0])
CHOICES = [
    (choice, model)
    for choice in conf_folder.groups()["deduplication"]
    for model in (MODELS if choice == "model" else ["none"])
]
MANY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)


@pytest.fixture(params=CHOICES, ids=lambda pair: "-".join(pair))
def deduplication(request: pytest.FixtureRequest) -> Deduplication:
    return built(*request.param)


@cache
def built(choice: str, model: str) -> Deduplication:
    config = composed([f"deduplication={choice}"])
    config.language_model = MODELS[model]
    return building.build(config, "deduplication")


@MANY
@given(text=TEXTS, category=CATEGORIES, known=st.lists(st.tuples(TEXTS, CATEGORIES, COSINES), max_size=6))
def test_a_decision_that_needs_a_document_names_one_that_may_be_compared(
    deduplication: Deduplication, text: str, category: str, known: list[tuple[str, str, float]]
) -> None:
    table = Table().holding(*((document(f"d{i}", words, c), cosine) for i, (words, c, cosine) in enumerate(known)))
    one = candidate(text, category)
    found = deduplication.judge(one, TOWARDS, table, incidents=Counter())
    assert found.action in ACTIONS[:7]
    assert found.reason
    if found.action not in ("create", "skip"):
        assert found.matched in table.documents.values()
    assert found == deduplication.judge(one, TOWARDS, table, incidents=Counter())
    if contract_of(deduplication).is_off or not known:
        assert found.action == "create"


def test_without_a_vector_it_is_created(deduplication: Deduplication) -> None:
    table = Table().holding((document("d", "Editor: vim", "preferences"), 1.0))
    found = deduplication.judge(candidate("Editor: vim", "preferences"), None, table, incidents=Counter())
    assert found.action == "create"


@MANY
@given(angles=st.lists(st.integers(0, 12), max_size=6))
def test_twins_keep_the_first(deduplication: Deduplication, angles: list[int]) -> None:
    rows = [at_cosine(float(np.cos(angle * np.pi / 12))) for angle in angles]
    first = deduplication.twins(np.concatenate(rows) if rows else np.empty((0, 2), np.float32))
    assert len(first) == len(angles)
    for place, twin in enumerate(first):
        assert twin is None or (twin < place and first[twin] is None)
    if not contract_of(deduplication).is_off:
        repeated = {place for place, angle in enumerate(angles) if angle in angles[:place]}
        assert repeated <= {place for place, twin in enumerate(first) if twin is not None}


def test_a_merged_record_says_something(deduplication: Deduplication) -> None:
    merged = deduplication.merge(document("d", "Editor: vim"), candidate("Editor: vim with plugins"))
    assert merged is None or merged.text
