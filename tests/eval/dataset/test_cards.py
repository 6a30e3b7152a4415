"""The dataset cards: what docs/datasets states is what the loaders give."""

import os
import re
from collections import Counter
from collections.abc import Mapping
from typing import get_args

import pytest

from eval.dataset.beam import Beam, Size
from eval.dataset.dataset import Dataset
from eval.dataset.dialogsum import Dialogsum
from eval.dataset.locomo import Locomo
from eval.dataset.longmemeval import LongMemEval
from eval.dataset.personamem import Personamem
from eval.dataset.qmsum import Qmsum
from eval.measures.retrieval import judged_queries, session_of_message, workspace_of_query
from tests.conftest import ROOT

CARDS = ROOT / "docs" / "datasets"
_NUMBER = r"\d{1,3}(?:,\d{3})+|\d+"


def words(name: str) -> str:
    """A card's text, its lines joined."""
    return " ".join((CARDS / f"{name}.md").read_text(encoding="utf-8").split())


def table(name: str, *columns: str) -> dict[str, dict[str, str]]:
    """The only table of a card whose first columns are headed so: first cell -> heading -> cell."""
    found: list[dict[str, dict[str, str]]] = []
    for block in re.split(r"\n\s*\n", (CARDS / f"{name}.md").read_text(encoding="utf-8")):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        if not lines:
            continue
        header, ruler, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        assert set("".join(ruler)) == {"-"}, f"{name}: the second line of a table must be a ruler, got {ruler}"
        assert {len(row) for row in rows} == {len(header)}, f"{name}: rows of another length than {header}"
        assert len({row[0] for row in rows}) == len(rows), f"{name}: a row twice under {header}"
        if header[: len(columns)] == list(columns):
            found.append({row[0].strip("`"): dict(zip(header[1:], row[1:], strict=True)) for row in rows})
    assert len(found) == 1, f"{name}: one table must begin with the columns {columns}, got {len(found)}"
    return found[0]


def fact(name: str, key: str) -> str:
    return table(name, "", "")[key][""]


def number(text: str) -> int:
    """A cell that is one number."""
    assert re.fullmatch(_NUMBER, text), f"expected a number, got {text!r}"
    return int(text.replace(",", ""))


def numbers(text: str) -> list[int]:
    """A cell of numbers with commas and spaces between them."""
    return [number(one) for one in text.split(", ")]


def stated(text: str, pattern: str) -> tuple[int, ...]:
    """The numbers that stand for each # of the pattern, which occurs once in the text."""
    found = re.findall(rf"(?<![\d,]){re.escape(pattern).replace(re.escape('#'), f'({_NUMBER})')}(?!\w)", text)
    assert len(found) == 1, f"expected {pattern!r} once, got {len(found)} in {text!r:.300}"
    values = found[0] if isinstance(found[0], tuple) else (found[0],)
    return tuple(map(number, values))


def sessions(dataset: Dataset) -> int:
    return len({(t.workspace_id, m.session_id) for t in dataset.transcripts for m in t.messages})


def judged(dataset: Dataset) -> Counter[str | None]:
    """Judged queries by category."""
    found = set(judged_queries(dataset)["query_id"])
    return Counter(query.category for query in dataset.queries if query.query_id in found)


def asked(dataset: Dataset) -> Counter[str | None]:
    return Counter(query.category for query in dataset.queries)


def sizes(dataset: Dataset) -> tuple[int, int, int, int]:
    """Count workspaces, messages, sessions and queries."""
    messages = sum(len(t.messages) for t in dataset.transcripts)
    return len(dataset.workspaces), messages, sessions(dataset), len(dataset.queries)


def column(rows: dict[str, dict[str, str]], heading: str) -> dict[str, int]:
    return {name: number(cells[heading]) for name, cells in rows.items()}


def zeros_left_out(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def test_every_card_is_read_here() -> None:
    names = ["beam", "dialogsum", "lmeb", "locomo", "longmemeval", "personamem", "qmsum"]
    assert sorted(card.stem for card in CARDS.iterdir() if card.stem != "index") == names


if os.environ.get("LCM_DATASETS_DIR"):
    DEVELOPED = get_args(Size)[:3]
    """The sizes of BEAM that the development part has."""

    @pytest.mark.parametrize("size", DEVELOPED)
    def test_beam(size: Size) -> None:
        dataset = Beam(size=size).load()
        row = table("beam", "`size`")[size]
        conversations, order = row["conversations (`beam-<size>-<n>`), in order"].split(": ")
        assert dataset.workspaces == [f"beam-{size}-{n}" for n in numbers(order)]
        of_category = judged(dataset)
        single_shot = dataset.groups["single-shot"]
        of_size = dict(zip(("messages", "sessions", "questions"), sizes(dataset)[1:], strict=True))
        found = of_size | {
            "judged": of_category.total(),
            "judgements": len(dataset.qrels),
            "single-shot": sum(of_category[category] for category in single_shot),
        }
        assert {name: number(row[name]) for name in found} == found
        assert number(conversations) == len(dataset.transcripts)

        at = DEVELOPED.index(size)
        rows = table("beam", "category")
        assert {name: numbers(cells["questions (100K, 500K, 1M)"])[at] for name, cells in rows.items()} == asked(
            dataset
        )
        unjudged = "none: nothing is relevant"
        told = {
            name: 0 if cells["judged"] == unjudged else numbers(cells["judged"])[at] for name, cells in rows.items()
        }
        assert zeros_left_out(told) == of_category
        assert {name for name, cells in rows.items() if cells["in `single-shot`"] == "yes"} == set(single_shot)
        marked = stated(words("beam"), "(`->-> 1,4`): #, #, # of them")[at]
        assert dataset.notes == (f"{marked} messages end with a mark of the generation plan, which is cut off",)

    def test_dialogsum() -> None:
        dataset = Dialogsum().load()
        lengths = [len(t.messages) for t in dataset.transcripts]
        said = [m for t in dataset.transcripts for m in t.messages]
        told = "development: # dialogues, # turns (# to # a dialogue), # words"
        of_words = sum(len(m.content.split()) for m in said)
        found = (len(lengths), len(said), min(lengths), max(lengths), of_words)
        assert stated(fact("dialogsum", "part used"), told) == found
        assert sessions(dataset) == len(dataset.transcripts)
        assert stated(fact("dialogsum", "references"), "#, one for each whole dialogue") == (len(dataset.references),)
        people = Counter(str(len({m.author for m in t.messages})) for t in dataset.transcripts)
        assert column(table("dialogsum", "people in a dialogue"), "dialogues") == people

    def test_locomo() -> None:
        dataset = Locomo().load()
        part = fact("locomo", "part used")
        assert stated(part, "# conversations, # turns, # sessions, # questions") == sizes(dataset)
        order = part.removeprefix("development: conv-").split(": ")[0]
        assert dataset.workspaces == [f"conv-{n}" for n in numbers(order)]
        rows = table("locomo", "category")
        assert column(rows, "questions") == asked(dataset)
        assert zeros_left_out(column(rows, "judged (original)")) == judged(dataset)
        text = words("locomo")
        told_of_all = stated(text, "Judged questions: # of # with `evidence=original`")
        assert told_of_all == (judged(dataset).total(), len(dataset.queries))
        repaired = judged(Locomo(evidence="repaired").load()).total()
        assert stated(text, "the audit found wrong; # are judged then") == (repaired,)

    def test_longmemeval() -> None:
        official, whole = (LongMemEval(protocol=protocol).load() for protocol in ("official", "all"))
        own = LongMemEval(protocol="all", added_questions=False).load()
        rows = table("longmemeval", "haystack")
        assert stated(fact("longmemeval", "part used"), "the # haystacks") == (len(rows),)
        for transcript in whole.transcripts:
            (name,) = (name for name in rows if name in transcript.workspace_id)
            cells = rows.pop(name)
            categories = asked(whole.part({transcript.workspace_id}))
            added = categories.pop("single-session-added", 0)
            assert categories == {cells.pop("LongMemEval's question"): 1}
            found = {
                "sessions": len({m.session_id for m in transcript.messages}),
                "turns": len(transcript.messages),
                "user turns": sum(m.role == "user" for m in transcript.messages),
                "added questions": added,
            }
            assert {key: number(cells[key]) for key in found} == found
        assert rows == {}
        protocols = table("longmemeval", "", "`official`")
        turns, questions, by_session = (protocols[key] for key in ("turns", "questions", "judged sessions"))
        assert stated(turns["`official`"], "the user's: # in # sessions") == sizes(official)[1:3]
        assert stated(turns["`all`"], "all: # in # sessions") == sizes(whole)[1:3]
        marked, left_out = stated(questions["`official`"], "a marked turn of the user: #; the # added ones")
        assert (marked, left_out) == (len(official.queries), len(whole.queries) - len(own.queries))
        assert stated(questions["`all`"], "#; # with `added_questions=false`") == (len(whole.queries), len(own.queries))
        through = []
        for protocol, dataset in (("`official`", official), ("`all`", whole)):
            marks = dataset.qrels.join(workspace_of_query(dataset), on="query_id")
            by_haystack = dict(marks.group_by("workspace_id").len().iter_rows())
            told = (len(marks), *(by_haystack[workspace] for workspace in dataset.workspaces))
            assert stated(protocols["judged turns"][protocol], "# (#, #, #)") == told
            assert judged(dataset).total() == len(dataset.queries)
            sessions_of = marks.join(session_of_message(dataset), on=["workspace_id", "message_id"])
            through.append(sessions_of.select("query_id", "session_id").n_unique())
        assert stated(by_session["`official`"], "#, through their turns") == (through[0],)
        told = stated(by_session["`all`"], "# through their turns, and # by session only")
        assert told == (through[1], len(whole.session_qrels))

    def test_personamem() -> None:
        dataset = Personamem().load()
        told = "# personas, # contexts, # sessions, # messages, # characters, # questions"
        _, contexts, in_sessions, messages, _, questions = stated(fact("personamem", "part used"), told)
        assert (contexts, messages, in_sessions, questions) == sizes(dataset)
        roles = Counter(m.role for t in dataset.transcripts for m in t.messages)
        told_roles = stated(fact("personamem", "roles"), "`[SYSTEM]` #, `[USER]` #, `[ASSISTANT]` # messages")
        assert dict(zip(("system", "user", "assistant"), told_roles, strict=True)) == roles
        assert column(table("personamem", "category"), "questions") == asked(dataset)
        assert len(dataset.options) == 4 * questions
        assert dataset.notes == ("14 wrong options say word for word what the correct one says",)

    def test_qmsum() -> None:
        dataset = Qmsum().load()
        meetings, turns, in_sessions, questions = sizes(dataset)
        kept = [m for t in Qmsum(marks="keep").load().transcripts for m in t.messages]
        of_words, speakers = sum(len(m.content.split()) for m in kept), len({m.author for m in kept})
        told = stated(fact("qmsum", "part used"), "# meetings, # turns, # words, # names of speakers, # questions")
        assert told == (meetings, turns, of_words, speakers, questions)
        assert in_sessions == meetings
        assert stated(fact("qmsum", "references"), "#: the answer to each question") == (len(dataset.references),)
        rows = table("qmsum", "category")
        assert column(rows, "questions") == asked(dataset)
        assert zeros_left_out(column(rows, "judged")) == judged(dataset)
        assert stated(words("qmsum"), "Judgements: #") == (len(dataset.qrels),)
        assert dataset.notes == ("1253 turns have no words; 823 of 13443 judgements name one of them",)
