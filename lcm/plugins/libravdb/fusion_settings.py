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
_LEAST_ETA, _MOST_ETA = 1e-6, 0.999999


def hybrid_score(config: Mapping[str, Any]) -> dict[str, float]:
    """Fields of `HybridScore`, but its decay."""
    alpha, beta, gamma = _weights(config, alpha=0.7, beta=0.2, gamma=0.1)
    return {
        "cosine_weight": alpha,
        "recency_weight": beta,
        "scope_weight": gamma,
        "summary_delta": _number(config, "compactionQualityWeight", 0.5, 0, 1),
    }


def exponential(config: Mapping[str, Any]) -> dict[str, float]:
    """Fields of `Exponential`, for a hybrid score."""
    return {
        "session_rate": _number(config, "recencyLambdaSession", 1e-4, 0),
        "durable_rate": _number(config, "recencyLambdaUser", 1e-5, 0),
        "global_rate": _number(config, "recencyLambdaGlobal", 2e-6, 0),
    }


def two_pass(config: Mapping[str, Any]) -> dict[str, float]:
    """Fields of `TwoPass`, but its decay."""
    top_k = max(_number(config, "topK", _TOP_K), 1)
    recency, frequency, authored = _weights(
        config,
        section7AuthorityRecencyWeight=0.5,
        section7AuthorityFrequencyWeight=0.2,
        section7AuthorityAuthoredWeight=0.3,
    )
    return {
        "k1": math.floor(_number(config, "section7CoarseTopK", max(2 * top_k, _LEAST_COARSE), 1)),
        "k2": math.floor(_number(config, "section7SecondPassTopK", top_k, 1)),
        "theta1": _number(config, "section7Theta1", 0.2, -1, 1),
        "kappa": _number(config, "section7Kappa", 0.3, 0),
        "recency_weight": recency,
        "frequency_weight": frequency,
        "authority_weight": authored,
    }


def authority_decay(config: Mapping[str, Any]) -> dict[str, float]:
    """Fields of `Exponential`, for two passes: one rate for all."""
    rate = _number(config, "section7AuthorityRecencyLambda", 1e-5, 0)
    return {"session_rate": rate, "durable_rate": rate, "global_rate": rate}


def hops(config: Mapping[str, Any]) -> dict[str, float]:
    """Fields of `Hops`."""
    return {
        "eta": _number(config, "section7HopEta", 0.5, _LEAST_ETA, _MOST_ETA),
        "theta_hop": _number(config, "section7HopThreshold", 0.15, 0, 1),
    }


def pool_sizes(config: Mapping[str, Any]) -> dict[str, int]:
    """Fields of `ByScope`."""
    top_k = max(_number(config, "topK", _TOP_K), 1)
    coarse = int(two_pass(config)["k1"])
    return {
        "session_pool_size": math.ceil(top_k),
        "guidance_pool_size": coarse,
        "durable_pool_size": math.ceil(top_k / 2),
        "global_pool_size": math.ceil(top_k / 4),
        "authored_pool_size": coarse,
        "dream_pool_size": math.ceil(top_k),
    }


def _weights(config: Mapping[str, Any], **defaults: float) -> tuple[float, ...]:
    weights = tuple(_number(config, key, default, 0, 1) for key, default in defaults.items())
    return weights if sum(weights) > 0 else _ALL_ZERO


def _number(
    config: Mapping[str, Any], key: str, default: float, least: float = -math.inf, most: float = math.inf
) -> float:
    value = config.get(key)
    return min(max(value if is_finite_number(value) else default, least), most)
