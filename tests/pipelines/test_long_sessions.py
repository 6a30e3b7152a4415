"""Long sessions fold: leaves, summaries of summaries, expansion and contexts under pressure act, in every system."""

from collections import Counter
from typing import Any

import polars as pl
import pytest

from eval.experiment.outcome import Outcome
from eval.measures.names import SYSTEM_ARM
from eval.replay.workspace_replay import PerTurn
from lcm.memory.memory import Memory
from lcm.protocols.context import ContextRequest
from lcm.retrieval.summary_expansion import OpenedSummaries
from lcm.store.summaries import messages_beneath
from pipelines.config import building, composition, conf_folder
from pipelines.steps.point import experiment_of

BUDGETS = (1000, 2000, 4000, 8000)
CHEAP = ("embedder=hashing", "arms=none", "measures.latency.queries=0", "means.resamples=5", "cache=false")
DEEP = ("long_sessions", "long_sessions_lossless_claw")
"""Those whose summaries are summarised again."""


def test_the_sweep_has_every_experiment_over_long_sessions() -> None:
    swept = composition.composed_whole(["sweep=long_sessions"], conf_folder.EVALUATE).hydra.sweeper.params
    named = [name for name in conf_folder.groups()["experiment"] if name.startswith("long_sessions")]
    assert sorted(swept["experiment"].split(",")) == sorted(named)
    assert len(named) == 4


def test_leaves_condensed_summaries_eviction_and_expansion_act() -> None:
    config = composition.composed([f"experiment={DEEP[1]}", *CHEAP])
    dataset = building.build(config, "dataset").load()
    (transcript,) = dataset.transcripts
    with Memory.open(building.build(config, "memory")) as memory:
        list(PerTurn().play(memory, [transcript], dataset.queries[-1:]))
        made = Counter(memory.store.compactions()["event"].to_list())
        depths = memory.store.summary_frame().group_by("depth").len().sort("depth")["len"].to_list()
        assert made["leaf"] == depths[0] > 10
        assert made["condensed"] == sum(depths[1:]) > 3
        assert len(depths) > 2
        asks = [ContextRequest(budget, "which port does the server use?") for budget in BUDGETS]
        tight, *_, wide = memory.assemble(transcript.conversation_id, asks)
        assert tight.evicted > wide.evicted == 0
        assert any(item.kind == "summary" for item in wide.items)
        deep = memory.store.summary_frame().filter(pl.col("depth") > 1)["summary_id"][0]
        with memory.store.reading() as connection:
            beneath = messages_beneath(connection, [deep])
        assert len(beneath) > 20
        assert set(beneath) <= {message.message_id for message in transcript.messages}


def measured(overrides: list[str]) -> Outcome:
    return experiment_of(composition.composed([*overrides, *CHEAP])).run(lambda *_: None)


def value(found: Outcome, measure: str) -> float | None:
    rows = found.means.filter(arm=SYSTEM_ARM, group="all", measure=measure)
    return None if rows.is_empty() else float(rows["value"][0])


@pytest.mark.full
@pytest.mark.parametrize("experiment", [*DEEP, "long_sessions_libravdb", "long_sessions_neighbours"])
def test_a_system_folds_long_sessions_and_retains_some_of_them(
    experiment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, real = Counter[str](), OpenedSummaries.expand

    def counted(self: OpenedSummaries, frame: pl.DataFrame, batch: Any) -> pl.DataFrame:
        wider = real(self, frame, batch)
        opened["rows"] += len(wider) - len(frame)
        return wider

    monkeypatch.setattr(OpenedSummaries, "expand", counted)
    found = measured([f"experiment={experiment}"])
    done = found.sections["compression"]
    assert done["ratio"] > 1.5
    assert done["depth_0"] > 10
    assert done["recoverability"] == 1
    assert (found.counts["contexts"], found.counts["contexts_compacted"]) == (1, 1)
    (flag,) = (flag for flag in found.flags if "contexts compacted" in flag)
    assert flag.startswith("1 of 1 contexts compacted; the largest had ")
    assert all((value(found, f"retained@{budget}") or 0) > 0 for budget in BUDGETS)
    assert (value(found, "retained@1000") or 0) < (value(found, "retained@8000") or 0)  # under pressure
    if experiment in DEEP:
        assert done["depth_1"] > 1
        assert done["depth_2"] > 0
    if experiment == "long_sessions":
        assert opened["rows"] > 0
    elif experiment != "long_sessions_libravdb":
        assert (value(found, "expansions@8000") or 0) >= 1


def test_rules_of_the_session_outlive_compaction_word_for_word() -> None:
    config = composition.composed(["experiment=long_sessions_libravdb", *CHEAP])
    dataset = building.build(config, "dataset").load()
    (transcript,) = dataset.transcripts
    said = {message.message_id: message.content for message in transcript.messages}
    with Memory.open(building.build(config, "memory")) as memory:
        list(PerTurn().play(memory, [transcript], dataset.queries[-1:]))
        kept = memory.store.documents().filter(kind="guidance").select("source_message_ids", "text").rows()
    assert all(text == said[message_id].strip() for (message_id,), text in kept)
    for rule in ("Always run make check before you commit.", "you must never push on a Friday"):
        assert any(rule in text for _, text in kept)
