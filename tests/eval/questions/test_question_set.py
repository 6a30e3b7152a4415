"""Laws of all kinds of generated questions, over made-up talks and the sample."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.dataset.sample import Sample
from eval.questions.kinds import KnownItem, LaterMention, SelfRetrieval, Successor, ToolResult
from eval.questions.making import Kind, QuestionSet, make_questions, talks_of
from eval.questions.quotation import overlap
from lcm.records.conversation import Part, Transcript
from tests.support.recorded_talk import Line, recorded

KINDS: Mapping[str, Kind] = {
    "known_item": KnownItem(least_words=2, rarest=1),
    "successor": Successor(least_words=1),
    "self_retrieval": SelfRetrieval(words=4, least_content=2),
    "later_mention": LaterMention(least_words=1),
    "tool_result": ToolResult(least_words=1),
}
WORDS = ("walnut", "trees", "Stromness", "the", "harbour", "ferry_times", "4417", "is", "old?", "Orkney.", "東京駅")


@st.composite
def talks(draw: st.DrawFn) -> list[Transcript]:
    """Conversations of few words, so that copies, ties and repeated calls are frequent; some without times."""
    transcripts = []
    for name in ("one", "two"):
        lines: list[Line] = []
        for number, days in enumerate(sorted(draw(st.lists(st.integers(0, 4), max_size=8)))):
            text = " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=9)))
            role = draw(st.sampled_from(("user", "assistant", "tool")))
            call = str(number // 2)
            parts = [Part("text", text=text, tool_call_id=call if role == "tool" else None)]
            if role == "assistant":
                parts.append(Part("tool", tool_call_id=call, tool_name="read", tool_input=f'["{text}"]'))
            lines.append((role, text, days, tuple(parts)))
        transcript = recorded(lines, name)
        if draw(st.booleans()):
            untimed = tuple(replace(message, created_at=None) for message in transcript.messages)
            transcript = replace(transcript, messages=untimed)
        transcripts.append(transcript)
    return transcripts


def broken(transcripts: Sequence[Transcript], made: QuestionSet) -> list[str]:
    """Laws that do not hold, in words."""
    turns = {turn.message.message_id: (talk, turn) for talk in talks_of(transcripts) for turn in talk.turns}
    wrong = []
    for question in made.questions:
        (evidence,) = question.evidence
        told = [turns[message_id] for message_id in evidence.message_ids]
        workspaces = {talk.workspace_id for talk, _ in told}
        if not told or len(workspaces) != 1 or len(set(evidence.message_ids)) != len(told):
            wrong.append(f"{question}: evidence of one workspace, each once")
        if question.asked_at is not None and any(turn.said_at > question.asked_at for _, turn in told):
            wrong.append(f"{question}: evidence is older")
        copies = [talk.turns[place] for talk, turn in told for place in talk.copies[turn.text]]
        visible = [turn for turn in copies if question.asked_at is None or turn.said_at <= question.asked_at]
        if not {turn.message.message_id for turn in visible} <= set(evidence.message_ids):
            wrong.append(f"{question}: byte-equal copies are evidence")
        if not question.question.strip() or question.generated != question.category:
            wrong.append(f"{question}: words and kind")
    ids = [question.question_id for question in made.questions]
    if len(set(ids)) != len(ids):
        wrong.append("ids are unique")
    return wrong


@given(talks(), st.integers(0, 3))
def test_the_laws_hold_of_any_talk(transcripts: list[Transcript], seed: int) -> None:
    made = make_questions(transcripts, KINDS, seed)
    assert broken(transcripts, made) == []
    assert make_questions(transcripts, KINDS, seed) == made


@pytest.fixture(scope="module")
def sample() -> tuple[Transcript, ...]:
    return Sample().load().transcripts


@pytest.fixture(scope="module")
def of_sample(sample: tuple[Transcript, ...]) -> QuestionSet:
    return make_questions(sample, {name: replace(kind, n=30) for name, kind in KINDS.items()}, seed=1)  # type: ignore[type-var]


def test_every_kind_makes_as_many_of_the_sample_as_it_wants(
    sample: tuple[Transcript, ...], of_sample: QuestionSet
) -> None:
    assert broken(sample, of_sample) == []
    assert {one.kind: one.made for one in of_sample.reports} == dict.fromkeys(KINDS, 30)


def test_overlap_is_the_share_of_content_words_in_the_evidence() -> None:
    assert overlap("Where do the walnut trees grow?", ["Walnut trees are old.", "A tree."]) == (2 / 3 + 0) / 2
    assert overlap("Where is it?", ["It is."]) is None
    assert overlap("walnut", []) is None


def test_a_report_holds_the_mean_overlap_of_its_kind_and_another_seed_draws_others(
    sample: tuple[Transcript, ...], of_sample: QuestionSet
) -> None:
    texts = {message.message_id: message.content for one in sample for message in one.messages}
    for report in of_sample.reports:
        shares = [
            overlap(one.question, [texts[message_id] for message_id in one.evidence[0].message_ids])
            for one in of_sample.questions
            if one.generated == report.kind
        ]
        known = [share for share in shares if share is not None]
        assert report.overlap == pytest.approx(sum(known) / len(known))
    other = make_questions(sample, {"known_item": KnownItem(n=30, least_words=2, rarest=1)}, seed=2)
    first = {one.question for one in of_sample.questions if one.generated == "known_item"}
    assert {one.question for one in other.questions} != first
