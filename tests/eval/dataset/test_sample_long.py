"""The bundled long session: what its README promises, and that it is long enough to be folded."""

import json
from collections import Counter

import pytest

from eval.dataset.dataset import Dataset
from eval.dataset.sample import SampleLong, bundled_directory
from lcm.records.conversation import Message
from lcm.token_estimator import Utf16Units
from lcm.transcript.parts import tool_calls
from lcm.transcript.passages import SAID
from lcm.writing.extraction.said import words_of

FOLDER = bundled_directory("sample_long")


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return SampleLong().load()


def table(heading: str) -> dict[str, int]:
    """The README's table that begins with a heading: first cell -> number."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    (block,) = (one for one in text.split("\n\n") if one.startswith(f"| {heading}"))
    cells = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]
    return {name: int(number.replace(",", "")) for name, number in cells}


def place(message: Message) -> str:
    """Where the README says that evidence lies which this message holds."""
    if message.role == "tool":
        return "results of calls"
    if not tool_calls(message):
        return "words"
    return "words with calls beside them" if message.content else "calls alone"


def test_the_session_is_as_large_as_promised(dataset: Dataset) -> None:
    (transcript,) = dataset.transcripts
    said = transcript.messages
    roles = Counter(message.role for message in said)
    lines = (FOLDER / "transcripts" / "brook.jsonl").read_text(encoding="utf-8").splitlines()
    tokens = sum(Utf16Units().count([words_of(m, author_prefix=True, kinds=SAID) for m in said]))
    assert table("| Count") == {
        "days": len({message.created_at.date() for message in said if message.created_at}),
        "messages": len(said),
        "of the user": roles["user"],
        "of the agent": roles["assistant"],
        "tool results": roles["tool"],
        "of them errors": sum(json.loads(line).get("message", {}).get("isError", False) for line in lines),
        "tool calls": sum(map(tool_calls, said)),
        "tokens": tokens,
        "queries": len(dataset.queries),
    }
    assert table("Category") == Counter(query.category for query in dataset.queries)


def test_evidence_is_there_when_it_is_asked_for_in_words_calls_and_results(dataset: Dataset) -> None:
    asked = {query.query_id: query for query in dataset.queries}
    said = {message.message_id: message for message in dataset.transcripts[0].messages}
    places = {(query_id, place(said[message_id])) for query_id, message_id, _ in dataset.qrels.iter_rows()}
    assert table("Evidence lies in") == Counter(where for _, where in places)
    evidence = [(said[message_id], asked[query_id]) for query_id, message_id, _ in dataset.qrels.iter_rows()]
    assert all(words_of(message, author_prefix=True, kinds=SAID).strip() for message, _ in evidence)
    assert all(message.created_at and message.created_at <= query.asked_at for message, query in evidence)
    unjudged = {query.category for query in dataset.queries if query.query_id not in set(dataset.qrels["query_id"])}
    assert unjudged == {"unanswerable"}
