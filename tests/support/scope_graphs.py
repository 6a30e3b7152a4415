"""Workspaces of several agents, drawn at random: every text holds a word that tells whose it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from lcm.compaction.summary_documents import SearchableSummaries
from lcm.context.assembly.continuity import Continuity
from lcm.memory.memory import Memory
from lcm.memory.scopes import Scopes
from lcm.memory.system import System
from lcm.records.conversation import Message, Part, Transcript
from lcm.records.document import Document
from lcm.token_estimator import Utf16Units
from tests.lcm.context.recall.dags import fold
from tests.support.workspaces import minute, system

AGENTS = ("ada", "bo", "cy")
NAMED = ("global", "project:x", "custom:team", "user:u1", *(f"agent:{agent}" for agent in AGENTS))
TALKS = ("agent:ada:main", "agent:bo:main", "agent:bo:sub:7", "agent:cy:chat", "agent:system:x", "talk")
ASKED_AT = minute(24 * 60)
EVERYWHERE = "kitchen"
"""A word of every text."""

graphs = st.fixed_dictionaries(
    {
        "access": st.dictionaries(
            st.sampled_from(AGENTS), st.lists(st.sampled_from(NAMED), unique=True, max_size=4), max_size=3
        ),
        "shared": st.lists(st.sampled_from(("project:x", "custom:team")), unique=True, max_size=1),
        "talks": st.lists(st.sampled_from(TALKS), unique=True, min_size=2, max_size=4),
        "documents": st.lists(st.sampled_from((*NAMED, "reflection:agent:bo")), max_size=3),
        "dreams": st.lists(st.tuples(st.sampled_from(("u1", "u2")), st.sampled_from(NAMED)), unique=True, max_size=2),
        "is_folded": st.booleans(),
    }
)
hosts = st.one_of(
    st.fixed_dictionaries(
        {"agent_id": st.sampled_from((*AGENTS, "nobody")), "user_id": st.sampled_from((None, "u1"))},
        optional={"session_id": st.sampled_from(TALKS)},
    ),
    st.fixed_dictionaries({"session_id": st.sampled_from(TALKS)}),
    st.fixed_dictionaries({"scopes": st.lists(st.sampled_from(NAMED), unique=True, max_size=3)}),
)
"""What a host says of who asks: an agent, a session, or scopes."""


@dataclass
class World:
    """A workspace, and whose each word is."""

    memory: Memory
    rules: Scopes
    words: dict[str, str] = field(default_factory=dict)
    """Word -> the scope that may read it."""
    ids: dict[str, str] = field(default_factory=dict)
    """Id of a document, message, or summary -> the scope that may read it."""
    talks: tuple[str, ...] = ()
    dreamers: dict[str, str] = field(default_factory=dict)
    """Word of a dream -> who dreamt."""

    def said(self, scope: str) -> str:
        """A text of a scope, with a word that no other has."""
        word = f"zq{len(self.words):03d}x"
        self.words[word] = scope
        return f"{word} in the {EVERYWHERE}"


def drawn_system(rules: Scopes) -> System:
    return replace(system(), scopes=rules, assembly=Continuity(Utf16Units()), summary_documents=SearchableSummaries())


def _rules(graph: dict[str, Any]) -> Scopes:
    return Scopes(
        definitions={"project:x": None, "custom:team": None}, agent_access=graph["access"], shared=graph["shared"]
    )


@contextmanager
def world(graph: dict[str, Any], path: Path | str = ":memory:") -> Iterator[World]:
    """The workspace of a graph: conversations, their documents and summaries, documents of scopes, dreams."""
    rules = _rules(graph)
    made = drawn_system(rules)
    with Memory.open(made, path) as first:
        told = World(first, rules, talks=tuple(graph["talks"]))
        for talk in graph["talks"]:
            scope = rules.conversation_scope(talk)
            texts = [told.said(scope) for _ in range(3)]
            first.ingest(_transcript(talk, texts))
            told.ids |= {f"{talk}:{number}": scope for number in range(len(texts))}
            if graph["is_folded"]:
                leaf = fold(first.store, talk, 0, 2, f"{told.said(scope)} {texts[0]}")
                told.ids |= {leaf: scope, fold(first.store, talk, 0, 1, told.said(scope)): scope}
        for number, scope in enumerate(graph["documents"]):
            document = Document(f"doc_zz{number}", told.said(scope), (), "", "", minute(9), scope=scope)
            first.store.add_documents([document])
        for user, scope in graph["dreams"]:
            text = told.said(scope)
            first.dream(f"## Deep sleep\n\n- {text} {{score=0.9 recall=3 unique=3}}\n", "diary", user, minute(9), scope)
            told.dreamers[text.split()[0]] = user
        told.memory = Memory(made, first.store)  # opened again, with what was put beside it
        told.ids |= dict(told.memory.documents.select("document_id", "scope").iter_rows())
        yield told


def _transcript(name: str, texts: list[str]) -> Transcript:
    messages = [
        Message(f"{name}:{i}", "user", text, f"{name}:session", minute(i), parts=(Part("text", text=text),))
        for i, text in enumerate(texts)
    ]
    return Transcript(name, tuple(messages))
