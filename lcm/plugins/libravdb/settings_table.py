"""Settings of libravdb memory.

Source: libravdb memory 1.4.4, its manifest and how its code reads it.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from lcm.plugins.libravdb import fusion_settings as plugin_config
from lcm.plugins.settings.kinds import FLAG, SHARE, TEXT, TEXTS, number, one_of, whole
from lcm.plugins.settings.table import ABSENT, Choice, InexpressibleError, Key, Row, Table

_DAEMON = "a path or a model of the daemon's own machine; models of ours are choices of embedder and summarizer"
_TRANSPORT = "there is no daemon to be called"
_HYBRID = "no code of the plugin reads it since 1.3.12, which ranks by two passes"
_UNREAD = "no code of the plugin reads it"
_WATCH = "files are read once, when a workspace is opened"
_DIARY = "diaries are promoted by lcm.writing.dream, which no configuration names"
_PROJECTION = "summaries stand among all other documents: summary_documents"
_MARKDOWN = ("authored.adapter", "generic")
_OBSIDIAN = ("authored.adapter", "obsidian")


def _row(path: str, schema: Mapping[str, Any], default: Any, key: str, **more: Any) -> Row:
    return Row(path, schema, default, (Key(key),), **more)


def _none(path: str, schema: Mapping[str, Any], default: Any, why: str) -> Row:
    return Row(path, schema, default, no_key=why)


def _depth(setting: str) -> Callable[[float], int]:
    """`topK` decides how deep the source and both passes go."""
    return lambda top_k: int(
        {**plugin_config.pool_sizes({"topK": top_k}), **plugin_config.two_pass({"topK": top_k})}[setting]
    )


_TOP_K = (
    Key("fusion.k2", _depth("k2")),
    Key("fusion.k1", _depth("k1")),
    *(Key(f"source.{pool}", _depth(pool)) for pool in plugin_config.pool_sizes({})),
    Key("ranking.stages.recovery.session_k", lambda top_k: max(math.ceil(top_k), 4)),
    Key("ranking.stages.recovery.user_k", lambda top_k: max(4 * math.ceil(top_k), 8)),
)

_RETRIEVAL = (
    Row("topK", number(1), 8, _TOP_K, lossy="a depth is a whole number"),
    _row("tokenBudgetFraction", {"type": "number", "exclusiveMinimum": 0, "maximum": 1}, 0.25,
         "assembly.token_budget_fraction"),
    _none("alpha", SHARE, 0.7, _HYBRID),
    _none("beta", SHARE, 0.2, _HYBRID),
    _none("gamma", SHARE, 0.1, _HYBRID),
    _none("compactionQualityWeight", SHARE, 0.5, _HYBRID),
    _none("recencyLambdaSession", number(0), 1e-4, _HYBRID),
    _row("recencyLambdaUser", number(0), 1e-5, "recovery.temporal.recency_per_s"),
    _none("recencyLambdaGlobal", number(0), 2e-6, _HYBRID),
    _none("useSessionSummarySearchExperiment", FLAG, False, _PROJECTION),
    _none("sessionTTL", number(), ABSENT, _UNREAD),
)  # fmt: skip

_WEIGHTS = {"w1c": 0.35, "w2c": 0.4, "w3c": 0.25, "w1t": 0.4, "w2t": 0.35, "w3t": 0.25}
_ADMISSION = (
    _row("ingestionGateThreshold", number(0), 0.35, "admission.threshold"),
    *(_row(f"gatingWeights.{name}", number(), value, f"admission.weights.{name}") for name, value in _WEIGHTS.items()),
    _row("gatingTechNorm", {"type": "number", "exclusiveMinimum": 0}, 1.5, "admission.technical_norm"),
    _none("gatingCentroidK", number(), 10, _UNREAD),
)  # fmt: skip

_COMPACTION = (
    _row("compactThreshold", whole(1), 20, "compaction.target_cluster_size"),
    _row("compactSessionTokenBudget", whole(0), 2000, "compaction.session_token_budget"),
    Row("lifecycleJournalMaxEntries", whole(1), 500, (Key("session.journal_max_entries"),)),
)

_MODELS = (
    _none("embeddingBackend", one_of("bundled", "onnx-local", "custom-local"), "bundled", _DAEMON),
    _none("embeddingProfile", TEXT, "all-minilm-l6-v2", "a choice of embedder stands for it"),
    _none("fallbackProfile", TEXT, "all-minilm-l6-v2", _DAEMON),
    _none("embeddingDimensions", whole(1), ABSENT, "the model decides"),
    _none("embeddingNormalize", FLAG, True, "every row has length 1"),
    _none("summarizerBackend", one_of("bundled", "onnx-local", "ollama-local", "custom-local"), "bundled", _DAEMON),
    *(
        _none(name, TEXT, ABSENT, _DAEMON)
        for name in (
            "dbPath", "sidecarPath", "embeddingRuntimePath", "embeddingModelPath", "embeddingTokenizerPath",
            "summarizerProfile", "summarizerRuntimePath", "summarizerModelPath", "summarizerTokenizerPath",
            "summarizerModel", "summarizerEndpoint", "ollamaUrl", "compactModel",
        )
    ),
    _none("rpcTimeoutMs", number(), 30000, _TRANSPORT),
    _none("maxRetries", number(), 3, _TRANSPORT),
    _none("logLevel", TEXT, ABSENT, _TRANSPORT),
)  # fmt: skip


def _markdown(prefix: str, when: tuple[str, Any], *unread: Row) -> tuple[Row, ...]:
    switch = f"{prefix}Enabled"
    shared: dict[str, Any] = {"when": when, "needs": ("authored", "libravdb"), "unless_false": switch}
    return (
        _none(switch, FLAG, False, "files are read where authored.paths names any"),
        Row(f"{prefix}Roots", TEXTS, [], (Key("authored.paths"),), _roots, **shared),
        Row(f"{prefix}Include", TEXTS, [], (Key("authored.include"),), **shared),
        Row(f"{prefix}Exclude", TEXTS, [], (Key("authored.exclude"),), **shared),
        _none(f"{prefix}DebounceMs", number(), 150, _WATCH),
        *unread,
    )


def _roots(paths: list[str]) -> list[str]:
    if any(character in path for path in paths for character in "*?["):
        raise InexpressibleError("the plugin's roots are folders, no globs")
    return paths


_AUTHORED = (
    *_markdown("markdownIngestion", _MARKDOWN, _none("markdownIngestionCollection", TEXT, "global", _UNREAD)),
    *_markdown("markdownIngestionObsidian", _OBSIDIAN),
    _none("dreamPromotionEnabled", FLAG, False, _DIARY),
    _none("dreamPromotionDiaryPath", TEXT, ABSENT, _DIARY),
    _none("dreamPromotionUserId", TEXT, ABSENT, _DIARY),
    _none("dreamPromotionDebounceMs", number(), 150, _DIARY),
)

_REFUSED = "the code reads {}, and the manifest refuses it"

TABLE = Table(
    name="libravdb",
    plugin="libravdb-memory",
    version="1.4.4",
    base=(
        "system=libravdb",
        "compaction.rules=1.4.4",
        "assembly.rules=1.4.4",
        "admission.promotion=always",
    ),
    rows=(*_RETRIEVAL, *_ADMISSION, *_COMPACTION, *_AUTHORED, *_MODELS),
    choices={
        "authored": (Choice("libravdb", {}),),
        "embedder": (
            Choice("minilm", {"embeddingProfile": "all-minilm-l6-v2"}),
            Choice("nomic", {"embeddingProfile": "nomic-embed-text-v1.5"}),
        ),
    },
    reasons={
        "fusion": "the plugin ranks by two passes; versions up to 1.3.11 ranked by alpha, beta and gamma",
        "fusion.k1": _REFUSED.format("section7CoarseTopK"),
        "fusion.k2": _REFUSED.format("section7SecondPassTopK"),
        "fusion.theta1": _REFUSED.format("section7Theta1"),
        "fusion.kappa": _REFUSED.format("section7Kappa"),
        "fusion.recency_weight": _REFUSED.format("section7AuthorityRecencyWeight"),
        "fusion.frequency_weight": _REFUSED.format("section7AuthorityFrequencyWeight"),
        "fusion.authority_weight": _REFUSED.format("section7AuthorityAuthoredWeight"),
        "decay": _REFUSED.format("section7AuthorityRecencyLambda"),
        "ranking.stages.hops.eta": _REFUSED.format("section7HopEta"),
        "ranking.stages.hops.theta_hop": _REFUSED.format("section7HopThreshold"),
        "ranking": "the plugin has one way of ranking",
        "source": "topK decides how deep every part of the search goes",
        "assembly.shares.hard_fraction": _REFUSED.format("authoredHardBudgetFraction"),
        "assembly.shares.soft_fraction": _REFUSED.format("authoredSoftBudgetFraction"),
        "assembly.shares.guidance_fraction": _REFUSED.format("elevatedGuidanceBudgetFraction"),
        "assembly.tail.min_turns": _REFUSED.format("continuityMinTurns"),
        "assembly.tail.budget_tokens": _REFUSED.format("continuityTailBudgetTokens"),
        "compaction.min_turns": _REFUSED.format("continuityMinTurns"),
        "compaction.tail_budget_tokens": _REFUSED.format("continuityTailBudgetTokens"),
        "compaction.prior_context_tokens": _REFUSED.format("continuityPriorContextTokens"),
        "recovery.failure.floor_score": _REFUSED.format("recoveryFloorScore"),
        "recovery.failure.min_top_k": _REFUSED.format("recoveryMinTopK"),
        "recovery.failure.min_mean_confidence": _REFUSED.format("recoveryMinConfidenceMean"),
        "admission.promotion": "the plugin's code promotes every turn of a user, whatever its score",
        "compaction": "the plugin's code has one way, `compaction.rules=1.4.4`",
        "assembly": "the plugin's code has one way, `assembly.rules=1.4.4`",
        "summarizer": "the daemon has models of its own",
        "authored": "how files are read is a rule of the plugin's code",
        "embedder": "the daemon has profiles of its own: embeddingProfile, embeddingModelPath",
    },
)
"""Everything that the plugin's manifest has."""
