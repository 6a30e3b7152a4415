"""One small conversation with questions about it, in which most settings can matter."""

import polars as pl

from eval.dataset.dataset import ANSWERS_SCHEMA, OPTIONS_SCHEMA, QRELS_SCHEMA, REFERENCES_SCHEMA, Dataset
from lcm.records.conversation import Message, Part, Transcript
from lcm.records.query import Query
from tests.support.workspaces import NOUNS, VERBS, minute

SPECIAL = (
    ("user", "The quokka photographs arrived from Perth, quokka after quokka"),
    ("assistant", "The quokka photographs arrived from Perth, quokka after quokka"),  # a tie
    ("user", "The quokka photographs arrived from Perth, quokka after quokkas"),  # nearly one
    ("assistant", "来週の火曜日に東京で会議があります"),
    ("tool", "exit status 1: the zanzibar migration ran out of disk"),
    ("user", "Note that " + "the long report about the harbour mentions cranes and ships and " * 12),
    ("assistant", "To be or not to be, that is it"),
)
"""Role and words: strong words, ties, another script, a tool, a long text, stop words alone."""


TOOL_CALL = Part("tool", tool_call_id="call 1", tool_name="search", tool_input='{"words": "quokka"}')


QUESTIONS = (
    ("quokka photographs from Perth", "strong"),
    ("where is the note about the kettle?", "weak"),
    ("東京で会議", "strong"),
    ("zanzibar disk", "strong"),
    ("to be or not to be", "weak"),
    ("cranes in the harbour reports", "weak"),
    ("who moved the goats near the river", "weak"),
    ("Ada painting kitchens", "weak"),
)
"""Words and category; the first words of each decide what is judged relevant."""


ANSWERS = (
    *(("q0", "quokka after quokkas"), ("q1", "near the garden"), ("q3", "the zanzibar migration")),
    *(("q5", "cranes and ships"), ("q6", "Bo moved them")),
)
"""Of some of the questions, the words that answer them; nothing answers the fifth."""
OPTIONS = {"a": "Ada paints boats in winter", "b": "Ada paints kitchens near the river", "c": "Nobody paints"}
"""Of the last question."""


REFERENCE = "They took notes: a kettle broke, a garden moved, goats were painted near the river, and the disk was full."


def transcript(ordinary: int = 120) -> Transcript:
    """Ordinary lines that share words, the special ones among them; a new session every 16 messages."""
    lines = [
        ("assistant" if i % 3 else "user", f"Note {i}: the {NOUNS[i % 10]} {VERBS[i % 7]} near the {NOUNS[i * 3 % 10]}")
        for i in range(ordinary)
    ]
    for position, special in enumerate(SPECIAL):
        lines.insert(17 * position + 5, special)
    return Transcript(
        conversation_id="talk",
        messages=tuple(
            Message(
                message_id=f"m{i}",
                role=role,
                content=words,
                session_id=f"session {i // 16}",
                created_at=minute(i),
                author={"user": "Ada", "assistant": "Bo"}.get(role),
                parts=(Part("text", text=words), *([TOOL_CALL] if i == 40 else ())),
            )
            for i, (role, words) in enumerate(lines)
        ),
    )


def dataset() -> Dataset:
    """Each question is judged on the two messages that share most of its characters in pairs."""
    talk = transcript()
    queries = tuple(Query(f"q{i}", text, minute(600), category=kind) for i, (text, kind) in enumerate(QUESTIONS))
    qrels = [
        (query.query_id, message.message_id, 1)
        for query in queries
        for message in sorted(talk.messages, key=lambda message: -_shared(query.text, message.content))[:2]
    ]
    qrels_frame = pl.DataFrame(qrels, schema=QRELS_SCHEMA, orient="row")
    references = pl.DataFrame([(talk.conversation_id, None, REFERENCE)], schema=REFERENCES_SCHEMA, orient="row")
    options = [("q7", name, words, name == "b") for name, words in OPTIONS.items()]
    return Dataset(
        name="small",
        protocol="judged by shared characters",
        digest="0" * 64,
        transcripts=(talk,),
        queries=queries,
        qrels=qrels_frame,
        references=references,
        answers=pl.DataFrame(ANSWERS, schema=ANSWERS_SCHEMA, orient="row"),
        unanswerable=frozenset({"q4"}),
        options=pl.DataFrame(options, schema=OPTIONS_SCHEMA, orient="row"),
    )


def _shared(one: str, other: str) -> float:
    pairs = [{text[i : i + 2] for i in range(len(text) - 1)} for text in (one.lower(), other.lower())]
    return len(pairs[0] & pairs[1]) / len(pairs[0] | pairs[1])
