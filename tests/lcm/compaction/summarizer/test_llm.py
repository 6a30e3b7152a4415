import os
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lcm.compaction.summarizer.deadline import within
from lcm.compaction.summarizer.llm import Llm, prompt, system_prompt
from lcm.errors import AuthError, ModelError, UnansweredError, UnrecordedReplyError
from lcm.language_model.none import NoModel
from lcm.language_model.openai_compatible import OpenAiCompatible
from lcm.language_model.recorded import Recorded
from lcm.protocols.models import LanguageModel
from lcm.records.summary import SummaryRequest, SummaryResult
from tests.lcm.retrieval.reranker.loopback import Answer, Asked, Loopback, serving
from tests.support.language_models import Failing, Replying

MARKER = "[LCM fallback summary; truncated for context management]"
CUT = "llm gave no words: the beginning of the text stood in"


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)


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
    ("settings", "is_aggressive", "temperature"),
    [
        ({}, False, 0.2),
        ({}, True, 0.1),
        ({"normal_temperature": 0.5}, False, 0.5),
        ({"aggressive_temperature": 0}, True, 0),
        ({"normal_temperature": None}, False, 0.7),
    ],
)
def test_the_temperature_and_the_length_are_those_of_the_request(
    settings: dict[str, Any], is_aggressive: bool, temperature: float
) -> None:
    with serving(lambda _: said("short")) as server:
        one(Llm(model(server, temperature=0.7), **settings), SummaryRequest("words", 96, is_aggressive=is_aggressive))
    assert server.asked[0].body["temperature"] == temperature
    assert server.asked[0].body["max_tokens"] == 96


def test_lossless_claws_code_sends_no_temperature() -> None:
    with serving(lambda _: said("short")) as server:
        one(Llm(model(server, temperature=None), normal_temperature=None), SummaryRequest("words", 96))
    assert "temperature" not in server.asked[0].body


@pytest.mark.parametrize("workers", [1, 3, 64])
def test_results_come_in_the_order_of_the_requests(workers: int) -> None:
    texts = [f"text {i}" for i in range(9)]
    with serving(lambda request: said(words_of(request).upper())) as server:
        results = Llm(model(server), workers=workers).summarize(
            [SummaryRequest(text, 96) for text in texts], incidents=Counter()
        )
    assert [result.text for result in results] == [text.upper() for text in texts]


def test_so_many_requests_are_under_way_at_once() -> None:
    together = threading.Barrier(3, timeout=30)

    def answer(_: Asked) -> Answer:
        together.wait()
        return said("short")

    with serving(answer) as server:
        results = Llm(model(server, timeout_seconds=60.0), workers=3).summarize(
            [SummaryRequest("words", 96)] * 6, incidents=Counter()
        )
    assert [result.text for result in results] == ["short"] * 6


def test_no_request_is_no_result() -> None:
    assert Llm(NoModel()).summarize([], incidents=Counter()) == []


@pytest.mark.parametrize("text", ["", " \n", "\ufeff"])
def test_of_a_blank_text_nothing_is_asked(text: str) -> None:
    asked = Replying("short")
    result = one(Llm(asked), SummaryRequest(text, 96))
    assert (result.text, result.confidence) == ("", 0.0)
    assert str(result.failure) == "there is nothing to summarise: the text is blank"
    assert asked.asked == []


@pytest.mark.parametrize(
    ("language_model", "message"),
    [(NoModel(), "no language model is configured"), (Failing(), "the model is gone")],
)
def test_a_model_that_fails_is_a_failure(language_model: LanguageModel, message: str) -> None:
    summarizer = Llm(language_model)
    incidents = Counter[str]()
    result = one(summarizer, SummaryRequest("words", 96), incidents)
    assert (result.text, result.confidence, result.method) == ("", 0.0, "llm")
    assert isinstance(result.failure, ModelError)
    assert message in str(result.failure)
    assert not incidents


@pytest.mark.parametrize(("status", "kind"), [(401, AuthError), (403, AuthError), (404, ModelError), (500, ModelError)])
def test_a_server_that_refuses_is_a_failure_of_that_request_alone(status: int, kind: type) -> None:
    def answer(request: Asked) -> Answer:
        return Answer(status=status) if words_of(request) == "bad" else said("short")

    with serving(answer) as server:
        good, bad = Llm(model(server)).summarize(
            [SummaryRequest("good", 96), SummaryRequest("bad", 96)], incidents=Counter()
        )
    assert good.text == "short"
    assert good.failure is None
    assert bad.text == ""
    assert type(bad.failure) is kind


EMPTY = Answer({"choices": [{"message": {"content": ""}}]})


@pytest.mark.parametrize(
    ("target", "units"),
    [(96, 4 * 96), (10, 256), (64, 256), (65, 260)],
)
def test_where_no_words_come_the_beginning_of_the_text_stands_in(
    target: int, units: int, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(lambda _: EMPTY) as server:
        summarizer = Llm(model(server))
        incidents = Counter[str]()
        result = one(summarizer, SummaryRequest(" " + "x" * (units + 1), target), incidents)
    assert result == SummaryResult("x" * units + "\n" + MARKER, 0.0, "truncate", "m")
    assert len(server.asked) == 2  # the second for low reasoning
    assert "the beginning of the text stands in" in caplog.text
    assert incidents == {CUT: 1}


def test_a_text_that_is_short_enough_stands_in_whole() -> None:
    with serving(lambda _: EMPTY) as server:
        assert one(Llm(model(server)), SummaryRequest(" short enough\n", 96)).text == "short enough"


def test_a_model_that_replies_blanks_gave_no_words() -> None:
    summarizer = Llm(Replying(" \ufeff\n"))
    incidents = Counter[str]()
    assert one(summarizer, SummaryRequest("words", 96), incidents) == SummaryResult("words", 0.0, "truncate")
    assert incidents == {CUT: 1}


def test_a_model_that_takes_too_long_gave_no_words() -> None:
    with serving(lambda _: Answer(stall_after=0)) as server:
        summarizer = Llm(model(server, timeout_seconds=0.05))
        incidents = Counter[str]()
        assert one(summarizer, SummaryRequest("words", 96), incidents).text == "words"
    assert incidents == {CUT: 1}


def test_a_summary_is_given_up_after_its_time_whatever_is_still_tried() -> None:
    with serving(lambda _: Answer(stall_after=0)) as server:
        patient = model(server, timeout_seconds=30.0)
        (result,) = Llm(patient, cuts_unanswered=False, timeout_seconds=0.1).summarize(
            [SummaryRequest("words", 96)], incidents=Counter()
        )
    assert isinstance(result.failure, UnansweredError)
    assert str(result.failure) == "the language model gave no summary within 0.1 s"


def test_what_a_model_says_of_time_itself_is_its_own_failure() -> None:
    def failing() -> str:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        within(failing, 10.0)
    assert within(lambda: "said", None) == within(lambda: "said", 10.0) == "said"


def test_that_nothing_stands_in_is_a_choice() -> None:
    with serving(lambda _: EMPTY) as server:
        summarizer = Llm(model(server), cuts_unanswered=False)
        incidents = Counter[str]()
        result = one(summarizer, SummaryRequest("words", 96), incidents)
    assert result.text == ""
    assert "answered with an empty reply" in str(result.failure)
    assert not incidents


def test_every_request_of_a_batch_that_gets_no_words_is_counted() -> None:
    incidents = Counter[str]()
    Llm(Replying(""), workers=8).summarize([SummaryRequest("words", 96)] * 50, incidents=incidents)
    assert incidents == {CUT: 50}


def recording(tmp_path: Path, server: Loopback, mode: Any) -> Llm:
    return Llm(Recorded(model(server), str(tmp_path), mode))


def test_recorded_replies_stand_in_for_the_server(tmp_path: Path) -> None:
    requests = [SummaryRequest("a", 96), SummaryRequest("b", 96, is_aggressive=True), SummaryRequest("b", 96)]
    with serving(lambda request: said(f"{words_of(request)} {len(server.asked)}")) as server:
        first = recording(tmp_path, server, "record").summarize(requests, incidents=Counter())
        assert len(server.asked) == 3
    assert recording(tmp_path, server, "replay").summarize(requests, incidents=Counter()) == first
    assert first[0].model == "m"


def test_nothing_stands_in_for_a_reply_that_was_not_recorded(tmp_path: Path) -> None:
    with serving(lambda _: said("short")) as server:
        pass
    with pytest.raises(UnrecordedReplyError):
        recording(tmp_path, server, "replay").summarize(
            [SummaryRequest("a", 96), SummaryRequest("b", 96)], incidents=Counter()
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"normal_temperature": 2.1}, r"normal_temperature must be in \[0, 2\] or null, got 2.1"),
        ({"aggressive_temperature": float("nan")}, r"aggressive_temperature must be in \[0, 2\] or null, got nan"),
        ({"workers": 0}, "workers must be >= 1, got 0"),
        ({"timeout_seconds": 0}, "timeout_seconds must be > 0 or null, got 0"),
    ],
)
def test_a_bad_setting_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Llm(NoModel(), **settings)
