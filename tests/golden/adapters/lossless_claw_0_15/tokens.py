"""lossless-claw 0.15's estimate onto ours."""

from typing import Any

from lcm.token_estimator import first_tokens
from tests.golden.adapters.lossless_claw.tokens import text_of
from tests.golden.components import component

SYSTEM = "system=lossless_claw_0_15"


def token_estimate(case: dict[str, Any]) -> dict[str, Any]:
    tokens, text = component(SYSTEM, "token_estimator"), text_of(case["text"])
    return {"tokens": tokens.count([text])[0], "truncated": first_tokens(text, case["max_tokens"], tokens)}
