"""Written questions: a model asks without the words of the message, or the question is dropped."""

import json
from dataclasses import dataclass, field

from eval.questions.kinds import Written
from eval.questions.making import make_questions
from tests.support.recorded_talk import recorded

LINES = [
    ("user", "My grandmother planted seven walnut trees behind the old chapel.", 0),
    ("user", "The ferry to Orkney leaves Scrabster harbour every Tuesday morning.", 0),
]
GOOD, BAD = "Who grew nuts for a relative?", "Where were the walnuts planted?"


@dataclass
class Scripted:
    """Gives its replies one after another, and keeps what it was asked."""

    replies: list[str]
    asked: list[str] = field(default_factory=list)

    def reply(self, system: str, prompt: str, is_usable: object = None, **_: object) -> str:
        self.asked.append(prompt)
        return self.replies[len(self.asked) - 1]


def questions(*texts: str) -> list[str]:
    return [json.dumps({"question": text}) for text in texts]


def test_a_question_that_shares_a_stem_is_asked_for_again_and_told_why() -> None:
    model = Scripted(questions(BAD, GOOD))
    made = make_questions([recorded(LINES[:1])], {"written": Written(model, rarest=1)})
    assert [one.question for one in made.questions] == [GOOD]
    assert made.questions[0].generated == "written"
    assert made.questions[0].evidence[0].message_ids == ("talk:0",)
    assert "grandmother, planted, seven, walnut, trees" in model.asked[0]
    assert f"it uses walnuts, planted: {BAD}" in model.asked[1]
    assert made.reports[0].overlap == 0


def test_what_still_shares_is_dropped_and_counted_and_a_reply_that_is_no_question_is_a_try() -> None:
    model = Scripted(questions(*["Are there walnuts in Orkney?"] * 6))
    made = make_questions([recorded(LINES)], {"written": Written(model, rarest=1)})
    assert (made.questions, made.reports[0].made, made.reports[0].dropped) == ((), 0, 2)
    stop_words_alone = json.dumps({"question": "so it is?"})
    model = Scripted(["I cannot do that.", json.dumps({"question": ["a list"]}), stop_words_alone])
    made = make_questions([recorded(LINES[:1])], {"written": Written(model, rarest=1)})
    assert (made.questions, made.reports[0].dropped, len(model.asked)) == ((), 1, 3)


def test_only_as_many_are_asked_for_as_are_wanted_and_no_long_message() -> None:
    model = Scripted(questions(GOOD))
    made = make_questions([recorded(LINES)], {"written": Written(model, n=1, rarest=1)})
    assert len(made.questions) == len(model.asked) == 1
    made = make_questions([recorded(LINES)], {"written": Written(model, rarest=1, most_forbidden=5)})
    assert (made.reports[0].possible, len(model.asked)) == (0, 1)
