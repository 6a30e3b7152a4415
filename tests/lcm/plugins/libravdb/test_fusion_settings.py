"""The plugin's own settings, read as leniently as it reads them."""

import math

import pytest

from lcm.plugins.libravdb import fusion_settings as plugin_config
from lcm.retrieval.decay.none import NoDecay
from lcm.retrieval.fusion.two_pass import TwoPass
from lcm.retrieval.source.by_scope import ByScope
from tests.golden.components import component


def test_without_settings_ours_are_the_plugins() -> None:
    assert TwoPass(NoDecay(), **plugin_config.two_pass({})) == TwoPass(NoDecay())  # type: ignore[arg-type]
    assert ByScope(**plugin_config.pool_sizes({})) == component("source=libravdb", "source")


def test_everything_follows_from_how_many_documents_are_wanted() -> None:
    assert plugin_config.pool_sizes({"topK": 5}) == {
        "session_pool_size": 5,
        "guidance_pool_size": 10,
        "durable_pool_size": 3,
        "global_pool_size": 2,
        "authored_pool_size": 10,
        "dream_pool_size": 5,
    }
    assert plugin_config.two_pass({"topK": 3})["k1"] == 8  # no fewer
    assert plugin_config.two_pass({"topK": 3})["k2"] == 3


def test_numbers_are_cut_to_their_range_and_others_are_not_read() -> None:
    lenient = plugin_config.two_pass(
        {"section7CoarseTopK": 2.9, "section7SecondPassTopK": -4, "section7Theta1": -7, "section7Kappa": "high"}
    )
    assert [lenient[name] for name in ("k1", "k2", "theta1", "kappa")] == [2, 1, -1, 0.3]
    assert plugin_config.two_pass({"section7Theta1": math.nan})["theta1"] == 0.2


@pytest.mark.parametrize("weight", [0, -3])
def test_the_plugin_weighs_authority_like_a_hybrid_score_where_no_weight_is_left(weight: float) -> None:
    names = ("Recency", "Frequency", "Authored")
    found = plugin_config.two_pass({f"section7Authority{name}Weight": weight for name in names})
    assert [found[f"{name}_weight"] for name in ("recency", "frequency", "authority")] == [0.7, 0.2, 0.1]
