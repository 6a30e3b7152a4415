"""The process of a memory that is a Python class: reads calls, a line of JSON each, and writes what the object says.

    python -m eval.external.object_host PACKAGE.MODULE.CLASS '{"setting": 1}'

The class has `reset(workspace)`, `add(messages)`, `search(query, k, asked_at, scopes)` and may have `compact()`,
`context(budget_tokens, query, asked_at)` and `close()`. `reset` may give a map of what the memory says of itself. A
result is a text, (text, score), (text, score, source ids), or a map.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from eval.executor import begin_worker

_OFFERS = ("compact", "context")


def main(target: str, settings: str) -> int:
    begin_worker(os.getppid())
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the object prints is no reply
    module, _, name = target.rpartition(".")
    memory = getattr(importlib.import_module(module), name)(**json.loads(settings))
    try:
        for line in sys.stdin:
            _answer(memory, json.loads(line), replies)
    finally:
        if callable(close := getattr(memory, "close", None)):
            close()
    return 0


def _answer(memory: Any, call: dict[str, Any], replies: TextIO) -> None:
    number, name = call.pop("id"), call.pop("call")
    started = time.perf_counter()
    try:
        told = _told(memory, name, getattr(memory, name)(**call))
    except Exception as error:  # whatever it is, the harness counts it
        told = {"error": f"{type(error).__name__}: {error}"}
    took_ms = (time.perf_counter() - started) * 1000
    try:
        line = json.dumps({"took_ms": took_ms, **told, "id": number}, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        line = json.dumps({"error": f"what {name} gave is no JSON: {error}", "id": number})
    replies.write(line + "\n")
    replies.flush()


def _plain(value: Any) -> Any:
    """A number of NumPy's, as scores often are."""
    if callable(item := getattr(value, "item", None)):
        return item()
    raise TypeError(f"{type(value).__name__} is no text, number, list or map")


def _told(memory: Any, name: str, answer: Any) -> dict[str, Any]:
    if name == "reset":
        own: dict[str, Any] = {"name": type(memory).__name__, "version": str(getattr(memory, "version", ""))}
        own |= {"offers": [one for one in _OFFERS if callable(getattr(memory, one, None))]}
        return own | dict(answer) if isinstance(answer, Mapping) else own
    if name not in ("search", "context"):
        return {}
    if isinstance(answer, str):
        return {"results": [{"text": answer}]}
    return {"results": [_result(one) for one in answer]}


def _result(one: Any) -> dict[str, Any]:
    if isinstance(one, Mapping):
        return dict(one)
    if isinstance(one, str):
        return {"text": one}
    text, score, *ids = one
    return {"text": text, "score": score, "source_ids": list(ids[0]) if ids and ids[0] is not None else None}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
