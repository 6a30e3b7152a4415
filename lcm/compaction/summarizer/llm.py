"""Summaries by a language model.

Source: lossless-claw 0.6.3, its wrapper of one summary call; the temperatures are those of its architecture, which its
code no longer sends. The prompts are ours.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Thread
from typing import Any, Literal, Protocol, runtime_checkable

from jinja2 import PackageLoader, StrictUndefined, select_autoescape
from jinja2.sandbox import ImmutableSandboxedEnvironment

from lcm.checks import check_range
from lcm.compaction.summarizer.chain import NOTHING_TO_SUMMARISE, cut
from lcm.errors import LcmError, ModelError, UnansweredError, UnrecordedReplyError
from lcm.javascript import trim
from lcm.protocols.models import LanguageModel
from lcm.records.summary import FALLBACK_MARK, SummaryRequest, SummaryResult

Variant = Literal["leaf_normal", "leaf_aggressive", "d1", "d2", "d3_plus"]

_TAG = re.compile(r"<(?=\s*/?\s*(?:previous_context|conversation_segment|conversation_to_condense))", re.IGNORECASE)
_TEMPLATES = ImmutableSandboxedEnvironment(
    loader=PackageLoader("lcm.compaction.summarizer", "prompts"),
    autoescape=select_autoescape(),
    undefined=StrictUndefined,
    trim_blocks=False,
)


_CONFIDENCE = 0.5
"""Of every reply: a chat API tells no probabilities, so that nothing is known of it."""
_CUT = "truncate"
_LEAST_CUT_UNITS = 256
_UNITS_PER_TOKEN = 4

_log = logging.getLogger(__name__)


def variant(depth: int, is_aggressive: bool) -> Variant:
    """The prompt of a summary; there is one of each condensed depth, pressed or not."""
    if depth <= 0:
        return "leaf_aggressive" if is_aggressive else "leaf_normal"
    return "d1" if depth == 1 else "d2" if depth == 2 else "d3_plus"


def system_prompt() -> str:
    return _TEMPLATES.get_template("system.jinja").render()


def prompt(request: SummaryRequest, custom_instructions: str) -> str:
    """The prompt of a request with the operator's wishes; the texts in it cannot close the tags that they stand in."""
    return _TEMPLATES.get_template(f"{variant(request.depth, request.is_aggressive)}.jinja").render(
        text=_TAG.sub("&lt;", request.text.strip()),
        previous=_TAG.sub("&lt;", (request.previous or "").strip()),
        instructions=custom_instructions.strip() or "(none)",
        target_tokens=request.target_tokens,
    )


@runtime_checkable
class _Named(Protocol):
    @property
    def identity(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Llm:
    """Asks a language model for each summary, with a prompt of its depth; the aimed length bounds the reply.

    A model that fails gives a `failure`. Where it was reached and gave no words, or not in time, the beginning of the
    text stands in, 4 UTF-16 units for each token that was aimed at, and at least 256, with a marker: method `truncate`,
    confidence 0.
    """

    language_model: LanguageModel
    custom_instructions: str = ""
    """The operator's, part of every prompt."""
    normal_temperature: float | None = 0.2
    """None = the language model's own."""
    aggressive_temperature: float | None = 0.1
    """Of a request that is pressed for less; None = the language model's own."""
    workers: int = 4
    """How many requests of a batch are asked at once."""
    cuts_unanswered: bool = True
    """Whether the beginning of the text stands in for words that were not given; else that is a failure."""
    timeout_seconds: float | None = 60.0
    """Of a whole summary, tries and pauses and all; what takes longer was not given in time. None = no bound."""

    def __post_init__(self) -> None:
        check_range(self, "normal_temperature", "aggressive_temperature", ge=0, le=2, or_null=True)
        check_range(self, "workers", ge=1)
        check_range(self, "timeout_seconds", gt=0, or_null=True)

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        """One result a request.

        Raises:
            UnrecordedReplyError: if a replay lacks a reply, in whose place nothing may stand.
        """
        with ThreadPoolExecutor(max(1, min(self.workers, len(requests))), thread_name_prefix="summarize") as threads:
            results = list(threads.map(self._result, requests))
        if cuts := sum(result.method == _CUT for result in results):
            incidents["llm gave no words: the beginning of the text stood in"] += cuts
        return results

    def _result(self, request: SummaryRequest) -> SummaryResult:
        if not trim(request.text):
            return self._failed(LcmError(NOTHING_TO_SUMMARISE))
        try:
            text = within(lambda: self._reply(request), self.timeout_seconds)
        except UnrecordedReplyError:
            raise
        except UnansweredError as error:
            return self._unanswered(request, error)
        except ModelError as error:
            return self._failed(error)
        return SummaryResult(text, _CONFIDENCE, "llm", self._model)

    def _reply(self, request: SummaryRequest) -> str:
        reply = self.language_model.reply(
            system_prompt(),
            prompt(request, self.custom_instructions),
            lambda reply: bool(trim(reply)),
            temperature=self.aggressive_temperature if request.is_aggressive else self.normal_temperature,
            max_tokens=request.target_tokens,
        )
        if not (text := trim(reply)):
            raise UnansweredError("the language model replied without words")
        return text

    def _unanswered(self, request: SummaryRequest, error: LcmError) -> SummaryResult:
        if not self.cuts_unanswered:
            return self._failed(error)
        _log.warning("%s; the beginning of the text stands in for a summary", error)
        units = max(_LEAST_CUT_UNITS, _UNITS_PER_TOKEN * request.target_tokens)
        return SummaryResult(cut(trim(request.text), units, FALLBACK_MARK), 0.0, _CUT, self._model)

    def _failed(self, error: LcmError) -> SummaryResult:
        return SummaryResult("", 0.0, "llm", self._model, error)

    @property
    def _model(self) -> str:
        named = self.language_model.identity if isinstance(self.language_model, _Named) else {}
        return str(named.get("model", "unknown"))


def within(ask: Callable[[], str], seconds: float | None) -> str:
    """Ask, and wait no longer than so many seconds; None = as long as it takes.

    A question that is given up goes on unheard until its own waits are over, and keeps nothing from ending.

    Raises:
        UnansweredError: if there is no answer in time.
    """
    if seconds is None:
        return ask()
    answer: Future[str] = Future()

    def asked() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=asked, name="summary", daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError as error:
        if answer.done():  # it came just now, or the error is its own
            return answer.result()
        raise UnansweredError(f"the language model gave no summary within {seconds:g} s") from error
