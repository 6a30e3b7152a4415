"""The laws of `Summarizer`, over every YAML of its group; a server on this machine stands in for the real ones."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lcm.protocols.compaction import Summarizer
from lcm.records.summary import SummaryRequest
from pipelines.config import building
from tests.lcm.retrieval.reranker.loopback import Answer, Asked, serving
from tests.support.composing import composed
from tests.support.richest import once_a_class

CHOICES = once_a_class("summarizer")
GROUP = "summarizer" if "summarizer" in composed([]) else "+summarizer"
WORDS = (
    "[2026-01-05 09:07 UTC]\nthe parser was renamed to reader.py.\n\n"
    "[2026-01-05 09:14 UTC]\ndecision: maria ships the index monday. nobody liked the weather!"
)
REQUESTS = [
    SummaryRequest(WORDS, 96),
    SummaryRequest(WORDS, 192, previous="the parser was written.", is_aggressive=True),
    SummaryRequest(" \n", 96),
    SummaryRequest(f"{WORDS}\n\n" * 60, 192),
    SummaryRequest("来週の火曜日に東京で会議があります。 😀 \ud800 </conversation_segment>", 96),
    SummaryRequest("decision: tom keeps the queue today.", 512, depth=1),
    SummaryRequest(WORDS, 512, depth=4),
]


def echo(request: Asked) -> Answer:
    """The end of the prompt, back."""
    return Answer({"choices": [{"message": {"content": request.body["messages"][-1]["content"][-200:]}}]})


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(echo) as server:
        yield server.url


def settings_of(choice: str, url: str, request: pytest.FixtureRequest) -> list[str]:
    """What a choice needs besides its defaults."""
    match choice:
        case "llm":
            model = {"base_url": url, "api_key_env": "null", "retries": 0}
            chosen = [f"language_model.model.{key}={value}" for key, value in model.items()]
            return ["language_model=openai_compatible", "language_model.mode=live", *chosen]
        case "t5":
            return [f"summarizer.model={request.getfixturevalue('tiny_t5').trained}"]
        case "extractive" | "chain" | "centroid" | "routed":  # where there is a T5, it is missing
            return ["embedder=hashing"]
    return []


def built(choice: str, *settings: str) -> Any:
    return building.build(composed([f"{GROUP}={choice}", *settings]), "summarizer")


@pytest.fixture(params=CHOICES)
def summarizer(request: pytest.FixtureRequest, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Summarizer:
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path))
    return built(request.param, *settings_of(request.param, url, request))


def test_each_request_has_words_or_a_failure_that_says_why_not(summarizer: Summarizer) -> None:
    results = summarizer.summarize(REQUESTS, incidents=Counter())
    assert len(results) == len(REQUESTS)
    for result in results:
        assert 0 <= result.confidence <= 1
        assert result.method
        assert bool(result.text.strip()) is (result.failure is None)
        assert result.failure is None or (result.text == "" and "\n" not in str(result.failure))
    assert results[2].failure is not None  # of a blank text
    assert results[0].failure is None


def test_a_batch_of_one_equals_its_row_of_a_larger_batch(summarizer: Summarizer) -> None:
    together = summarizer.summarize(REQUESTS, incidents=Counter())
    alone = [summarizer.summarize([request], incidents=Counter())[0] for request in REQUESTS]
    for one, other in zip(alone, together, strict=True):
        assert (one.text, one.method, one.model) == (other.text, other.method, other.model)
        assert one.confidence == pytest.approx(other.confidence, abs=1e-5)
        assert str(one.failure) == str(other.failure)


@pytest.mark.parametrize("choice", CHOICES)
def test_constructing_one_opens_no_model(choice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    assert built(choice).summarize([], incidents=Counter()) == []
    assert list(tmp_path.iterdir()) == []
