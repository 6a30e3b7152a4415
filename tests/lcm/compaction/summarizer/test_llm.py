import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lcm.compaction.summarizer.llm import Llm, prompt, system_prompt, within
from lcm.errors import AuthError, ModelError, UnansweredError, UnrecordedReplyError
from lcm.language_model.openai_compatible import OpenAiCompatible
from lcm.language_model.replies import NoModel, Recorded
from lcm.records.summary import SummaryRequest, SummaryResult
from tests.lcm.retrieval.reranker.loopback import Answer, Asked, Loopback, serving
from tests.support.language_models import Failing, Replying

MARKER = "[LCM fallback summary; truncated for context management]"
CUT = "llm gave no words: the beginning of the text stood in"


def model(server: Loopback, **settings: Any) -> OpenAiCompatible:
    return OpenAiCompatible(
        base_url=server.url, **{"model": "m", "api_key_env": None, "retries": 0, "timeout_seconds": 5.0} | settings
    )


def said(text: str) -> Answer:
    return Answer({"choices": [{"message": {"content": text}}]})


def words_of(request: Asked) -> str:
    """What the prompt shows of the conversation."""
    found = re.search(r"<conversation_segment>\n(.*)\n</conversation_segment>", request.body["messages"][-1]["content"])
    assert found is not None
    return found[1]


def one(summarizer: Llm, request: SummaryRequest, incidents: Counter[str] | None = None) -> SummaryResult:
    (result,) = summarizer.summarize([request], incidents=Counter() if incidents is None else incidents)
    return result


def test_a_summary_is_what_the_model_replied_to_the_prompt_of_its_depth() -> None:
    request = SummaryRequest("the words", 321, depth=2, previous="before")
    with serving(lambda _: said(" short\n")) as server:
        result = one(Llm(model(server), custom_instructions="Name ships."), request)
    assert result == SummaryResult("short", 0.5, "llm", "m")
    (asked,) = server.asked
    assert [message["content"] for message in asked.body["messages"]] == [
        system_prompt(),
        prompt(request, "Name ships."),
    ]


@pytest.mark.parametrize(
    ("own", "settings", "is_aggressive", "sent"),
    [
        (0.7, {}, False, 0.2),
        (0.7, {}, True, 0.1),
        (0.7, {"normal_temperature": 0.5}, False, 0.5),
        (0.7, {"aggressive_temperature": 0}, True, 0),
        (0.7, {"normal_temperature": None}, False, 0.7),
        (None, {"normal_temperature": None}, False, None),  # as lossless-claw's code does
    ],
)
def test_the_temperature_and_the_length_are_those_of_the_request(own, settings, is_aggressive, sent):
    with serving(lambda _: said("short")) as server:
        one(Llm(model(server, temperature=own), **settings), SummaryRequest("words", 96, is_aggressive=is_aggressive))
    assert (server.asked[0].body.get("temperature"), server.asked[0].body["max_tokens"]) == (sent, 96)


def test_so_many_requests_are_under_way_at_once_and_their_results_come_in_order() -> None:
    together = threading.Barrier(3, timeout=30)

    def answer(request: Asked) -> Answer:
        together.wait()
        return said(words_of(request).upper())

    texts = [f"text {i}" for i in range(6)]
    with serving(answer) as server:
        summarizer = Llm(model(server, timeout_seconds=60.0), workers=3)
        results = summarizer.summarize([SummaryRequest(text, 96) for text in texts], incidents=Counter())
    assert [result.text for result in results] == [text.upper() for text in texts]


def test_of_a_blank_text_nothing_is_asked() -> None:
    asked = Replying("short")
    for text in ("", " \n", "\ufeff"):
        result = one(Llm(asked), SummaryRequest(text, 96))
        assert (result.text, result.confidence) == ("", 0.0)
        assert str(result.failure) == "there is nothing to summarise: the text is blank"
    assert asked.asked == []


def test_a_model_that_fails_is_a_failure() -> None:
    incidents = Counter[str]()
    how_to = "no language model is configured: choose language_model=openai_compatible"
    for failing, message in ((NoModel(), how_to), (Failing(), "the model is gone")):
        result = one(Llm(failing), SummaryRequest("words", 96), incidents)
        assert (result.text, result.confidence, result.method) == ("", 0.0, "llm")
        assert isinstance(result.failure, ModelError)
        assert str(result.failure).startswith(message)
    assert not incidents


@pytest.mark.parametrize(("status", "kind"), [(401, AuthError), (403, AuthError), (404, ModelError), (500, ModelError)])
def test_a_server_that_refuses_is_a_failure_of_that_request_alone(status, kind):
    def answer(request: Asked) -> Answer:
        return Answer(status=status) if words_of(request) == "bad" else said("short")

    with serving(answer) as server:
        asked = [SummaryRequest("good", 96), SummaryRequest("bad", 96)]
        good, bad = Llm(model(server)).summarize(asked, incidents=Counter())
    assert (good.text, good.failure) == ("short", None)
    assert (bad.text, type(bad.failure)) == ("", kind)


EMPTY = Answer({"choices": [{"message": {"content": ""}}]})


@pytest.mark.parametrize(("target", "units"), [(96, 4 * 96), (10, 256), (64, 256), (65, 260)])
def test_where_no_words_come_the_beginning_of_the_text_stands_in(target, units, caplog):
    incidents = Counter[str]()
    with serving(lambda _: EMPTY) as server:
        result = one(Llm(model(server)), SummaryRequest(" " + "x" * (units + 1), target), incidents)
        assert one(Llm(model(server)), SummaryRequest(" short enough\n", target)).text == "short enough"
    assert result == SummaryResult("x" * units + "\n" + MARKER, 0.0, "truncate", "m")
    assert len(server.asked) == 2 * 2  # each a second time, for low reasoning
    assert "the beginning of the text stands in" in caplog.text
    assert incidents == {CUT: 1}


def test_a_model_that_takes_too_long_gave_no_words() -> None:
    incidents = Counter[str]()
    with serving(lambda _: Answer(stall_after=0)) as server:
        assert one(Llm(model(server, timeout_seconds=0.05)), SummaryRequest("words", 96), incidents).text == "words"
    assert incidents == {CUT: 1}


def test_a_summary_is_given_up_after_its_time_whatever_is_still_tried() -> None:
    with serving(lambda _: Answer(stall_after=0)) as server:
        impatient = Llm(model(server, timeout_seconds=30.0), cuts_unanswered=False, timeout_seconds=0.1)
        result = one(impatient, SummaryRequest("words", 96))
    assert isinstance(result.failure, UnansweredError)
    assert str(result.failure) == "the language model gave no summary within 0.1 s"


def test_what_a_model_says_of_time_itself_is_its_own_failure() -> None:
    def failing() -> str:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        within(failing, 10.0)
    assert within(lambda: "said", None) == within(lambda: "said", 10.0) == "said"


def test_that_nothing_stands_in_is_a_choice() -> None:
    incidents = Counter[str]()
    with serving(lambda _: EMPTY) as server:
        result = one(Llm(model(server), cuts_unanswered=False), SummaryRequest("words", 96), incidents)
    assert result.text == ""
    assert "answered with an empty reply" in str(result.failure)
    assert not incidents


def test_every_request_of_a_batch_that_gets_no_words_is_counted() -> None:
    incidents = Counter[str]()
    results = Llm(Replying(" \ufeff\n"), workers=8).summarize([SummaryRequest("words", 96)] * 50, incidents=incidents)
    assert results == [SummaryResult("words", 0.0, "truncate")] * 50
    assert incidents == {CUT: 50}


def test_recorded_replies_stand_in_for_the_server_and_nothing_for_what_was_not_recorded(tmp_path: Path) -> None:
    requests = [SummaryRequest("a", 96), SummaryRequest("b", 96, is_aggressive=True), SummaryRequest("b", 96)]
    with serving(lambda request: said(f"{words_of(request)} {len(server.asked)}")) as server:
        first = Llm(Recorded(model(server), str(tmp_path), "record")).summarize(requests, incidents=Counter())
        assert len(server.asked) == 3
    replaying = Llm(Recorded(model(server), str(tmp_path), "replay"))
    assert replaying.summarize(requests, incidents=Counter()) == first
    assert first[0].model == "m"
    with pytest.raises(UnrecordedReplyError):
        replaying.summarize([SummaryRequest("c", 96)], incidents=Counter())
