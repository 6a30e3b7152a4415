"""The laws of Guidance, over every choice."""

from collections import Counter
from dataclasses import replace

import pytest

from lcm.compaction.guidance.protected import ProtectedGuidance
from lcm.protocols.compaction import Guidance
from pipelines.config import building
from tests.lcm.writing.admission.tables import messages
from tests.support.composing import composed
from tests.support.guidance_results import SAID
from tests.support.richest import once_a_class
from tests.support.workspaces import minute

HEARD = messages(*SAID, "", "\udcff", "you must \U0001f600")


@pytest.fixture(params=once_a_class("guidance"))
def guidance(request: pytest.FixtureRequest) -> Guidance:
    found: Guidance = building.build(composed([f"guidance={request.param}", "embedder=hashing"]), "guidance")
    return found


def test_each_message_has_one_answer_which_is_about_it(guidance: Guidance) -> None:
    found = guidance.shards(HEARD, "talk", minute(5), incidents=Counter())
    assert len(found) == len(HEARD)
    for message, shard in zip(HEARD, found, strict=True):
        if shard is not None:
            assert (shard.message_id, shard.conversation_id) == (message.message_id, "talk")
            assert shard.text == message.content.strip()
            assert 0 <= shard.stability <= 1


def test_an_answer_depends_on_nothing_but_its_message(guidance: Guidance) -> None:
    alone = [guidance.shards([message], "talk", minute(5), incidents=Counter())[0] for message in HEARD]
    assert guidance.shards(HEARD, "talk", minute(5), incidents=Counter()) == alone


def test_a_model_can_only_add_protection(guidance: Guidance) -> None:
    if not isinstance(guidance, ProtectedGuidance):
        pytest.skip("it protects nothing")
    without = replace(guidance, booster_embedder=None).shards(HEARD, "talk", minute(5), incidents=Counter())
    beside = guidance.shards(HEARD, "talk", minute(5), incidents=Counter())
    assert all(shard == before for shard, before in zip(beside, without, strict=True) if before is not None)
