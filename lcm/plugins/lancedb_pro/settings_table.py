"""Settings of memory-lancedb-pro.

Source: memory-lancedb-pro 1.1.0-beta.10, its manifest and how its code reads it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from lcm.plugins.lancedb_pro.admission_settings import PRESETS
from lcm.plugins.settings.kinds import (
    FLAG,
    SHARE,
    TEXT,
    TEXTS,
    at_most,
    is_stage,
    milliseconds,
    number,
    one_of,
    placeholder,
    seconds,
    stage,
    variable,
    whole,
)
from lcm.plugins.settings.table import ABSENT, Choice, InexpressibleError, Key, Row, Table, at
from lcm.records import MEMORY_CATEGORIES

_HOST = "the host decides what it shows of what is recalled; lcm measures recall itself"
_CAPTURE = "a transcript is captured whole; the host's own limits are no part of a replay"
_STORE = "commands name their store by `store=`"
_TOOLS = "there is no host whose tools or sessions could be switched"
_SERVED = "a model of ours is read from a folder; the plugin asks a server"
_MIRROR = "nothing is written beside the store"
_CONSOLIDATION = "old memories are merged by no component; compaction folds messages"
_AUDIT = "every decision of admission is kept in decisions.parquet"
_NO_MAINTENANCE = "the plugin's code never moves a memory between tiers"
_NO_KEY = "a key is never read into a configuration; name its variable, as in ${NAME}"
_POOL = "the plugin's store gives no more than 20, whatever candidatePoolSize says"


def _of_preset(name: str, member: str | None = None) -> Callable[[Mapping[str, Any]], Any]:
    """A setting of admission is the preset's unless it is given."""

    def default(document: Mapping[str, Any]) -> Any:
        preset = at(document, "admissionControl.preset")
        value = getattr(PRESETS["balanced" if preset is ABSENT else preset], name)
        return value if member is None else value[member]

    return default


def _captures_assistant(roles: Any) -> bool:
    if set(roles) == {"user"}:
        return False
    if set(roles) == {"user", "assistant"}:
        return True
    raise InexpressibleError("captureAssistant chooses between [user] and [user, assistant]")


def _roles(is_captured: bool) -> list[str]:
    return ["user", "assistant"] if is_captured else ["user"]


def _described(definitions: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {} if text is None else {"description": text} for name, text in definitions.items()}


def _descriptions(definitions: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry.get("description") for name, entry in definitions.items()}


def _row(path: str, schema: Mapping[str, Any], default: Any, key: str, **more: Any) -> Row:
    return Row(path, schema, default, (Key(key),), **more)


def _none(path: str, schema: Mapping[str, Any], default: Any, why: str, **more: Any) -> Row:
    return Row(path, schema, default, no_key=why, **more)


_EMBEDDING = (
    Row(
        "embedding.apiKey", {"oneOf": [{"type": "string", "minLength": 1},
                                       {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}]},
        "${EMBED_KEY}", no_key="a key is never read into a configuration", is_required=True,
    ),
    _none("embedding.provider", one_of("openai-compatible", "azure-openai"), "openai-compatible", _SERVED),
    _none("embedding.model", TEXT, ABSENT, _SERVED),
    _none("embedding.baseURL", TEXT, ABSENT, _SERVED),
    _none("embedding.apiVersion", TEXT, ABSENT, _SERVED),
    _none("embedding.dimensions", whole(1), ABSENT, "the model decides"),
    _none("embedding.omitDimensions", FLAG, ABSENT, _SERVED),
    _none("embedding.taskQuery", TEXT, ABSENT, _SERVED),
    _none("embedding.taskPassage", TEXT, ABSENT, _SERVED),
    _none("embedding.normalized", FLAG, ABSENT, "every row has length 1"),
    _none("embedding.chunking", FLAG, True, "long texts are read in overlapping windows, always"),
)  # fmt: skip

_HOSTING = (
    _none("dbPath", TEXT, ABSENT, _STORE),
    _none("autoCapture", FLAG, True, _CAPTURE),
    _none("autoRecall", FLAG, False, _HOST),
    _none("recallMode", one_of("full", "summary", "adaptive", "off"), "full", _HOST),
    _none("autoRecallMinLength", whole(1, 200), 15, _HOST),
    _none("autoRecallMinRepeated", whole(0, 100), 8, _HOST),
    _none("autoRecallMaxItems", whole(1, 20), 3, _HOST),
    _none("autoRecallMaxChars", whole(64, 8000), 600, _HOST),
    _none("autoRecallPerItemMaxChars", whole(32, 1000), 180, _HOST),
    _none("autoRecallMaxQueryLength", whole(100, 10000), 2000, _HOST),
    _none("autoRecallTimeoutMs", whole(500, 60000), 5000, _HOST),
    _none("maxRecallPerTurn", whole(1, 50), 10, _HOST),
    _none("enableManagementTools", FLAG, False, _TOOLS),
    _none("sessionStrategy", one_of("memoryReflection", "systemSessionMemory", "none"), "none", _TOOLS),
    _none("memoryCompaction.enabled", FLAG, False, _CONSOLIDATION),
    _none("memoryCompaction.minAgeDays", whole(1), 7, _CONSOLIDATION),
    _none("memoryCompaction.similarityThreshold", SHARE, 0.88, _CONSOLIDATION),
    _none("memoryCompaction.minClusterSize", whole(2), 2, _CONSOLIDATION),
    _none("memoryCompaction.maxMemoriesToScan", whole(1), 200, _CONSOLIDATION),
    _none("memoryCompaction.cooldownHours", whole(1), 24, _CONSOLIDATION),
    _none("sessionCompression.enabled", FLAG, False, _CAPTURE),
    _none("sessionCompression.minScoreToKeep", SHARE, 0.3, _CAPTURE),
    _none("extractionThrottle.skipLowValue", FLAG, False, _CAPTURE),
    _none("extractionThrottle.maxExtractionsPerHour", whole(1, 200), 30, _CAPTURE),
    *(
        _none(f"workspaceBoundary.userMdExclusive.{name}", FLAG, name != "enabled", _MIRROR)
        for name in ("enabled", "routeProfile", "routeCanonicalName", "routeCanonicalAddressing", "filterRecall")
    ),
    _none("mdMirror.enabled", FLAG, False, _MIRROR),
    _none("mdMirror.dir", TEXT, ABSENT, _MIRROR),
)

_EXTRACTION = (
    _none("smartExtraction", FLAG, True, "without a model the plugin captures by rules of its own"),
    Row("captureAssistant", FLAG, False, (Key("extraction.roles", _roles),), _captures_assistant),
    _row("extractMinMessages", whole(1, 100), 4, "extraction.min_messages"),
    _row("extractMaxChars", whole(256, 100000), 8000, "extraction.max_chars"),
    _row("llm.model", TEXT, "openai/gpt-oss-120b", "language_model.model.model"),
    _row("llm.baseURL", TEXT, ABSENT, "language_model.model.base_url"),
    Row("llm.apiKey", TEXT, ABSENT, (Key("language_model.model.api_key_env", variable),), placeholder,
        lossy=_NO_KEY),
    Row(
        "llm.timeoutMs", whole(500), 30000, (Key("language_model.model.timeout_seconds", seconds),), milliseconds
    ),
    _none("llm.auth", one_of("api-key", "oauth"), "api-key", "a key is the only way in"),
    _row("scopes.default", TEXT, "global", "scopes.default"),
    Row(
        "scopes.definitions",
        {"type": "object", "additionalProperties": {"type": "object", "properties": {"description": TEXT}}},
        {}, (Key("scopes.definitions", _descriptions),), _described,
        lossy="a scope has a description alone",
    ),
    _row("scopes.agentAccess", {"type": "object", "additionalProperties": TEXTS}, {}, "scopes.agent_access"),
)  # fmt: skip

_RETRIEVAL = (
    _row("retrieval.mode", one_of("hybrid", "vector"), "hybrid", "ranking.mode"),
    _row("retrieval.vectorWeight", SHARE, 0.7, "fusion.dense_weight"),
    _row("retrieval.bm25Weight", SHARE, 0.3, "fusion.lexical_weight"),
    _row("retrieval.minScore", SHARE, 0.3, "ranking.stages.min_score.threshold"),
    _row("retrieval.hardMinScore", SHARE, 0.35, "ranking.stages.hard_min_score.threshold"),
    _none(
        "retrieval.rerank", one_of("cross-encoder", "lightweight", "none"), "cross-encoder",
        "a choice of reranker stands for it",
    ),
    _row(
        "retrieval.rerankProvider", one_of("jina", "siliconflow", "voyage", "pinecone", "dashscope", "tei"), "jina",
        "reranker.provider",
    ),
    _row("retrieval.rerankModel", TEXT, "jina-reranker-v3", "reranker.model"),
    _row("retrieval.rerankEndpoint", TEXT, "https://api.jina.ai/v1/rerank", "reranker.endpoint"),
    Row("retrieval.rerankApiKey", TEXT, ABSENT, (Key("reranker.api_key_env", variable),), placeholder, lossy=_NO_KEY),
    _row("retrieval.rerankTimeoutMs", whole(500), 5000, "reranker.timeout_ms"),
    Row(
        "retrieval.candidatePoolSize", whole(10, 100), 20,
        tuple(
            Key(key, lambda size: min(size, 20))
            for key in (
                "source.dense_pool_size", "source.lexical_pool_size", "ranking.vector.source.pool_size",
                "ranking.tag.source.pool_size",
            )
        ),
        at_most(20, _POOL), lossy=_POOL,
    ),
    _row("retrieval.recencyHalfLifeDays", number(0, 365), 14, "ranking.stages.recency_boost.half_life_days"),
    _row("retrieval.recencyWeight", number(0, 0.5), 0.1, "ranking.stages.recency_boost.weight"),
    Row("retrieval.filterNoise", FLAG, True, (Key("ranking.stages.noise_filter", stage),), is_stage),
    _row("retrieval.lengthNormAnchor", whole(0, 5000), 500, "ranking.stages.length_normalization.anchor"),
    _row("retrieval.timeDecayHalfLifeDays", number(0, 365), 60, "ranking.stages.time_decay.half_life_days"),
    _row("retrieval.reinforcementFactor", number(0, 2), 0.5, "ranking.stages.time_decay.reinforcement_factor"),
    _row("retrieval.maxHalfLifeMultiplier", number(1, 10), 3, "ranking.stages.time_decay.max_half_life_multiplier"),
)  # fmt: skip

_DECAY = (
    _row("decay.recencyHalfLifeDays", number(1, 365), 30, "decay.recency_half_life_days"),
    _row("decay.recencyWeight", SHARE, 0.4, "decay.recency_weight"),
    _row("decay.frequencyWeight", SHARE, 0.3, "decay.frequency_weight"),
    _row("decay.intrinsicWeight", SHARE, 0.3, "decay.intrinsic_weight"),
    _row("decay.staleThreshold", SHARE, 0.3, "decay.stale_threshold"),
    _row("decay.searchBoostMin", SHARE, 0.3, "decay.search_boost_min"),
    _row("decay.importanceModulation", number(0, 10), 1.5, "decay.importance_modulation"),
    _row("decay.betaCore", number(0.1, 5), 0.8, "decay.beta_core"),
    _row("decay.betaWorking", number(0.1, 5), 1, "decay.beta_working"),
    _row("decay.betaPeripheral", number(0.1, 5), 1.3, "decay.beta_peripheral"),
    _row("decay.coreDecayFloor", SHARE, 0.9, "decay.floor_core"),
    _row("decay.workingDecayFloor", SHARE, 0.7, "decay.floor_working"),
    _row("decay.peripheralDecayFloor", SHARE, 0.5, "decay.floor_peripheral"),
)


def _tier(path: str, schema: Mapping[str, Any], default: float, key: str) -> Row:
    needs = ("reinforcement", "recall")
    key = f"reinforcement.tiers.{key}"
    return _row(f"tier.{path}", schema, default, key, needs=needs, without_effect=_NO_MAINTENANCE)


_TIERS = (
    _tier("coreAccessThreshold", whole(1, 1000), 10, "core_access_threshold"),
    _tier("coreCompositeThreshold", SHARE, 0.7, "core_composite_threshold"),
    _tier("coreImportanceThreshold", SHARE, 0.8, "core_importance_threshold"),
    _tier("peripheralCompositeThreshold", SHARE, 0.15, "peripheral_composite_threshold"),
    _tier("peripheralAgeDays", whole(1, 3650), 60, "peripheral_age_days"),
    _tier("workingAccessThreshold", whole(1, 1000), 3, "working_access_threshold"),
    _tier("workingCompositeThreshold", SHARE, 0.4, "working_composite_threshold"),
)


def _admission(path: str, schema: Mapping[str, Any], name: str, member: str | None = None) -> Row:
    key = name if member is None else f"{name}.{member}"
    return _row(f"admissionControl.{path}", schema, _of_preset(name, member), f"admission.{key}")


_FEATURES = {
    "utility": "utility",
    "confidence": "confidence",
    "novelty": "novelty",
    "recency": "recency",
    "typePrior": "type_prior",
}
_ADMISSION = (
    _none("admissionControl.enabled", FLAG, False, "a choice of admission stands for it"),
    _none(
        "admissionControl.preset", one_of("balanced", "conservative", "high-recall"), "balanced",
        "every number of a preset is written out",
    ),
    _none(
        "admissionControl.utilityMode", one_of("standalone", "off"), "standalone", "a choice of admission stands for it"
    ),
    _admission("rejectThreshold", SHARE, "reject_threshold"),
    _admission("admitThreshold", SHARE, "admit_threshold"),
    _admission("noveltyCandidatePoolSize", whole(1, 20), "novelty_pool_size"),
    _admission("recency.halfLifeDays", whole(1, 365), "recency_half_life_days"),
    *(_admission(f"weights.{name}", SHARE, "weights", ours) for name, ours in _FEATURES.items()),
    *(_admission(f"typePriors.{name}", SHARE, "type_priors", name) for name in MEMORY_CATEGORIES),
    _none("admissionControl.auditMetadata", FLAG, True, _AUDIT),
    _none("admissionControl.persistRejectedAudits", FLAG, True, _AUDIT),
    _none("admissionControl.rejectedAuditFilePath", TEXT, ABSENT, _AUDIT),
)  # fmt: skip

_ORDER = "the plugin's stages have one order, `ranking.order=code`"
_CONSTANT = "it is a constant of the plugin's code"

TABLE = Table(
    name="lancedb_pro",
    plugin="memory-lancedb-pro",
    version="1.1.0-beta.10",
    base=(
        "system=lancedb_pro",
        "ranking.order=code",
        "extraction=llm",
        "deduplication=model",
        "language_model=openai_compatible",
        "extraction.roles=[user]",
    ),
    rows=(*_EMBEDDING, *_EXTRACTION, *_RETRIEVAL, *_DECAY, *_TIERS, *_ADMISSION, *_HOSTING),
    choices={
        "reranker": (
            Choice("remote", {"retrieval.rerank": "cross-encoder"}),
            Choice("cosine", {"retrieval.rerank": "lightweight"}),
            Choice("none", {"retrieval.rerank": "none"}),
        ),
        "admission": (
            Choice("none", {"admissionControl.enabled": False}),
            Choice("balanced", {"admissionControl.enabled": True, "admissionControl.utilityMode": "off"}),
            Choice("balanced_model", {"admissionControl.enabled": True, "admissionControl.utilityMode": "standalone"}),
        ),
        "reinforcement": (Choice("recall", {}),),
        "embedder": (
            Choice("minilm", {"embedding.model": "all-MiniLM-L6-v2", "embedding.dimensions": 384}),
            Choice("nomic", {"embedding.model": "nomic-embed-text-v1.5", "embedding.dimensions": 768}),
        ),
    },
    reasons={
        "extraction": "the plugin extracts by a model, or by rules of its own where smartExtraction is false",
        "deduplication": "the plugin's duplicates are judged by its model; the thresholds are constants of its code",
        "ranking.order": _ORDER,
        "ranking.hybrid.orders": _ORDER,
        "ranking.vector.orders": _ORDER,
        "ranking.tag.orders": _ORDER,
        "ranking.tags": "retrieval.tagPrefixes is read by the code and refused by its manifest",
        "ranking.stages.limit": "the host asks for so many as it shows",
        "ranking.stages.diversity": _CONSTANT,
        "ranking.stages.noise_filter": "retrieval.filterNoise switches all of it",
        "ranking": "the plugin has one way of ranking",
        "fusion.floor_ratio": _CONSTANT,
        "fusion.floor_from": _CONSTANT,
        "fusion": "the plugin fuses by a weighted sum",
        "decay": "the plugin forgets by Weibull curves",
        "reranker": "how a reranker's score is blended is a constant of the plugin's code",
        "source.expansion": "retrieval.queryExpansion is read by the code and refused by its manifest",
        "embedder": "name the model and its server in `embedding`",
        "reinforcement": _NO_MAINTENANCE,
        "annotation": "what a memory is filed under is a rule of the plugin's code",
    },
)
"""Everything that the plugin's manifest has."""
