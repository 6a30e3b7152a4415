"""The laws of `Admission`, over every YAML of its group; those that ask a model with and without one."""

import math
from collections import Counter
from functools import cache
from itertools import product

import pytest

from lcm.protocols.contract import contract_of
from lcm.protocols.writing import Admission
from lcm.records.document import MEMORY_CATEGORIES
from pipelines.config import building, conf_folder
from tests.lcm.writing.admission.tables import TOWARDS, Table, candidate, document, messages
from tests.support.composing import composed
from tests.support.workspaces import minute

MODELS = {
    "none": {"_target_": "lcm.language_model.replies.NoModel"},
    "replying": {"_target_": "tests.support.language_models.Replying", "text": '{"utility": 0.9, "reason": "lasts"}'},
    "babbling": {"_target_": "tests.support.language_models.Replying", "text": "I do not know what you mean"},
}
CANDIDATES = [
    *(candidate("The kettle broke on Monday", category) for category in (*MEMORY_CATEGORIES, "other")),
    candidate("台所のやかんが壊れた", "events", content="月曜日に壊れた"),
    candidate("😀"),
    candidate(""),
]
CHOICES = [
    (choice, model)
    for choice in conf_folder.groups()["admission"]
    for model in (MODELS if choice.endswith("_model") else ["none"])
]


@pytest.fixture(params=CHOICES, ids=lambda pair: "-".join(pair))
def admission(request: pytest.FixtureRequest) -> Admission:
    return built(*request.param)


@cache
def built(choice: str, model: str) -> Admission:
    config = composed([f"admission={choice}"])
    config.language_model = MODELS[model]
    return building.build(config, "admission")


@pytest.fixture
def table() -> Table:
    return Table().holding((document("d", "the kettle", "events"), 0.8), (document("e", "the goats", "cases"), 0.3))


def test_equal_arguments_give_an_equal_assessment_and_nothing_changes(admission: Admission, table: Table) -> None:
    before = dict(table.documents)
    for one, vector in product(CANDIDATES, (None, TOWARDS)):
        arguments = (one, vector, table, messages("The kettle broke", "on Monday"), minute(5))
        found = admission.assess(*arguments, incidents=Counter())
        assert found == admission.assess(*arguments, incidents=Counter())
        assert found.reason
        assert (found.score is None) == contract_of(admission).is_off
        assert found.is_admitted or not contract_of(admission).is_off
        assert all(0 <= value <= 1 for value in found.features.values())
        assert found.score is None or math.isfinite(found.score)

    assert table.documents == before
    assert admission.assess(CANDIDATES[0], None, Table(), [], minute(0), incidents=Counter()).reason
