"""`lcm evaluate` with answers: options, a language model that is recorded and replayed, a judge beside the scores."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.eval.dataset.test_personamem_files import CONTEXTS, QUESTION, write_published
from tests.lcm.retrieval.reranker.loopback import Answer, Asked
from tests.pipelines.conftest import Lcm
from tests.support.local_server import said, served

QUICK = ("evaluate", "system=hybrid", "embedder=hashing", "arms=none", "tracking=none", "report=false")
RECORDED = (
    *("language_model=openai_compatible", "language_model.model.base_url=${oc.env:LCM_TEST_SERVER}/v1"),
    *("language_model.directory=replies", "means.resamples=20", "measures.answers.budget_tokens=500"),
)


def personamem(folder: Path) -> str:
    """Three questions: one is asked before what tells its answer is said."""
    contexts = {**CONTEXTS, "bo": [*CONTEXTS["bo"], {"role": "user", "content": "User: I build a wooden boat now."}]}
    boat = ["(a) A wireless kettle.", "(b) Your wooden boat.", "(c) Some orange paint."]
    asked = {"all_options": repr(boat), "shared_context_id": "bo", "user_question_or_message": "What do I build?"}
    questions = [
        QUESTION | asked | {"question_id": "late", "end_index_in_shared_context": "3"},
        QUESTION | asked | {"question_id": "early", "end_index_in_shared_context": "2"},
        QUESTION | asked | {"question_id": "other", "end_index_in_shared_context": "3", "correct_answer": "(c)"},
    ]
    write_published(folder, questions, contexts)
    return str(folder)


def test_personamem_is_evaluated_by_its_options(lcm: Lcm, tmp_path: Path) -> None:
    folder = personamem(tmp_path)
    done = lcm(*QUICK, "dataset=personamem", f"dataset.directory={folder}", "measures=answers")
    assert done.code == 0, done.stderr
    values = pl.read_parquet(done.folder / "per_query.parquet").filter(arm="system", measure="choice_accuracy")
    assert dict(values.select("query_id", "value").iter_rows()) == {"late": 1.0, "early": 0.0, "other": 0.0}
    kept = pl.read_parquet(done.folder / "answers.parquet")
    assert dict(kept.select("query_id", "answer").iter_rows()) == {"late": "b", "early": "", "other": "b"}
    assert done.summary["measures"]["choice_accuracy"]["value"] == pytest.approx(1 / 3)
    assert "judged_correct" not in done.summary["measures"]
    assert "choice_accuracy" in done.stdout
    assert "of 3 queries 3 offer options" in done.stdout
    assert "ranked nothing" not in done.stdout


def test_an_arm_that_ranks_nothing_is_told_and_the_others_are_held_against(lcm: Lcm, tmp_path: Path) -> None:
    folder = personamem(tmp_path)
    settings = [one for one in QUICK if one != "arms=none"]
    done = lcm(*settings, "dataset=personamem", f"dataset.directory={folder}", "measures=answers")
    assert done.code == 0, done.stderr
    assert "answers: without oracle, which ranked nothing" in done.stdout
    assert "by choice_accuracy the system is " in done.stdout


def _reply(request: Asked) -> Answer:
    """The answerer copies the first excerpt; the judge accepts short answers, and talks of one in three labelled."""
    prompt = request.body["messages"][-1]["content"]
    first = json.loads(prompt.split("\n")[0])
    if "references" not in first:
        excerpts = [json.loads(line) for line in prompt.split("\n")[1:]]
        return said(json.dumps({"answer": excerpts[0]["text"][:60] if excerpts else ""}))
    if len(first["question"]) % 3 == 0:
        return said("That depends on how one looks at it.")
    return said(json.dumps({"correct": len(first["answer"]) < 30}))


def test_answers_and_judgements_are_replayed_without_a_server(lcm: Lcm) -> None:
    with served(_reply) as asked:
        recorded = lcm(*QUICK, *RECORDED, "measures=answers_llm", "hydra.run.dir=recorded")
        assert asked
    assert recorded.code == 0, recorded.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LCM_TEST_SERVER", "http://127.0.0.1:9")
        replayed = lcm(
            *QUICK, *RECORDED, "measures=answers_llm", "language_model.mode=replay", "hydra.run.dir=replayed"
        )
    assert replayed.code == 0, replayed.stderr
    first, again = (
        json.loads((replayed.place / name / "summary.json").read_text()) for name in ("recorded", "replayed")
    )
    assert first["measures"] == again["measures"]
    assert first["incidents"] == again["incidents"]
    assert first["judge_agreement"] == again["judge_agreement"]
    assert first["measures"].keys() >= {"judged_correct", "squad_F1", "abstention_recall", "recall@10"}
    survived = first["incidents"]["labelled answers that the judge gave no verdict on"]
    assert first["judge_agreement"]["judged"] == first["judge_agreement"]["labelled"] - survived
    assert first["measures"]["judged_correct"]["n"] < first["measures"]["squad_F1"]["n"]
    assert "judge of answers (prompt 1): of 53 labelled answers it judges" in recorded.stdout
    assert "survived: answers that the judge gave no verdict on" in recorded.stdout
