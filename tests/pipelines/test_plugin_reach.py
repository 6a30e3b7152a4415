"""Which settings a plugin can take: said before a sweep or a study begins, and first of an export."""

import json
from typing import Any

import pytest

from lcm.errors import LcmError
from lcm.plugins.settings.tables import named_table
from pipelines import tune
from pipelines.config.building import resolved
from pipelines.steps import sweep
from pipelines.steps.plugin_reach import keys_of_memory, reach_of_swept
from tests.pipelines.conftest import Lcm
from tests.support.composing import composed

VERSION = "1.1.0-beta.11"
CONSTANT = "not fusion.floor_ratio: it is a constant of the plugin's code"
SWEPT = ("fusion.dense_weight=0.5,0.7", "fusion.floor_ratio=0.8,0.9", "system=lancedb_pro", "embedder=hashing")


def begun(*_: Any) -> Any:
    raise LcmError("the first point runs")


def test_a_sweep_says_before_its_first_point_which_keys_the_version_takes(
    lcm: Lcm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "_run", begun)
    done = lcm("evaluate", "-m", f"for=lancedb_pro@{VERSION}", *SWEPT, "tracking=none", "measures.latency.queries=0")
    assert done.stderr == "lcm: the first point runs\n"
    assert f"1 of 2 swept keys reach lancedb_pro {VERSION}; {CONSTANT}\n" in done.stdout
    single = lcm("evaluate", "for=lancedb_pro", "tracking=none")
    assert "for=lancedb_pro says which swept keys a plugin can take: add -m" in single.stderr
    unknown = lcm("evaluate", "-m", "for=lancedb", *SWEPT)
    assert "no such plugin: 'lancedb'; choose from: lancedb_pro" in unknown.stderr


def test_a_study_says_so_before_its_first_trial(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "_tune", begun)
    space = "space={fusion.dense_weight: {low: 0.2, high: 0.8}, fusion.floor_ratio: {choices: [0.8, 0.9]}}"
    quick = (*SWEPT[2:], "tracking=none", "measures.latency.queries=0")
    done = lcm("tune", space, f"for=lancedb_pro@{VERSION}", *quick)
    assert done.stderr == "lcm: the first point runs\n"
    assert f"1 of 2 swept keys reach lancedb_pro {VERSION}; {CONSTANT}\n" in done.stdout


@pytest.mark.parametrize(
    ("plugin", "points", "told"),
    [
        ("lancedb_pro", ["fusion.dense_weight=0.5", "fusion.dense_weight=0.7"], "1 of 1 swept keys reach lancedb_pro"),
        ("lancedb_pro", ["source.dense_pool_size=20", "source.dense_pool_size=50"], "not source.dense_pool_size: the"),
        ("lancedb_pro", ["decay=weibull", "decay=exponential"], "0 of 1 swept keys reach lancedb_pro 1.1.0-"),
        ("lancedb_pro", ["summarizer.coverage=0.3", "summarizer.coverage=0.5"], "no part of this memory takes it up"),
        ("libravdb@1.10", ["fusion.dense_weight=0.5"], "0 of 1 swept keys reach libravdb 1.10.14-beta.1; not fusion"),
    ],
)  # fmt: skip
def test_a_key_reaches_a_plugin_where_each_of_its_values_does(plugin: str, points: list[str], told: str) -> None:
    configs = [resolved(composed(["system=lancedb_pro", *point.split()])) for point in points]
    keys = keys_of_memory([*points, "system=lancedb_pro", "measures.latency.queries=0"], configs[0])
    assert keys == (points[0].partition("=")[0],)
    assert told in reach_of_swept(named_table(plugin), configs, keys)


def test_an_export_begins_with_how_many_tuned_settings_reach_the_version(lcm: Lcm) -> None:
    tuned = ("system=lancedb_pro", "fusion.dense_weight=0.61", "fusion.floor_ratio=0.8", "decay=exponential")
    done = lcm("export", *tuned, "to=p", "target=lancedb_pro", f"for={VERSION}", "tracking=none")
    assert done.stdout.startswith(f"1 of 3 tuned settings reach lancedb_pro {VERSION}\n"), done.stderr
    told = json.loads((done.place / "p" / "provenance.json").read_text())["targets"]["lancedb_pro"]
    assert told["tuned"] == f"1 of 3 tuned settings reach lancedb_pro {VERSION}"
    plain = lcm("export", "system=lancedb_pro", "to=plain", "target=lancedb_pro", "tracking=none")
    assert "tuned settings" not in plain.stdout


def test_of_a_point_of_a_sweep_what_was_swept_is_tuned(lcm: Lcm) -> None:
    small = ("system=hybrid", "embedder=hashing", "measures.latency.queries=0", "measures.retention.budgets=[]")
    done = lcm("evaluate", "-m", SWEPT[0], *small, "tracking=none", "report=false", "hydra.sweep.dir=s")
    assert done.code == 0, done.stderr
    exported = lcm("export", "s/0", "to=p", "target=lancedb_pro", "tracking=none")
    assert "1 of 1 tuned settings reach lancedb_pro 1.1.0-beta.10\n" in exported.stdout
