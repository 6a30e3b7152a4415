"""What lossless-claw 0.15 cuts where no summary is to be had, onto ours."""

import math
from collections import Counter
from dataclasses import replace
from typing import Any

from lcm.compaction.lossless.folding import press
from lcm.compaction.summarizer.chain import harmless_beginning
from lcm.compaction.work import run
from lcm.javascript import utf16_length
from lcm.records.summary import SummaryRequest
from tests.golden.adapters.lossless_claw.compaction import Stub, cut_tail
from tests.golden.adapters.lossless_claw.tokens import digest, text_of
from tests.golden.adapters.lossless_claw_0_15.tokens import SYSTEM
from tests.golden.components import component

_LONGEST_SHOWN_UNITS = 600
"""The vectors hold longer ones as digests alone."""
_UNITS_PER_TOKEN = 4


def fallback_truncation(case: dict[str, Any]) -> dict[str, Any]:
    tokens, source = component(SYSTEM, "token_estimator"), text_of(case["source"])
    found: dict[str, Any] = {}
    if case["op"] == "engine":
        found["level"], text = _pressed(source, case.get("fallback_max_tokens"))
    elif case["op"] == "emergency":
        truncate = component(SYSTEM, "summarizer", "summarizer=truncate_0_15")
        truncate = replace(truncate, max_tokens=case["fallback_max_tokens"])
        (result,) = truncate.summarize(
            [SummaryRequest(source, 0, is_aggressive=case["aggressive"])], incidents=Counter()
        )
        text = result.text
    else:
        units = max(256, _UNITS_PER_TOKEN * case["target_tokens"])
        text = harmless_beginning(source, tokens, most_units=units)
    size = utf16_length(text)
    shown = {"content": text} if size <= _LONGEST_SHOWN_UNITS else {}
    told = {"content_chars": size, "content_sha256": digest(text), "content_tail": cut_tail(text, 80)}
    return {**found, **shown, **told, "tokens": tokens.count([text])[0]}


def _pressed(source: str, fallback_max_tokens: float | None) -> tuple[str, str]:
    most = math.floor(fallback_max_tokens) if fallback_max_tokens and fallback_max_tokens >= 64 else 512
    settings = replace(component(SYSTEM, "compaction"), fallback_max_tokens=most)
    pressed = run(press(settings, source, 0), Stub({"type": "empty"}), incidents=Counter())
    return pressed.level, pressed.text
