"""lossless-claw's vectors of one summary request onto our components."""

import os
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any
from unittest import mock

from lcm.compaction.summarizer.chain import requested_tokens
from lcm.compaction.summarizer.llm import Llm, variant
from lcm.javascript import utf16_length
from lcm.records.summary import SummaryRequest
from lcm.token_estimator import Utf16Units
from pipelines.config import building, composition
from tests.golden.adapters.lossless_claw.tokens import digest, text_of
from tests.lcm.retrieval.reranker.loopback import Answer, Asked, serving

_LONGEST_SHOWN_UNITS = 320
"""The vectors hold longer summaries as digests alone."""
_DEFAULT_TARGETS = (2400, 2000)
_TOKENS = Utf16Units()


def summary_target_tokens(case: dict[str, Any]) -> dict[str, Any]:
    tokens = _TOKENS.count(["x" * case["input_chars"]])[0]
    depth = max(1, case["depth"] or 1) if case["is_condensed"] else 0
    targets = (case["leaf_target_tokens"], case["condensed_target_tokens"])
    return {
        "max_tokens": requested_tokens(tokens, depth, case["aggressive"], *targets),
        "prompt_variant": variant(depth, case["aggressive"]),
    }


def summary_extraction(case: dict[str, Any]) -> dict[str, Any]:
    def answer(_: Asked) -> Answer:
        return Answer(case["first_response"] if len(server.asked) == 1 else {"content": case["retry_content"]})

    text = text_of(case["source"])
    target = requested_tokens(_TOKENS.count([text])[0], 0, case["aggressive"], *_DEFAULT_TARGETS)
    with serving(answer) as server, mock.patch.dict(os.environ, {"NO_PROXY": "127.0.0.1"}):
        asking = replace(
            _llm(), language_model=replace(_llm().language_model.model, base_url=server.url, api_key_env=None)
        )
        (result,) = asking.summarize(
            [SummaryRequest(text, target, is_aggressive=case["aggressive"])], incidents=Counter()
        )
    return {
        "summary": result.text if utf16_length(result.text) <= _LONGEST_SHOWN_UNITS else None,
        "summary_chars": utf16_length(result.text),
        "summary_sha256": digest(result.text),
        "calls": len(server.asked),
    }


@cache
def _llm() -> Any:
    """As configured."""
    group = "summarizer" if "summarizer" in composition.composed([]) else "+summarizer"
    chosen = [f"{group}=llm", "language_model=openai_compatible", "language_model.model.retries=0"]
    built = building.build(composition.composed(chosen), "summarizer")
    assert isinstance(built, Llm)
    return built
