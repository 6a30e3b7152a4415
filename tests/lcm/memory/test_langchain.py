"""The retriever of docs/library.md, over what of LangChain it uses."""

import re
import sys
from datetime import UTC, datetime
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lcm.memory.memory import Memory
from lcm.memory.scopes import Scopes
from tests.conftest import ROOT
from tests.lcm.context.recall.dags import talk
from tests.support.scope_graphs import drawn_system


class _BaseRetriever(SimpleNamespace):
    """Takes its fields by name, and asks as LangChain does: with the manager of a run beside the query."""

    def invoke(self, query: str) -> list[Any]:
        return self._get_relevant_documents(query, run_manager=None)  # type: ignore[attr-defined]


def test_the_retriever_of_the_docs_gives_what_the_memory_recalls(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, parts in {
        "langchain_core": {},
        "langchain_core.documents": {"Document": SimpleNamespace},
        "langchain_core.retrievers": {"BaseRetriever": _BaseRetriever},
    }.items():
        module = ModuleType(name)
        vars(module).update(parts)
        monkeypatch.setitem(sys.modules, name, module)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/library.md").read_text(), flags=re.DOTALL)
    (block,) = [block for block in blocks if "BaseRetriever" in block]
    names: dict[str, Any] = {"__name__": "docs"}
    exec(compile(block, "docs/library.md", "exec"), names)
    with Memory.open(drawn_system(Scopes())) as memory:
        talk(memory.store, "talk", ["The kettle is blue.", "The boat sails tomorrow.", "It rains."])
        memory.catch_up()
        found = names["MemoryRetriever"](memory=memory, limit=2).invoke("Which colour is the kettle?")
        wanted = memory.search("Which colour is the kettle?", datetime.now(UTC))
    assert [one.page_content for one in found] == wanted["text"].head(2).to_list()
    assert found[0].page_content == "The kettle is blue."
    assert found[0].metadata["score"] == wanted["score"][0]
