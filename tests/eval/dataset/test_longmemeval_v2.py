"""LongMemEval-V2: trajectories as sessions, and questions of which nobody says what answers them."""

import json
from pathlib import Path
from typing import Any

import pytest

from eval.dataset.dataset import Dataset
from eval.dataset.longmemeval import ASKED_AT, LongMemEval
from lcm.errors import DatasetError


def question(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": name, "domain": "web", "environment": "shop", "question_type": "static", "question": f"Where is {name}?",
        "image": None, "answer": "below the footer", "eval_function": "exact",
    } | changes  # fmt: skip


def trajectory(name: str, **changes: Any) -> dict[str, Any]:
    states = [
        {"url": "shop/1", "thought": "look below", "accessibility_tree": "[1] link Imprint", "action": "click [1]",
         "screenshot": f"screenshots/{name}/0.png"},
        {"url": "shop/2", "thought": None, "accessibility_tree": "[1] heading Imprint", "action": None,
         "screenshot": f"screenshots/{name}/1.png"},
    ]  # fmt: skip
    told = {"id": name, "domain": "web", "environment": "shop", "goal": f"find {name}", "start_url": "shop/1"}
    return told | {"outcome": "success", "states": states} | changes


QUESTIONS = [question("q1"), question("q2", question_type="static-abs", image="images/q2.png", answer="nowhere")]
TRAJECTORIES = [trajectory("t1"), trajectory("t2", outcome=None), trajectory("t3")]
HAYSTACKS = {"q1": ["t2", "t1"], "q2": ["t1"]}


def written(folder: Path, haystacks: dict[str, list[str]] = HAYSTACKS, below: str = "haystacks") -> str:
    for name, records in (("questions", QUESTIONS), ("trajectories", TRAJECTORIES)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
    (folder / below).mkdir(exist_ok=True)
    (folder / below / "lme_v2_small.json").write_text(json.dumps(haystacks, indent=2))
    return str(folder)


def loaded(folder: str, **settings: Any) -> Dataset:
    return LongMemEval(folder, protocol="all", **settings).load()


@pytest.mark.parametrize("below", ["haystacks", "."])
def test_a_question_is_asked_of_its_trajectories_in_their_order(tmp_path: Path, below: str) -> None:
    dataset = loaded(written(tmp_path, below=below))
    told = {one.workspace_id: [(m.role, m.content) for m in one.messages] for one in dataset.transcripts}
    pages = [
        ("tool", "shop/1\n[1] link Imprint"), ("assistant", "look below\nclick [1]"),
        ("tool", "shop/2\n[1] heading Imprint"),
    ]  # fmt: skip
    first = [("user", "find t1"), *pages, ("tool", "outcome: success")]
    assert told == {"q1": [("user", "find t2"), *pages, *first], "q2": first}
    assert {m.created_at for one in dataset.transcripts for m in one.messages} == {None}
    assert len({m.session_id for m in dataset.transcripts[0].messages}) == 2
    assert [(q.query_id, q.text, q.category, q.asked_at) for q in dataset.queries] == [
        ("q1", "Where is q1?", "static", ASKED_AT), ("q2", "Where is q2?", "abstention", ASKED_AT),
    ]  # fmt: skip
    assert (dataset.qrels.height, dataset.session_qrels.height) == (0, 0)
    assert dataset.reference_answers() == {"q1": ["below the footer"]}
    assert dataset.unanswerable == {"q2"}
    assert dataset.protocol == "protocol=all times=none unit=turn,session"
    assert "1 questions are asked of a picture, which is not read" in dataset.notes


def test_a_part_keeps_its_trajectories_alone_and_another_file_is_another_dataset(tmp_path: Path) -> None:
    where = written(tmp_path)
    part = loaded(where, only=["q2"])
    assert part.workspaces == ["q2"]
    assert loaded(where, file="haystacks/lme_v2_small.json").digest == (whole := loaded(where).digest)
    (tmp_path / "trajectories.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in TRAJECTORIES[:2]))
    assert loaded(where).digest != whole


@pytest.mark.parametrize(
    ("haystacks", "told"),
    [
        ({"q1": ["t1", "t9"]}, r"lme_v2_small\.json: 'q1' names 't9', which trajectories\.jsonl does not hold"),
        ({"q9": ["t1"]}, r"'q9' is no question of questions\.jsonl"),
    ],
)
def test_what_another_file_lacks_is_told(tmp_path: Path, haystacks: dict[str, list[str]], told: str) -> None:
    with pytest.raises(DatasetError, match=told):
        loaded(written(tmp_path, haystacks))


def test_it_needs_its_three_files_and_a_protocol_that_asks_without_evidence(tmp_path: Path) -> None:
    where = written(tmp_path)
    with pytest.raises(DatasetError, match=r"names no evidence.*set dataset\.protocol=all"):
        LongMemEval(where).load()
    (tmp_path / "trajectories.jsonl").unlink()
    with pytest.raises(DatasetError, match=r"trajectories\.jsonl are not both beside it"):
        loaded(where)
