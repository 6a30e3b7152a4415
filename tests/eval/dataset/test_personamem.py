"""PersonaMem: counts of the pinned files, and the loader's rules on a small copy of the format."""

import gzip
import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eval.dataset.dataset import Dataset
from eval.dataset.personamem import Personamem
from eval.replay.bulk import Bulk
from lcm.clock import EPOCH
from lcm.errors import DatasetError
from lcm.transcript.parts import rebuild
from tests.support.releases import know

PERSONA = "[SYSTEM] Current user persona: Name: Ada\n\nAda sails."
DOCUMENTS = [
    {"id": "ada_0", "user_id": "ada", "timestamp": None,
     "content": f"{PERSONA}\n\n[USER] User: Hi.\n\nI sail.\n\n[ASSISTANT] Assistant: Where?\n\n[USER] User: At sea."},
    {"id": "bo_0", "user_id": "bo", "timestamp": None,
     "content": "[SYSTEM] Current user persona: Name: Bo\n\n[ASSISTANT] Code:\n[USER] is no\n\n[ASSISTANT] User: no"},
    {"id": "ada_1", "user_id": "ada", "timestamp": None,
     "content": f"{PERSONA}\n\n[USER] Plain words.\n\n[USER] User: User: twice"},
]  # fmt: skip
QUERIES = [
    {"id": "q1", "user_id": "ada", "gold_answers": ["(b) A boat.", "b"], "gold_ids": ["ada_0", "ada_1"],
     "query": "User: Ada\n\nWhat next?\n\n(a) A car.\n(b) A boat.\n(c) A (small) car.\n(d) A bus.",
     "meta": {"persona_id": "7", "question_type": "suggest_new_ideas", "topic": "sport",
              "retrieval_query": "User: Ada\n\nWhat next?"}},
    {"id": "q2", "user_id": "bo", "gold_answers": ["(a) Red", "a"], "gold_ids": ["bo_0"],
     "query": "Colour?\n\n(a) Red\n(b) Blue\n(c) Red\n(d) Green",
     "meta": {"persona_id": "8", "question_type": "recall_user_shared_facts", "topic": "art",
              "retrieval_query": "Colour?"}},
]  # fmt: skip


NAMES = ("small_documents.jsonl.gz", "small_queries.jsonl.gz")


def write_small_personamem(directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Fill the folder and make its files known ones; returns it as `dataset.directory` wants it."""
    for name, records in zip(NAMES, (DOCUMENTS, QUERIES), strict=True):
        (directory / name).write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in records).encode()))
    return know(monkeypatch, Personamem, directory)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder in PersonaMem's format whose digests are known."""
    return write_small_personamem(tmp_path, monkeypatch)


def test_a_context_is_a_workspace_and_its_documents_are_sessions(small: str) -> None:
    ada, bo = Personamem(small).load().transcripts
    assert [ada.workspace_id, bo.workspace_id] == ["ada", "bo"]
    sessions = [message.session_id for message in ada.messages]
    assert list(Counter(sessions).values()) == [4, 3]
    assert sessions == sorted(sessions, key=sessions.index)
    assert bo.messages[0].session_id not in sessions


def test_markers_become_roles_and_their_repetition_is_cut_off_once(small: str) -> None:
    ada, bo = Personamem(small).load().transcripts
    assert [(message.role, message.content) for message in ada.messages] == [
        ("system", "Current user persona: Name: Ada\n\nAda sails."),
        ("user", "Hi.\n\nI sail."),
        ("assistant", "Where?"),
        ("user", "At sea."),
        ("system", "Current user persona: Name: Ada\n\nAda sails."),
        ("user", "Plain words."),
        ("user", "User: twice"),
    ]
    assert [(message.role, message.content) for message in bo.messages] == [
        ("system", "Current user persona: Name: Bo"),
        ("assistant", "Code:\n[USER] is no"),
        ("assistant", "User: no"),
    ]


def rebuilt(dataset: Dataset) -> dict[str, list[str]]:
    """Context -> its documents as text again."""
    texts: dict[str, list[str]] = {}
    for transcript in dataset.transcripts:
        sessions: dict[str, list[str]] = {}
        for message in transcript.messages:
            native = rebuild(message)
            sessions.setdefault(message.session_id, []).append(f"[{native['role']}] {native['text']}")
        texts[transcript.workspace_id] = ["\n\n".join(pieces) for pieces in sessions.values()]
    return texts


def contents(documents: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Context -> its documents as recorded."""
    found: dict[str, list[str]] = {}
    for document in documents:
        found.setdefault(document["user_id"], []).append(document["content"])
    return found


def test_documents_rebuild_exactly(small: str) -> None:
    assert rebuilt(Personamem(small).load()) == contents(DOCUMENTS)


def test_queries_are_the_words_without_the_options(small: str) -> None:
    dataset = Personamem(small).load()
    assert [(q.query_id, q.text, q.workspace_id, q.category) for q in dataset.queries] == [
        ("q1", "User: Ada\n\nWhat next?", "ada", "suggest_new_ideas"),
        ("q2", "Colour?", "bo", "recall_user_shared_facts"),
    ]


def test_options_name_their_letter_and_the_correct_one(small: str) -> None:
    assert Personamem(small).load().options.rows() == [
        ("q1", "a", "A car.", False),
        ("q1", "b", "A boat.", True),
        ("q1", "c", "A (small) car.", False),
        ("q1", "d", "A bus.", False),
        ("q2", "a", "Red", True),
        ("q2", "b", "Blue", False),
        ("q2", "c", "Red", False),
        ("q2", "d", "Green", False),
    ]


def test_a_wrong_option_in_the_words_of_the_correct_one_is_counted(small: str) -> None:
    assert Personamem(small).load().notes == ("1 wrong options say word for word what the correct one says",)


def test_the_gold_ids_are_no_judgements(small: str) -> None:
    dataset = Personamem(small).load()
    assert [len(frame) for frame in (dataset.qrels, dataset.session_qrels, dataset.references)] == [0, 0, 0]


def test_nothing_has_a_time_and_every_query_hears_its_whole_context(small: str) -> None:
    dataset = Personamem(small).load()
    assert {message.created_at for t in dataset.transcripts for message in t.messages} == {None}
    assert all(query.asked_at > EPOCH for query in dataset.queries)
    ((heard, asked),) = Bulk().steps(dataset.transcripts, dataset.queries)
    assert tuple(heard) == dataset.transcripts
    assert tuple(asked) == dataset.queries


def test_ids_are_opaque_and_each_message_has_its_own(small: str) -> None:
    transcripts = Personamem(small).load().transcripts
    messages = [message for t in transcripts for message in t.messages]
    ids = [m.message_id for m in messages] + [t.conversation_id for t in transcripts]
    ids += sorted({m.session_id for m in messages})
    assert all(re.fullmatch(r"[0-9a-f]{16}", one) for one in ids)
    assert len(set(ids)) == len(ids) == 10 + 2 + 3


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_no_known_release_is_taken_and_said_so_or_refused(small: str, name: str) -> None:
    path = Path(small) / name
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b"\n"))
    told = f"1 of 2 files are of no known release, taken as they are (the first is {path})"
    assert told in Personamem(small).load().notes
    with pytest.raises(DatasetError, match="is not the pinned file"):
        Personamem(small, pinned=True).load()


def test_some_contexts_are_taken_by_id(small: str) -> None:
    dataset = Personamem(small, only=["bo"]).load()
    assert dataset.workspaces == ["bo"]
    assert [query.query_id for query in dataset.queries] == ["q2"]
    assert set(dataset.options["query_id"]) == {"q2"}
    assert dataset.protocol == "options=4 context=whole only=bo"
    with pytest.raises(DatasetError, match=r"dataset\.only names 'cy', which small_documents\.jsonl\.gz does not hold"):
        Personamem(small, only=["cy"]).load()


if root := os.environ.get("LCM_DATASETS_DIR"):

    def _records(name: str) -> list[dict[str, Any]]:
        """A pinned file, read without the loader."""
        with gzip.open(f"{root}/personamem/personamem_32k_{name}_dev.jsonl.gz", "rb") as lines:
            return [json.loads(line) for line in lines]

    @pytest.fixture(scope="module")
    def documents() -> list[dict[str, Any]]:
        return _records("documents")

    @pytest.fixture(scope="module")
    def entries() -> list[dict[str, Any]]:
        return _records("queries")

    @pytest.fixture(scope="module")
    def whole() -> Dataset:
        return Personamem().load()

    def test_the_pinned_documents_have_the_counts_of_the_card(documents: list[dict[str, Any]], whole: Dataset) -> None:
        assert len(documents) == len({document["id"] for document in documents}) == 112
        assert len({document["content"] for document in documents}) == 73
        assert {document["timestamp"] for document in documents} == {None}
        assert sum(len(document["content"]) for document in documents) == 3_184_650
        found = contents(documents)
        assert len(found) == 22
        assert Counter(map(len, found.values())) == {4: 4, 5: 12, 6: 6}
        numbers: dict[str, list[str]] = {context: [] for context in found}
        for document in documents:
            context, _, number = document["id"].rpartition("_")
            numbers[context].append(number)
        assert all(given == [str(n) for n in range(len(given))] for given in numbers.values())
        assert rebuilt(whole) == found
        opening = [document["content"].partition("\n\n[")[0] for document in documents]
        assert all(one.startswith("[SYSTEM] ") for one in opening)
        assert len(set(zip((document["user_id"] for document in documents), opening, strict=True))) == 22

    def test_the_pinned_markers_have_the_counts_of_the_card(documents: list[dict[str, Any]], whole: Dataset) -> None:
        texts = [document["content"] for document in documents]
        written = Counter({name: sum(t.count(f"[{name}]") for t in texts) for name in ("SYSTEM", "USER", "ASSISTANT")})
        assert written == {"SYSTEM": 112, "USER": 1917, "ASSISTANT": 1666}
        messages = [message for t in whole.transcripts for message in t.messages]
        assert Counter(message.role.upper() for message in messages) == written
        assert len(messages) == 3695
        assert all(message.content.strip() for message in messages)
        assert sum(t.count("\n\n[USER] User: ") + t.count("\n\n[ASSISTANT] Assistant: ") for t in texts) == 3511
        cut = sum(message.content != rebuild(message)["text"] for message in messages)
        assert cut == 3511
        assert sum(t.count(".User: ") for t in texts) == 2

    def test_the_pinned_queries_have_the_counts_of_the_card(entries: list[dict[str, Any]], whole: Dataset) -> None:
        assert len(entries) == len({entry["id"] for entry in entries}) == 365
        contexts_of: dict[int, set[str]] = {}
        for entry in entries:
            contexts_of.setdefault(int(entry["meta"]["persona_id"]), set()).add(entry["user_id"])
        assert sorted(contexts_of) == [0, 2, 4, 5, 7, 9, 10, 12, 14, 15, 17, 19]
        assert Counter(map(len, contexts_of.values())) == {2: 10, 1: 2}
        assert len({(entry["user_id"], entry["query"]) for entry in entries}) == 363
        assert len({(entry["user_id"], entry["meta"]["retrieval_query"]) for entry in entries}) == 327
        assert Counter(query.category for query in whole.queries) == {
            "track_full_preference_evolution": 90,
            "recall_user_shared_facts": 74,
            "suggest_new_ideas": 60,
            "recalling_the_reasons_behind_previous_updates": 60,
            "provide_preference_aligned_recommendations": 34,
            "generalizing_to_new_scenarios": 33,
            "recalling_facts_mentioned_by_the_user": 14,
        }
        assert [query.text for query in whole.queries] == [entry["meta"]["retrieval_query"] for entry in entries]
        assert sum(bool(re.match(r"User: .+\n\n", query.text)) for query in whole.queries) == 305

    def test_every_pinned_query_has_exactly_one_correct_option(entries: list[dict[str, Any]], whole: Dataset) -> None:
        options: dict[str, dict[str, str]] = {}
        correct: dict[str, list[str]] = {}
        for query_id, letter, text, is_correct in whole.options.iter_rows():
            options.setdefault(query_id, {})[letter] = text
            correct.setdefault(query_id, []).extend([letter] if is_correct else [])
        for entry in entries:
            offered = options[entry["id"]]
            words, letter = entry["gold_answers"]
            assert list(offered) == ["a", "b", "c", "d"]
            assert correct[entry["id"]] == [letter]
            assert f"({letter}) {offered[letter]}" == words
            lines = "\n".join(f"({letter}) {text}" for letter, text in offered.items())
            assert f"{entry['meta']['retrieval_query']}\n\n{lines}" == entry["query"]

    def test_the_pinned_options_have_the_defects_of_the_card(
        documents: list[dict[str, Any]], entries: list[dict[str, Any]], whole: Dataset
    ) -> None:
        options: dict[str, list[str]] = {}
        for query_id, text in whole.options.select("query_id", "text").iter_rows():
            options.setdefault(query_id, []).append(text)
        gold = {entry["id"]: entry["gold_answers"][0][len("(a) ") :] for entry in entries}
        assert Counter(texts.count(gold[query_id]) for query_id, texts in options.items()) == {1: 351, 2: 14}
        others = {query_id: [t for t in texts if t != gold[query_id]] for query_id, texts in options.items()}
        assert sum(all(len(gold[one]) > len(t) for t in texts) for one, texts in others.items()) == 181
        assert whole.notes == ("14 wrong options say word for word what the correct one says",)
        sessions = [set(entry["gold_ids"]) for entry in entries]
        of_context = {context: set() for context in contents(documents)}
        for document in documents:
            of_context[document["user_id"]].add(document["id"])
        assert sessions == [of_context[entry["user_id"]] for entry in entries]

    def test_some_pinned_queries_repeat_a_message_of_their_context(whole: Dataset) -> None:
        said = {t.workspace_id: {m.content for m in t.messages if m.role == "user"} for t in whole.transcripts}
        bare = {query: re.sub(r"\AUser: ", "", re.sub(r"\AUser: .+\n\n", "", query.text)) for query in whole.queries}
        repeated = Counter(query.category for query, words in bare.items() if words in said[query.workspace_id])
        assert repeated == {
            "track_full_preference_evolution": 90,
            "recalling_the_reasons_behind_previous_updates": 37,
        }
