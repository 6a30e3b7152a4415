"""`lcm judge`: pools, judges of three kinds, what is kept and what follows from it."""

import json
import re
import shlex
from pathlib import Path

import ir_measures
import polars as pl
import pytest
from ir_measures import nDCG

from eval.dataset.sample import Sample
from eval.questions.question import Evidence
from pipelines.cli import BAD_INPUT
from tests.lcm.retrieval.reranker.loopback import Answer, Asked
from tests.pipelines.conftest import QUICK, Finished, Lcm
from tests.support.local_server import said, served
from tests.support.looked_at import NO_CONTEXTS, copied
from tests.support.read_questions import read_questions

RUNS = (*QUICK, NO_CONTEXTS)


@pytest.fixture
def runs(compared: Finished, tmp_path: Path) -> Path:
    """A copy of two runs of the sample, and of the sample's own judgements as files, in which `lcm` works."""
    return copied(compared, tmp_path)


def judge(lcm: Lcm, *arguments: str) -> Finished:
    return lcm("judge", "first", "second", "into=qrels", *arguments)


def judgements(place: Path) -> list[dict]:
    return [json.loads(line) for line in (place / "qrels" / "judgements.jsonl").read_text().splitlines()]


def test_a_file_is_taken_over_and_evaluated_by(lcm: Lcm, runs: Path) -> None:
    done = judge(lcm, "from=sample/qrels.trec", "judge=author")
    assert done.code == 0, done.stderr
    held, total = map(int, re.findall(r"(\d+) of (\d+) pooled messages of 102 queries are judged", done.stdout)[0])
    assert 0 < held < total  # the rest of the pool nobody judged: not even the sample's author said so
    taken = judgements(runs)
    assert len(taken) == 228
    assert {(one["judge"], one["kind"], one["relevance"]) for one in taken} == {("author", "file", 1)}
    assert ir_measures_of(runs / "qrels" / "qrels.trec") == ir_measures_of(runs / "sample" / "qrels.trec")
    again = judge(lcm, "from=sample/qrels.trec", "judge=author")
    assert again.stdout == done.stdout
    assert len(judgements(runs)) == 228  # what is known is not written again
    questions = [json.loads(line) for line in (runs / "qrels" / "questions.jsonl").read_text().splitlines()]
    assert len(questions) == 91
    assert all(one["evidence"] and one["asked_at"] and one["workspace"] for one in questions)
    command = told_command(done.stdout)
    assert command == ["dataset=sample", 'judgements="qrels/qrels.trec"']
    again, first = measured_again(lcm, runs, command), measures_of(runs / "first")
    assert again == {name: first[name] for name in again}  # without what contexts hold


def test_a_pooled_run_is_judged_and_evaluated_by_the_ids_of_its_haystack(lcm: Lcm, runs: Path) -> None:
    pooled = [*RUNS, "replay.haystack=pooled", "hydra.run.dir=pooled"]
    assert lcm("evaluate", *pooled).code == 0
    assert lcm("datasets", "write", "pooled", "to=whole").code == 0
    done = lcm("judge", "pooled", "into=qrels", "from=whole/qrels.trec")
    assert done.code == 0, done.stderr
    command = told_command(done.stdout)
    assert 'replay.haystack="pooled"' in command
    assert measured_again(lcm, runs, command) == measures_of(runs / "pooled")
    written = lcm("datasets", "write", *command[:-1], "to=again whole")
    assert written.code == 0, written.stderr
    assert (runs / "again whole" / "qrels.trec").read_text() == (runs / "whole" / "qrels.trec").read_text()


def told_command(out: str) -> list[str]:
    """The overrides of the evaluation that a judgement ends with."""
    (found,) = re.findall(r"^Evaluate by it: lcm evaluate (.+)$", out, re.MULTILINE)
    return shlex.split(found)


def measures_of(folder: Path) -> dict:
    return json.loads((folder / "summary.json").read_text())["measures"]


def measured_again(lcm: Lcm, runs: Path, command: list[str]) -> dict:
    done = lcm("evaluate", *RUNS, *command, "hydra.run.dir=again")
    assert done.code == 0, done.stderr
    return measures_of(runs / "again")


def ir_measures_of(path: Path) -> set[tuple[str, str, int]]:
    return {(one.query_id, one.doc_id, one.relevance) for one in ir_measures.read_trec_qrels(str(path))}


def test_a_model_judges_and_with_people_it_gives_a_powered_interval(lcm: Lcm, runs: Path) -> None:
    """The model calls relevant what shares a long word with the question; a person agreed on 4 of 12 queries."""

    def answer(asked: Asked) -> Answer:
        prompt = asked.body["messages"][-1]["content"]
        question, excerpt = prompt.split("Excerpt:")
        marked = next(line for line in excerpt.splitlines() if line.startswith(">>> "))
        words = {word.lower() for word in re.findall(r"\w{5,}", question)}
        return said(json.dumps({"relevance": 2 if any(word in marked.lower() for word in words) else 0}))

    with served(answer) as asked:
        model = ("language_model=openai_compatible", "language_model.model.base_url=${oc.env:LCM_TEST_SERVER}/v1")
        part = ("queries=12", "depth=4")
        done = judge(lcm, *part, *model, "language_model.model.model=tiny")
        assert done.code == 0, done.stderr
        pooled = len(asked)
        assert f"{pooled} of {pooled} pooled messages of 12 queries are judged" in done.stdout
        assert {(one["judge"], one["kind"]) for one in judgements(runs)} == {("tiny", "model")}
        again = judge(lcm, *part, *model, "language_model.model.model=tiny")
        assert again.code == 0
        assert len(asked) == pooled  # nothing is asked twice
    mine = judgements(runs)
    queries = list(dict.fromkeys(one["query_id"] for one in mine))[:4]
    rows = [
        f"{one['query_id']} 0 {one['document_id']} {one['relevance'] if i % 5 else 0}"
        for i, one in enumerate(mine)
        if one["query_id"] in queries
    ]
    (runs / "person.trec").write_text("\n".join(rows))
    done = judge(lcm, *part, "from=person.trec")
    assert done.code == 0, done.stderr
    assert re.search(rf"tiny and person +│ +{len(rows)} ", done.stdout)
    row = next(line for line in done.stdout.splitlines() if line.startswith("│ first system"))
    _, _, people, by_model, both, weight, _ = (cell.strip() for cell in row.split("│"))
    assert re.fullmatch(r"[01]\.\d{3} \[-\] n=4", people)
    assert re.fullmatch(r"-?[01]\.\d{3} \[-\] n=4\+8", both)
    assert "people judged 4 queries whole; of fewer than 20 an interval would hold" in done.stdout
    assert 0 <= float(by_model) <= 1
    assert 0 <= float(weight) <= 1


def test_an_interval_is_shown_from_20_judged_queries_on_and_of_a_share_lies_in_0_to_1(lcm: Lcm, runs: Path) -> None:
    found = list(ir_measures.read_trec_run(str(runs / "sample" / "runs" / "first.system.trec")))
    queries = [one.query_id for one in Sample().load().queries]
    shown = {}
    for n in (19, 20):
        part = [queries[i * len(queries) // n] for i in range(n)]
        rows = [
            f"{one.query_id} 0 {one.doc_id} {int(one.query_id != part[0])}" for one in found if one.query_id in part
        ]
        (runs / f"people{n}.trec").write_text("\n".join(rows))
        done = lcm("judge", "first", f"into=qrels{n}", f"from=people{n}.trec", f"queries={n}", "depth=1")
        assert done.code == 0, done.stderr
        row = next(line for line in done.stdout.splitlines() if line.startswith("│ first system"))
        shown[n] = row.split("│")[2].strip()
        notes = ("of fewer than 20 an interval would hold", "below 30 these intervals are too narrow")
        assert [note in done.stdout for note in notes] == [n < 20, n >= 20]
    assert re.fullmatch(r"0\.9\d\d \[-\] n=19", shown[19])
    assert re.fullmatch(r"0\.950 \[0\.\d{3} 1\.000\] n=20", shown[20])  # half a width further it would end at 1.048


def test_exported_questions_say_of_themselves_alone_how_they_were_generated(lcm: Lcm, runs: Path) -> None:
    said = ("We sail at dawn.", "Bring the kettle.")
    (runs / "talk.jsonl").write_text("".join(f'{{"role": "user", "content": "{one}"}}\n' for one in said))
    asked = [
        {"question_id": "made", "question": "When do we sail?", "evidence": "at dawn", "generated": "known_item"},
        {"question_id": "asked", "question": "Bring what?", "evidence": "the kettle"},
    ]
    (runs / "asked.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in asked))
    assert lcm("evaluate", "talk.jsonl", "asked.jsonl", *RUNS, "hydra.run.dir=mixed").code == 0
    refused = lcm("judge", "first", "mixed", "into=both")
    assert "mixed is a run over other data than first" in refused.stderr
    assert lcm("datasets", "write", "mixed", "to=mixed_files").code == 0
    done = lcm("judge", "mixed", "into=judged", "from=mixed_files/qrels.trec")
    assert done.code == 0, done.stderr
    questions = {one.question_id: one.generated for one in read_questions(runs / "judged" / "questions.jsonl")}
    assert questions == {"made": "known_item", "asked": None}
    command = told_command(done.stdout)
    assert command[:3] == ["dataset=own", 'dataset.paths=["talk.jsonl"]', 'dataset.questions="asked.jsonl"']
    assert lcm("evaluate", *RUNS, *command, "hydra.run.dir=again").code == 0


def test_a_judged_pool_says_what_nobody_judged(lcm: Lcm, runs: Path) -> None:
    """The first five of the system are judged by the sample's judgements, all others as not relevant."""
    relevant = ir_measures_of(runs / "sample" / "qrels.trec")
    found = list(ir_measures.read_trec_run(str(runs / "sample" / "runs" / "first.system.trec")))
    ranked: dict[str, list] = {}
    for one in sorted(found, key=lambda one: -one.score):
        ranked.setdefault(one.query_id, []).append(one.doc_id)
    pairs = {(query, name) for query, names in ranked.items() for name in names[:5]}
    wrong = next(query.query_id for query in Sample().load().queries if query.category == "unanswerable")
    relevant.add((wrong, ranked[wrong][0], 1))  # somebody found an answer after all
    rows = [f"{query} 0 {name} {int((query, name, 1) in relevant)}" for query, name in sorted(pairs)]
    (runs / "pool.trec").write_text("\n".join(rows))
    assert judge(lcm, "from=pool.trec", "depth=5").code == 0
    questions = {one.question_id: one for one in read_questions(runs / "qrels" / "questions.jsonl")}
    assert not any(one.is_unanswerable or one.category == "unanswerable" for one in questions.values())
    assert questions[wrong].evidence == (Evidence(message_ids=(ranked[wrong][0],)),)
    done = lcm("evaluate", *RUNS, "judgements=qrels/qrels.trec", "hydra.run.dir=pooled")
    assert done.code == 0, done.stderr
    values = pl.read_parquet(runs / "pooled" / "per_query.parquet").filter(arm="system")
    measured = {
        name: dict(values.filter(measure=name).select("query_id", "value").iter_rows())
        for name in values["measure"].unique()
    }
    assert set(measured["judged@5"].values()) == {1.0}
    assert all(value == 5 / min(10, len(ranked[query])) for query, value in measured["judged@10"].items())
    assert "nobody judged" in done.stdout
    assert "judged@10" in done.stdout
    theirs = {
        one.query_id: one.value
        for one in ir_measures.iter_calc([nDCG @ 10], list(ir_measures.read_trec_qrels(str(runs / "pool.trec"))), found)
    }
    assert measured["nDCG@10"] == pytest.approx({query: theirs[query] for query in measured["nDCG@10"]})


def test_one_judge_is_of_one_kind(lcm: Lcm, runs: Path) -> None:
    assert judge(lcm, "from=sample/qrels.trec", "judge=ada").code == 0
    refused = judge(lcm, "judge=ada")
    assert (refused.code, refused.stderr.count("\n")) == (BAD_INPUT, 1)
    assert "judge 'ada' of qrels/judgements.jsonl is a file: name another, judge=NAME" in refused.stderr
