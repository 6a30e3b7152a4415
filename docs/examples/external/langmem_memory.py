"""LangMem (https://pypi.org/project/langmem) over the contract of docs/external.md, without server or model.

Its two tools write and search a LangGraph store, in which lcm's own MiniLM finds; no model says what is worth keeping.
"""

import contextlib
import json
import os
import sys
import time
from importlib.metadata import version

os.environ |= {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}

from langgraph.store.memory import InMemoryStore
from langmem import create_manage_memory_tool, create_search_memory_tool

from lcm.retrieval.embedder.onnx import MiniLM

MINILM = MiniLM()


def embed(texts):
    return MINILM.embed(texts, "document").tolist()


class LangMem:
    """Each message is a memory of the workspace that it was said in; whose message it is, is kept beside."""

    def reset(self, workspace):
        store = InMemoryStore(index={"dims": MINILM.dim, "embed": embed, "fields": ["content"]})
        self.write = create_manage_memory_tool(("said",), store=store)
        self.find = create_search_memory_tool(("said",), store=store)
        self.messages = {}
        return {"name": "langmem", "version": version("langmem")}

    def add(self, messages):
        for one in messages:
            text = f"{one['author']}: {one['content']}" if one["author"] else one["content"]
            told = self.write.invoke({"content": text, "action": "create"})  # "created memory ID"
            self.messages[told.split()[-1]] = one["id"]

    def search(self, query, k, asked_at, scopes):
        return {
            "results": [
                {
                    "text": one["value"]["content"],
                    "score": one.get("score"),
                    "source_ids": [self.messages[one["key"]]],
                }
                for one in json.loads(self.find.invoke({"query": query, "limit": k}))
            ]
        }


memory = LangMem()
for line in sys.stdin:
    call = json.loads(line)
    number, name, began = call.pop("id"), call.pop("call"), time.perf_counter()
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what LangMem prints is no reply
            reply = getattr(memory, name)(**call) or {}
    except Exception as error:
        reply = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps({"id": number, **reply, "took_ms": 1000 * (time.perf_counter() - began)}), flush=True)
