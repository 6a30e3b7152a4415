"""What only vectors set of libravdb memory's ranking, as fields of our components, and what its records point to."""

from collections.abc import Mapping
from typing import Any

from tests.golden.originals.fusion_settings import number, weights


def hybrid_score(config: Mapping[str, Any]) -> dict[str, float]:
    """Fields of `HybridScore`, but its decay."""
    alpha, beta, gamma = weights(config, alpha=0.7, beta=0.2, gamma=0.1)
    return {
        "cosine_weight": alpha,
        "recency_weight": beta,
        "scope_weight": gamma,
        "summary_delta": number(config, "compactionQualityWeight", 0.5, 0, 1),
    }


def exponential(config: Mapping[str, Any]) -> dict[str, float]:
    """Fields of `Exponential`, for a hybrid score."""
    return {
        "session_rate": number(config, "recencyLambdaSession", 1e-4, 0),
        "durable_rate": number(config, "recencyLambdaUser", 1e-5, 0),
        "global_rate": number(config, "recencyLambdaGlobal", 2e-6, 0),
    }


def authority_decay(config: Mapping[str, Any]) -> dict[str, float]:
    """Fields of `Exponential`, for two passes: one rate for all."""
    rate = number(config, "section7AuthorityRecencyLambda", 1e-5, 0)
    return {"session_rate": rate, "durable_rate": rate, "global_rate": rate}


def hops(config: Mapping[str, Any]) -> dict[str, float]:
    """Fields of `Hops`."""
    return {
        "eta": number(config, "section7HopEta", 0.5, 1e-6, 0.999999),
        "theta_hop": number(config, "section7HopThreshold", 0.15, 0, 1),
    }


def targets_of(value: Any) -> list[str]:
    """The hop targets that a record names: a list, or a text with commas; anything else is none."""
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",")]
    return [name for name in value if isinstance(name, str) and name] if isinstance(value, list) else []
