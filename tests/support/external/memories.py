"""Memories that are Python classes, for tests."""

import os
import time
from typing import Any


class Newest:
    """Finds what was said last."""

    version = "3"

    def __init__(self, mark: str = "") -> None:
        self.mark = mark
        self.said: list[dict[str, Any]] = []

    def reset(self, workspace: str) -> None:
        print("no reply", workspace)  # as libraries do
        self.said = []

    def add(self, messages: list[dict[str, Any]]) -> None:
        self.said += messages

    def search(self, query: str, k: int, asked_at: str, scopes: list[str] | None) -> list[tuple[Any, ...]]:
        time.sleep(0.01)
        return [(self.mark + one["content"], 1.0, [one["id"]]) for one in self.said[::-1][:k]]

    def context(self, budget_tokens: int, query: str, asked_at: str) -> str:
        return "\n".join(one["content"] for one in self.said)[: 2 * budget_tokens]


class Configured(Newest):
    """Takes one setting up, and no other."""

    def reset(self, workspace: str, settings: dict[str, Any] | None = None) -> None:
        self.said = []
        self.mark = (settings or {}).get("mark", "")


class Plain(Newest):
    """Says what it is when it is reset, and returns texts alone."""

    def reset(self, workspace: str) -> dict[str, Any]:  # type: ignore[override]
        self.said = []
        return {"version": "4", "ignores": ["retrieval.weight"]}

    def search(self, query: str, k: int, asked_at: str, scopes: list[str] | None) -> list[Any]:
        return [one["content"] for one in self.said[::-1][:k]]


class Whole(Newest):
    """Finds everything, in one text."""

    def search(self, query: str, k: int, asked_at: str, scopes: list[str] | None) -> list[tuple[Any, ...]]:
        return [("\n".join(one["content"] for one in self.said), 1.0, [one["id"] for one in self.said])]


class Broken(Newest):
    """Raises when it is asked."""

    def search(self, query: str, k: int, asked_at: str, scopes: list[str] | None) -> list[tuple[Any, ...]]:
        raise KeyError("index")


class Surroundings(Newest):
    """Tells which variables it was given."""

    def search(self, query: str, k: int, asked_at: str, scopes: list[str] | None) -> list[tuple[Any, ...]]:
        return [(" ".join(sorted({"LCM_MARK"} & set(os.environ))) or "none", 1.0)]
