"""Manifests of several versions: what each takes and refuses, and that a version nobody knows is refused."""

import pytest

from lcm.errors import LcmError
from lcm.plugins.settings.tables import TABLES, VERSIONS, check, named_table
from lcm.plugins.settings.translation import read

OLD, NEW = TABLES["libravdb"], named_table("libravdb@1.10")
BETA = named_table("lancedb_pro@1.1.0-beta.11")
TAKEN = {
    **{f"section7{name}": value for name, value in {
        "CoarseTopK": 9, "SecondPassTopK": 7, "Theta1": 0.3, "Kappa": 0.4, "HopEta": 0.6, "HopThreshold": 0.1,
        "AuthorityRecencyLambda": 2e-5, "AuthorityRecencyWeight": 0.6, "AuthorityFrequencyWeight": 0.1,
        "AuthorityAuthoredWeight": 0.2,
    }.items()},
    "continuityMinTurns": 3, "authoredHardBudgetFraction": 0.4, "authoredSoftBudgetFraction": 0.2,
    "elevatedGuidanceBudgetFraction": 0.2, "continuityTailBudgetTokens": 200, "continuityPriorContextTokens": 80,
    "recoveryFloorScore": 0.2, "recoveryMinTopK": 3, "recoveryMinConfidenceMean": 0.6,
}  # fmt: skip
REFUSED = {
    "gatingWeights": {"w1c": 0.3}, "gatingTechNorm": 2, "gatingCentroidK": 5, "markdownIngestionCollection": "notes",
}  # fmt: skip


def test_a_setting_of_one_manifest_is_refused_by_the_other() -> None:
    for settings, taking, refusing in ((TAKEN, NEW, OLD), (REFUSED, OLD, NEW)):
        for name, value in settings.items():
            check({name: value}, taking.schema(), taking.plugin)
            with pytest.raises(LcmError, match=f"{name}: no such setting"):
                check({name: value}, refusing.schema(), refusing.plugin)
    assert all(any(path.startswith(name) for path in NEW.refuses) for name in REFUSED)


def test_what_the_newer_takes_is_read_into_keys_of_ours() -> None:
    found = read(NEW, {"topK": 5, **TAKEN}).values
    assert (found["fusion.k1"], found["fusion.k2"], found["source.session_pool_size"]) == (9, 7, 5)
    assert (found["assembly.tail.min_turns"], found["compaction.min_turns"]) == (3, 3)
    assert found["decay.durable_rate"] == 2e-5
    assert (found["assembly.tail.budget_tokens"], found["recovery.failure.min_top_k"]) == (200, 3)
    assert "compaction.target_cluster_size" not in read(NEW, {"compactThreshold": 30}).values
    assert read(NEW, {"topK": 3}).values["fusion.k1"] == read(OLD, {"topK": 3}).values["fusion.k1"] == 8


def test_a_reason_names_the_version_that_is_asked_for() -> None:
    assert "the manifest refuses it" in OLD.reason("fusion.theta1")
    assert "1.10.14-beta.1 refuses gatingTechNorm" in NEW.reason("admission.technical_norm")
    assert "compactThreshold no longer carries it" in NEW.reason("compaction.target_cluster_size")


def test_a_version_may_be_cut_short_where_that_leaves_one() -> None:
    for named in ("libravdb@1.10", "libravdb@1.4", "libravdb@1.4.4"):
        assert named_table(named).version.startswith(named.partition("@")[2])
    with pytest.raises(LcmError, match=r"choose of: 1\.4\.4, 1\.10\.14-beta\.1"):
        named_table("libravdb@1")


@pytest.mark.parametrize("named", ["libravdb@", "libravdb@1.1", "libravdb@2", "lossless_claw@0.7", "lancedb_pro@1.1.1"])
def test_a_version_that_nobody_knows_is_refused_with_those_that_are(named: str) -> None:
    with pytest.raises(LcmError, match="no manifest of it is known; choose of: ") as refusal:
        named_table(named)
    assert all(version in str(refusal.value) for version in VERSIONS[named.partition("@")[0]])


def test_what_a_later_version_switches_on_by_itself_is_read_so() -> None:
    least = {"embedding": {"apiKey": "${EMBED_KEY}"}}
    older, newer = (read(named_table(f"lancedb_pro@1.1.0-beta.{number}"), least) for number in (10, 11))
    assert (older.choices["reranker"], newer.choices["reranker"]) == ("none", "cosine")
    related = "ranking.stages.related.per_result"
    assert related not in newer.values
    switched_on = {**least, "retrieval": {"neighborEnrichment": {"enabled": True}}}
    assert read(named_table("lancedb_pro@1.1.0-beta.11"), switched_on).values[related] == 2


NEIGHBOURS, FOLDERS = "ranking.stages.related.per_result", "authored.paths"


@pytest.mark.parametrize(
    ("table", "document", "key", "expected"),
    [
        (BETA, {"retrieval": {"neighborEnrichment": {"maxPerResult": 3}}}, NEIGHBOURS, None),
        (BETA, {"retrieval": {"neighborEnrichment": {"maxPerResult": 3, "enabled": False}}}, NEIGHBOURS, None),
        (BETA, {"retrieval": {"neighborEnrichment": {"maxPerResult": 3, "enabled": True}}}, NEIGHBOURS, 3),
        (OLD, {"markdownIngestionRoots": ["/a"]}, FOLDERS, ["/a"]),
        (OLD, {"markdownIngestionRoots": ["/a"], "markdownIngestionEnabled": False}, FOLDERS, None),
        (OLD, {"markdownIngestionObsidianRoots": ["/a"]}, FOLDERS, ["/a"]),
        (NEW, {"markdownIngestionRoots": ["/a"]}, FOLDERS, None),
        (NEW, {"markdownIngestionObsidianRoots": ["/a"]}, FOLDERS, None),
        (NEW, {"markdownIngestionRoots": ["/a"], "markdownIngestionEnabled": True}, FOLDERS, ["/a"]),
    ],
)
def test_a_switch_that_is_not_set_is_taken_as_the_code_of_the_version_does(table, document, key, expected) -> None:
    found = read(table, {"embedding": {"apiKey": "${EMBED_KEY}"}, **document} if table is BETA else document)
    assert found.values.get(key) == expected
    assert bool(found.ignored) is (expected is None)
    assert all(why.endswith("nabled is off") for why in found.ignored.values())
