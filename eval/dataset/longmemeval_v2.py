"""LongMemEval-V2's files read as haystacks: what web agents did, and questions of which nobody says what answers them.

Three files: `questions.jsonl`, `trajectories.jsonl`, and which trajectories each question is asked of, by its id:
`haystacks/lme_v2_small.json` or `lme_v2_medium.json`.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from eval.dataset.card import PinnedFile, Release
from eval.dataset.fields import Record, json_lines, json_value
from eval.dataset.longmemeval_files import ABSTENTION, Asked, Haystack, Session
from eval.dataset.published import Shape, head, unpacked_lines
from lcm.clock import EPOCH
from lcm.errors import DatasetError

ASKED_AT = EPOCH + timedelta(days=1)
"""After all that happened: nothing here is dated."""
_BEGUN = re.compile(r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\[\s*"')
HAYSTACKS_V2 = Shape(
    "a JSON object that holds a list of trajectories a question (haystacks/lme_v2_small.json)",
    lambda path: _BEGUN.match(head(path)) is not None,
)
_QUESTIONS = PinnedFile(
    "questions.jsonl", "0a3ae5ebea938c24d7800e1e0b0828e08ae1646f939a53853b2b8cdc08e292b7", size_bytes=286_186
)
_TRAJECTORIES = PinnedFile(
    "trajectories.jsonl",
    "363cec9a8e87aa8d9101ce4e600aadbf7031d674056ebe4f969e8424abc5f3c6",
    size_bytes=1_195_604_539,
)


def _release(size: str, sha256: str) -> Release:
    return Release(
        f"v2_{size}",
        f"LongMemEval-V2, haystacks of the {size} tier, xiaowu0162/longmemeval-v2 f152293",
        (PinnedFile(f"haystacks/lme_v2_{size}.json", sha256), _QUESTIONS, _TRAJECTORIES),
        "https://huggingface.co/datasets/xiaowu0162/longmemeval-v2/resolve/f152293e235517d504809563c833d7190b8c713b/",
        licence="Apache-2.0",
    )


RELEASES_V2 = (
    _release("small", "9b5301defb23a088a5f06e45ff8d5f35e569d78305a66d492046a9fff9b46593"),
    _release("medium", "4756d5126347f0d18f045bb6c47b08cb3b23e9db24386cc48a9b2879e7969b59"),
)


def files_beside(path: Path) -> tuple[Path, Path]:
    """The questions and the trajectories of a file of haystacks: beside it, or in the folder above.

    Raises:
        DatasetError: if one of them lies in neither.
    """
    for place in (path.parent, path.parent.parent):
        found = place / _QUESTIONS.path, place / _TRAJECTORIES.path
        if all(one.is_file() for one in found):
            return found
    raise DatasetError(
        f"{path} says which trajectories a question is asked of; {_QUESTIONS.path} and {_TRAJECTORIES.path} are not "
        "both beside it, nor in the folder above; `lcm datasets longmemeval` tells how to get them"
    )


def haystacks_v2(path: Path, only: Sequence[str] | None, known: list[str]) -> Iterator[Haystack]:
    """A haystack a question; of the trajectories those are kept that one of the questions is asked of.

    Args:
        path: of the haystacks.
        only: the questions that are taken, by id; None: all.
        known: the ids of all are added here, in order.
    """
    of_questions, of_trajectories = files_beside(path)
    content = json_value(path)
    given = Record(path.name, content if isinstance(content, dict) else {})
    known += given.fields
    wanted = {name: given.texts(name) for name in given.fields if only is None or name in only}
    questions = {one.get("id", str): one for one in json_lines(unpacked_lines(of_questions), of_questions.name)}
    sessions = _sessions(of_trajectories, {one for ids in wanted.values() for one in ids})
    for question_id, ids in wanted.items():
        if question_id not in questions:
            raise given.wrong(question_id, f"is no question of {of_questions.name}")
        if missing := [one for one in ids if one not in sessions]:
            raise given.wrong(question_id, f"names {missing[0]!r}, which {of_trajectories.name} does not hold")
        yield _haystack(question_id, questions[question_id], tuple(sessions[one] for one in dict.fromkeys(ids)))


def _haystack(question_id: str, question: Record, sessions: tuple[Session, ...]) -> Haystack:
    category = question.get("question_type", str)
    is_abstention = category.endswith("-abs")
    asked = Asked(
        query_id=question_id,
        text=question.get("question", str),
        category=ABSTENTION if is_abstention else category,
        asked_at=ASKED_AT,
        evidence=(),
        is_own=True,
        is_abstention=is_abstention,
        answer=question.find_words("answer"),
        has_picture=question.find("image", str) is not None,
    )
    return Haystack(question_id, sessions, (asked,), doubled=0, unfound=0, is_asked_early=False)


def _sessions(path: Path, wanted: Collection[str]) -> Mapping[str, Session]:
    """Read the trajectories that are wanted, by their ids."""
    found = {}
    for record in json_lines(unpacked_lines(path), path.name):
        name = record.get("id", str)
        if name in wanted:
            found[name] = Session(name, None, tuple(_turns(record)))
    return found


def _turns(record: Record) -> Iterator[Record]:
    """Give the turns of a trajectory: the goal; of each state the page as text, the thought and the action; the end."""
    yield _turn(record, "user", record.get("goal", str))
    for state in record.each("states"):
        yield _turn(state, "tool", state.get("url", str), state.get("accessibility_tree", str))
        done = [state.find(name, str) for name in ("thought", "action")]
        if any(done):
            yield _turn(state, "assistant", *done)
    if outcome := record.find("outcome", str):
        yield _turn(record, "tool", f"outcome: {outcome}")


def _turn(record: Record, role: str, *lines: str | None) -> Record:
    return Record(record.place, {"role": role, "content": "\n".join(filter(None, lines))})
