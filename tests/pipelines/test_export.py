"""Exported presets compose to what was exported, say what plugins cannot be told, and are read back."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval.configuration import config_hash
from lcm.errors import LcmError
from pipelines import export, import_preset
from pipelines.config import building, composition
from pipelines.config.building import identity, resolved
from pipelines.config.presets import composed_of, hash_of
from pipelines.export import ExportSource

TURNED = {
    "lancedb_pro": ["fusion.dense_weight=0.61", "decay.beta_core=0.9", "ranking.stages.noise_filter=null"],
    "lossless_claw": [
        "compaction.context_threshold=0.6",
        "summarizer=llm",
        "language_model=openai_compatible",
        'summarizer.custom_instructions="Keep \\${NAME} as it is."',  # looks like a reference, and is words
    ],
    "libravdb": ["fusion.theta1=0.3", "admission.threshold=0.2", "measures.retention.budgets=[500]"],
}


def exported(to: Path, *overrides: str, name: str = "turned", targets: tuple[str, ...] = ("yaml",)) -> dict[str, Any]:
    config = building.resolved(composition.composed(overrides))
    return export.export(ExportSource(config, {"kind": "overrides", "overrides": list(overrides)}), to, name, targets)


def named(provenance: dict[str, Any], target: str) -> dict[str, str]:
    return {entry["key"]: entry["reason"] for entry in provenance["targets"][target]["not_expressible"]}


@pytest.mark.parametrize("system", TURNED)
def test_a_preset_composes_to_what_was_exported(system: str, tmp_path: Path) -> None:
    overrides = (f"system={system}", *TURNED[system])
    provenance = exported(tmp_path / "preset", *overrides)
    again = composed_of(tmp_path / "preset", "experiment=turned", *provenance["overrides_beside"])
    config = composition.composed(overrides)
    assert again == building.resolved(config)
    assert hash_of(again) == provenance["config_hash"] == config_hash(identity(resolved(config)))
    assert composed_of(tmp_path / "preset", "system=turned")["memory"] == again["memory"]


def test_a_preset_can_still_be_swapped_and_turned(tmp_path: Path) -> None:
    """Numbers stand in files of their groups, and stages still refer to the groups."""
    exported(tmp_path, "system=lancedb_pro", "fusion.dense_weight=0.61", "decay.beta_core=0.9")
    assert {path.name for path in (tmp_path / "decay").iterdir()} == {"turned.yaml"}
    assert not (tmp_path / "ranking").exists()  # like the choice of ours, and so named
    text = (tmp_path / "system" / "turned.yaml").read_text()
    assert set(yaml.safe_load(text)) == {"defaults"}
    place = f"hydra.searchpath=['file://{tmp_path}']"
    config = building.resolved(composition.composed([place, "system=turned", "decay=weibull_slow"]))
    assert config["ranking"]["stages"]["fusion"]["dense_weight"] == 0.61
    assert config["ranking"]["stages"]["decay"]["decay"] == config["decay"]
    assert config["decay"]["beta_core"] == 0.8


def test_what_a_plugin_cannot_be_told_is_named(tmp_path: Path) -> None:
    provenance = exported(
        tmp_path,
        "system=lancedb_pro",
        "ranking.order=code",
        "fusion.floor_ratio=0.8",
        "decay.importance_modulation=12",
        "source.dense_pool_size=50",
        "reinforcement=recall",
        targets=("lancedb_pro", "lossless_claw", "libravdb"),
    )
    document = json.loads((tmp_path / "lancedb_pro.json").read_text())
    assert "importanceModulation" not in document["decay"]
    told = named(provenance, "lancedb_pro")
    assert told["fusion.floor_ratio"] == "it is a constant of the plugin's code"
    assert told["decay.importance_modulation"] == ("decay.importanceModulation: 12 is greater than the maximum of 10")
    assert told["source.dense_pool_size"] == "the plugin's store gives no more than 20, whatever candidatePoolSize says"
    assert told["reinforcement.tiers.core_access_threshold"].startswith("written, without effect")
    assert {"extraction", "deduplication"} < set(told)
    assert "fusion.dense_weight" not in told
    assert named(provenance, "libravdb")["fusion"].startswith("the plugin ranks by two passes")
    assert any("ranking" in key for key in named(provenance, "lossless_claw"))


def test_the_code_of_a_plugin_can_be_told_of_all_but_its_keys(tmp_path: Path) -> None:
    """What stands for the plugins' own behaviour has nothing that they could not be told."""
    from lcm.plugins.settings.tables import TABLES

    for name in ("lancedb_pro", "libravdb"):
        provenance = exported(tmp_path / name, *TABLES[name].base, targets=(name,))
        assert named(provenance, name) == {}


def test_two_keys_of_one_setting_must_agree(tmp_path: Path) -> None:
    provenance = exported(
        tmp_path, "system=lossless_claw", "compaction.fresh_tail_count=10", targets=("lossless_claw",)
    )
    told = named(provenance, "lossless_claw")
    assert told["assembly.fresh_tail_count"] == "freshTailCount sets it, as it sets compaction.fresh_tail_count"
    lines = (tmp_path / "lossless_claw.env").read_text().splitlines()
    assert "LCM_FRESH_TAIL_COUNT=10" in lines
    assert "LCM_CIRCUIT_BREAKER_COOLDOWN_MS=1800000" in lines  # no setting of the manifest


def test_a_file_of_a_plugin_becomes_overrides_that_compose(tmp_path: Path) -> None:
    document = {
        "embedding": {"apiKey": "k"},
        "retrieval": {"vectorWeight": 0.6, "rerank": "none", "filterNoise": False},
        "scopes": {"default": "team", "definitions": {"team": {"description": 'all, "of" us'}}},
    }
    path = tmp_path / "lancedb_pro.json"
    path.write_text(json.dumps(document))
    found = import_preset.imported_plugin([path])
    config = building.resolved(composition.composed(found.overrides))
    assert config == found.config
    assert config["fusion"]["dense_weight"] == 0.6
    assert config["reranker"]["_target_"].endswith("NoReranker")
    assert config["ranking"]["stages"]["noise_filter"] is None
    assert config["scopes"]["definitions"] == {"team": 'all, "of" us'}


def test_a_hosts_file_is_looked_into(tmp_path: Path) -> None:
    path = tmp_path / "openclaw.json"
    held = {"libravdb-memory": {"topK": 5, "alpha": 0.9}}
    path.write_text(json.dumps({"plugins": {"configs": held}}))
    found = import_preset.imported_plugin([path])
    assert found.config["fusion"]["k2"] == 5
    assert found.config["fusion"]["k1"] == 2 * 5
    assert found.notes["alpha"].startswith("no code of the plugin reads it")


def test_variables_beside_a_file_stand_above_it(tmp_path: Path) -> None:
    (tmp_path / "lossless_claw.json").write_text('{"contextThreshold": 0.5, "maxExpandTokens": 5000}')
    (tmp_path / "lossless_claw.env").write_text("LCM_CONTEXT_THRESHOLD=0.4\n")
    found = import_preset.imported_plugin([tmp_path / "lossless_claw.json", tmp_path / "lossless_claw.env"])
    assert found.config["compaction"]["context_threshold"] == 0.4
    assert found.searching == ("recall.max_expand_tokens=5000",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is no JSON"),
        ("[]", "must hold an object, got list"),
        ('{"a": 1}', "nothing tells whose configuration it is"),
        ('{"plugins": {}}', "holds configurations of no plugin known here"),
        ('{"contextThreshold": NaN}', "settings.json: contextThreshold must be a finite number, got NaN$"),
        (
            '{"retrieval": {"x": [1, -Infinity]}}',
            "settings.json: retrieval.x.1 must be a finite number, got -Infinity$",
        ),
        ('{"topK": 1e999}', "settings.json: topK must be a finite number, got Infinity$"),
        ('{"topK": "8", "alpha": 1}', "libravdb-memory: topK: '8' is not of type 'number'"),
        ('{"topKK": 8, "alpha": 1}', r"settings\.json: .*topKK: no such setting: is topK meant"),
    ],
)
def test_a_file_that_is_none_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(LcmError, match=problem):
        import_preset.imported_plugin([path])


def test_what_is_taken_over_as_another_value_is_told_and_no_key_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lancedb_pro.json"
    document = {"embedding": {"apiKey": "k-1"}, "llm": {"apiKey": "sk-2"}, "retrieval": {"candidatePoolSize": 50}}
    path.write_text(json.dumps(document))
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-3")
    assert import_preset.main([str(path)]) == 0
    needs = "Needs a key: set the environment variable OPENROUTER_API_KEY\n"
    assert needs not in capsys.readouterr().out
    monkeypatch.delenv("OPENROUTER_API_KEY")
    assert import_preset.main([str(path)]) == 0
    out = capsys.readouterr().out
    assert needs in out
    for told in (
        "embedding.apiKey: *** has no value of embedder.api_key_env: a key is never read",
        "llm.apiKey: *** has no value of language_model.model.api_key_env: a key is never read",
        "retrieval.candidatePoolSize: 50 is taken as 20 in source.dense_pool_size: the plugin's store gives no more",
        'retrieval.rerank: "cross-encoder" is taken as reranker=none: without a key the plugin means',
    ):
        assert f"Not taken over as it stands: {told}" in out
    assert out.count("Not taken over") == 4
    assert "k-1" not in out
    assert "sk-2" not in out


def with_older_names(node: Any) -> Any:
    """Settings as they were saved when each class had a module of its own."""
    if not isinstance(node, dict):
        return node
    older = {name: with_older_names(inner) for name, inner in node.items()}
    if str(older.get("_target_")).startswith("lcm.retrieval."):
        module, _, name = node["_target_"].rpartition(".")
        older["_target_"] = f"{module}.of_its_own.{name}"
    return older


def test_what_was_saved_under_older_names_is_exported_and_read_as_it_is_today(tmp_path: Path) -> None:
    saved = with_older_names(building.resolved(composition.composed(("system=lancedb_pro", "decay.beta_core=0.9"))))
    assert "of_its_own" in saved["decay"]["_target_"]
    provenance = export.export(ExportSource(saved, {"kind": "run"}), tmp_path, "turned", ("yaml",))
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"decay", "experiment", "system"}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(saved, sort_keys=False))
    (tmp_path / "provenance.json").write_text(json.dumps({**provenance, "config_hash": hash_of(saved)}))
    assert import_preset.imported_preset(tmp_path).notes == {}


def test_an_exported_preset_is_composed_again(tmp_path: Path) -> None:
    overrides = ("system=lancedb_pro", "decay.beta_core=0.9")
    exported(tmp_path, *overrides)
    found = import_preset.imported_preset(tmp_path / "provenance.json")
    assert found.notes == {}
    assert found.config["decay"]["beta_core"] == 0.9
    (tmp_path / "decay" / "turned.yaml").write_text(
        (tmp_path / "decay" / "turned.yaml").read_text().replace("beta_core: 0.9", "beta_core: 0.7")
    )
    assert "choices have changed" in import_preset.imported_preset(tmp_path).notes["experiment=turned"]
