"""The plugin's own settings of admission, read as leniently as the plugin reads them.

Source: memory-lancedb-pro, normalizeAdmissionControlConfig; batches, veto and models are of 1.1.0-beta.11.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from lcm.javascript import clamp01, to_number, trim
from lcm.records.document import MEMORY_CATEGORIES
from lcm.writing.admission.amac import FEATURES, Amac, Utility

MAX_BATCH_SIZE = 50
BATCH_SIZE = 10
MAX_POOL_SIZE = 20
MAX_HALF_LIFE_DAYS = 365

_PLUGIN_NAMES = {"type_prior": "typePrior"}
"""Our feature -> the plugin's key, where they differ."""


@dataclass(frozen=True, slots=True)
class PluginAdmission:
    """What the plugin works with once its configuration is read; the weights need not sum to exactly 1."""

    preset: str
    weights: Mapping[str, float]
    reject_threshold: float
    admit_threshold: float
    novelty_pool_size: int
    recency_half_life_days: int
    type_priors: Mapping[str, float]
    is_enabled: bool = False
    utility_mode: Literal["standalone", "batch", "off"] = "standalone"
    utility_veto_threshold: float = 0.0
    model: str | None = None
    """Of the utility; None = the plugin's own."""
    model_affinity: Literal["global", "lane"] | None = None
    """Whether a lane's own model goes before the plugin's; None: nothing was set."""
    audit_metadata: bool = True
    persist_rejected_audits: bool = True
    rejected_audit_file_path: str | None = None

    def component(self, utility: Utility) -> Amac:
        """Our component of these settings; whether it is on is for the caller."""
        return Amac(
            weights=self.weights,
            reject_threshold=self.reject_threshold,
            utility_veto=self.utility_veto_threshold,
            admit_threshold=self.admit_threshold,
            novelty_pool_size=self.novelty_pool_size,
            recency_half_life_days=self.recency_half_life_days,
            type_priors=self.type_priors,
            utility=utility,
        )


def _preset(
    name: str,
    weights: Sequence[float],
    thresholds: tuple[float, float],
    pool_size: int,
    half_life_days: int,
    priors: Sequence[float],
) -> PluginAdmission:
    return PluginAdmission(
        preset=name,
        weights=MappingProxyType(dict(zip(FEATURES, weights, strict=True))),
        reject_threshold=thresholds[0],
        admit_threshold=thresholds[1],
        novelty_pool_size=pool_size,
        recency_half_life_days=half_life_days,
        type_priors=MappingProxyType(dict(zip(MEMORY_CATEGORIES, priors, strict=True))),
    )


_PRESETS = (
    _preset("balanced", (0.1, 0.1, 0.1, 0.1, 0.6), (0.45, 0.6), 8, 14, (0.95, 0.9, 0.75, 0.45, 0.8, 0.85)),
    _preset("conservative", (0.16, 0.16, 0.18, 0.08, 0.42), (0.52, 0.68), 10, 10, (0.98, 0.94, 0.78, 0.28, 0.78, 0.8)),
    _preset("high-recall", (0.08, 0.1, 0.08, 0.14, 0.6), (0.34, 0.52), 6, 21, (0.96, 0.92, 0.8, 0.58, 0.84, 0.88)),
)
PRESETS: Mapping[str, PluginAdmission] = MappingProxyType({preset.preset: preset for preset in _PRESETS})


def normalised(raw: object) -> PluginAdmission:
    """The plugin's reading of `admissionControl`; whatever it cannot use becomes the preset's.

    Numbers are bound to their ranges, weights divided by their sum where any are given (a null weight is 0), the admit
    threshold raised to the reject threshold; an unknown preset is "balanced".
    """
    if not isinstance(raw, Mapping):
        return PRESETS["balanced"]
    given: Mapping[str, Any] = raw
    name = given.get("preset")
    preset = PRESETS.get(name, PRESETS["balanced"]) if isinstance(name, str) else PRESETS["balanced"]
    reject = _share(given, "rejectThreshold", preset.reject_threshold)
    recency, priors = given.get("recency"), given.get("typePriors")
    days = recency.get("halfLifeDays") if isinstance(recency, Mapping) else None
    mode = given.get("utilityMode")
    return replace(
        preset,
        is_enabled=given.get("enabled") is True,
        utility_mode=mode if mode in ("off", "standalone", "batch") else preset.utility_mode,
        utility_veto_threshold=_share(given, "utilityVetoThreshold", preset.utility_veto_threshold),
        model=_text(given.get("model")),
        model_affinity="lane" if given.get("modelAffinity") == "lane" else "global",
        weights=_weights(given.get("weights"), preset.weights),
        reject_threshold=reject,
        admit_threshold=max(reject, _share(given, "admitThreshold", preset.admit_threshold)),
        novelty_pool_size=_whole(given.get("noveltyCandidatePoolSize"), preset.novelty_pool_size, MAX_POOL_SIZE),
        recency_half_life_days=_whole(days, preset.recency_half_life_days, MAX_HALF_LIFE_DAYS),
        type_priors={
            category: _share(priors if isinstance(priors, Mapping) else {}, category, prior)
            for category, prior in preset.type_priors.items()
        },
        audit_metadata=_flag(given.get("auditMetadata"), preset.audit_metadata),
        persist_rejected_audits=_flag(given.get("persistRejectedAudits"), preset.persist_rejected_audits),
        rejected_audit_file_path=_text(given.get("rejectedAuditFilePath")),
    )


def batch_size(raw: object) -> int:
    """The plugin's reading of `batchChunkSize`: from 1 to 50, rounded down; 10 where it is none of them."""
    number = math.nan if raw is None else to_number(raw)
    return _whole(number, BATCH_SIZE, MAX_BATCH_SIZE) if number >= 1 else BATCH_SIZE


def _share(given: Mapping[str, Any], key: str, otherwise: float) -> float:
    return clamp01(to_number(given[key]), otherwise) if key in given else otherwise


def _weights(given: object, preset: Mapping[str, float]) -> Mapping[str, float]:
    if not isinstance(given, Mapping):
        return preset
    bound = {name: _share(given, _PLUGIN_NAMES.get(name, name), weight) for name, weight in preset.items()}
    total = sum(bound.values())
    return {name: weight / total for name, weight in bound.items()} if total > 0 else preset


def _whole(given: object, otherwise: int, most: int) -> int:
    """Positive, rounded down but not to 0."""
    number = to_number(given)
    return min(most, max(1, math.floor(number))) if math.isfinite(number) and number > 0 else otherwise


def _text(given: object) -> str | None:
    return trim(given) or None if isinstance(given, str) else None


def _flag(given: object, otherwise: bool) -> bool:
    return given if isinstance(given, bool) else otherwise
