"""A server for components whose configuration names one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.lcm.retrieval.reranker.loopback import Answer, Asked, serving


@contextmanager
def served(answer: Callable[[Asked], Answer]) -> Iterator[list[tuple[str, str | None, Any]]]:
    """A server at `LCM_TEST_SERVER`, and two keys; gives path, authorization and body of what it was asked."""
    asked: list[tuple[str, str | None, Any]] = []

    def told(request: Asked) -> Answer:
        asked.append((request.path, request.headers.get("authorization"), request.body))
        return answer(request)

    with TemporaryDirectory() as cache_folder, serving(told) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LCM_CACHE_DIR", cache_folder)
        patch.setenv("LCM_TEST_SERVER", server.url)
        patch.setenv("NO_PROXY", "127.0.0.1")
        for name in ("JINA_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"):
            patch.setenv(name, "sk-one")
        patch.setenv("ANOTHER_KEY", "sk-another")
        yield asked


def said(text: str) -> Answer:
    """A reply of a chat model."""
    return Answer({"choices": [{"message": {"content": text}}]})
