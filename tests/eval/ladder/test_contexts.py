"""How contexts show a message: what is told of each sums to what the measure says of all."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from eval.dataset.sample import Sample
from eval.experiment.workspace import WorkspaceEvaluator
from eval.ladder.explanation import shown, with_budget
from eval.ladder.losses import Asked, asked_again
from eval.measures.measure import MemoryReading
from eval.measures.retention import Retention
from pipelines.config import building, conf_folder
from tests.support.composing import composed

FOLDED = (
    *("compaction=lossless", "summarizer=extractive", "compaction.budget_tokens=2000", "compaction.fresh_tail_count=4"),
    *("compaction.leaf_chunk_tokens=800", "compaction.min_leaf_tokens=0", "compaction.leaf_target_tokens=100"),
)


def evaluator_of(*chosen: str) -> WorkspaceEvaluator:
    """Over two workspaces of the sample."""
    config, sample = composed([*chosen, "embedder=hashing"]), Sample().load()
    data = sample.part(sample.workspaces[:2])
    return WorkspaceEvaluator(data, building.build(config, "memory"), building.build(config, "replay"), measures={})


def asked_of(evaluator: WorkspaceEvaluator) -> Iterator[Asked]:
    return (one for workspace in evaluator.dataset.workspaces for one in asked_again(evaluator, workspace))


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [((), {"whole"}), (("system=unified",), {"whole"}), (FOLDED, {"in other words", "by expanding"})],
    ids=["default", "unified", "folded"],
)
def test_what_is_told_of_each_message_sums_to_what_is_retained(chosen: Sequence[str], expected: set[str]) -> None:
    evaluator = evaluator_of(*chosen)
    data = evaluator.dataset
    measure, evidence, seen = Retention(budgets=(800, 3000)), data.evidence(), set()
    for asked in asked_of(evaluator):
        ranked = asked.memory.rank(asked.queries)
        values = measure.rows(MemoryReading(asked.memory, asked.queries, ranked, evidence, data))
        retained = dict(values.filter(measure="retained@800").select("query_id", "value").iter_rows())
        for query in (one for one in asked.queries if one.query_id in evidence):
            alone, own = replace(asked, queries=[query]), ranked.filter(query_id=query.query_id)
            told = [next(shown(alone, one, own, data, measure)) for one in evidence[query.query_id]]
            seen |= {one.how for one in told}
            share = sum(one.how != "not shown" for one in told) / len(told)
            assert share == pytest.approx(retained[query.query_id])
            assert all(one.budget_tokens == 800 and one.why for one in told)
    assert seen >= expected


CUT = re.compile(r"cut by the budget: it takes ([\d,.]+) tokens, and ([\d,.]+) of ([\d,.]+) are left$")


@pytest.mark.parametrize("assembly", conf_folder.groups()["assembly"])
@pytest.mark.parametrize("folded", [(), FOLDED], ids=["whole", "folded"])
def test_the_budget_is_named_only_where_it_lacks_room(assembly: str, folded: Sequence[str]) -> None:
    evaluator, seen = evaluator_of(f"assembly={assembly}", *folded), set()
    data = evaluator.dataset
    evidence = data.evidence()
    for asked in asked_of(evaluator):
        for query in [one for one in asked.queries if one.query_id in evidence][:4]:
            alone, own = replace(asked, queries=[query]), asked.memory.rank([query])
            for one in shown(alone, evidence[query.query_id][0], own, data, Retention(budgets=(300, 32_000))):
                assert "budget" not in one.why or CUT.search(one.why), one.why
                if cut := CUT.search(one.why):
                    takes, left, of = (float(number.replace(",", "")) for number in cut.groups())
                    assert takes > left and of <= one.budget_tokens == 300
                seen.add((one.how == "not shown", one.why.partition(": ")[2].partition(" doc_")[0]))
    why = {words for is_missing, words in seen if is_missing}
    if evaluator.system.assembly.shows_documents:
        where = "folded into sum_" if folded else "outside the fresh tail"
        assert any(words.startswith(where) and words.endswith("not recalled") for words in why)
    elif not folded:
        assert any(CUT.search(words) for words in why)
        assert assembly != "lossless" or any("older than" in words for words in why)


def test_one_budget_takes_the_place_of_the_measures_own() -> None:
    assert with_budget(Retention(), 123).budgets == (123,)
    assert with_budget(Retention(), None) == Retention()
