"""The plugin's own settings of ranking as settings of our components, read as leniently as the plugin reads them.

What is absent or no number is the plugin's default; weights are cut to [0, 1], and where none is left the plugin takes
.7, .2, .1 of each triple, also of authority's.

Source: libravdb memory 1.4.4.
"""

import math
from collections.abc import Mapping
from typing import Any

from lcm.javascript import is_finite_number

_TOP_K = 8
_LEAST_COARSE = 8
_ALL_ZERO = (0.7, 0.2, 0.1)


def two_pass(config: Mapping[str, Any]) -> dict[str, float]:
    """Fields of `TwoPass`, but its decay."""
    top_k = max(number(config, "topK", _TOP_K), 1)
    recency, frequency, authored = weights(
        config,
        section7AuthorityRecencyWeight=0.5,
        section7AuthorityFrequencyWeight=0.2,
        section7AuthorityAuthoredWeight=0.3,
    )
    return {
        "k1": math.floor(number(config, "section7CoarseTopK", max(2 * top_k, _LEAST_COARSE), 1)),
        "k2": math.floor(number(config, "section7SecondPassTopK", top_k, 1)),
        "theta1": number(config, "section7Theta1", 0.2, -1, 1),
        "kappa": number(config, "section7Kappa", 0.3, 0),
        "recency_weight": recency,
        "frequency_weight": frequency,
        "authority_weight": authored,
    }


def pool_sizes(config: Mapping[str, Any]) -> dict[str, int]:
    """Fields of `ByScope`."""
    top_k = max(number(config, "topK", _TOP_K), 1)
    coarse = int(two_pass(config)["k1"])
    return {
        "session_pool_size": math.ceil(top_k),
        "guidance_pool_size": coarse,
        "durable_pool_size": math.ceil(top_k / 2),
        "global_pool_size": math.ceil(top_k / 4),
        "authored_pool_size": coarse,
        "dream_pool_size": math.ceil(top_k),
    }


def weights(config: Mapping[str, Any], **defaults: float) -> tuple[float, ...]:
    """A triple of weights by their keys, each cut to [0, 1]."""
    given = tuple(number(config, key, default, 0, 1) for key, default in defaults.items())
    return given if sum(given) > 0 else _ALL_ZERO


def number(
    config: Mapping[str, Any], key: str, default: float, least: float = -math.inf, most: float = math.inf
) -> float:
    """The number under a key, cut to its range; the default where there is none."""
    value = config.get(key)
    return min(max(value if is_finite_number(value) else default, least), most)
