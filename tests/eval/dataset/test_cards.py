"""The dataset cards: what docs/datasets states is what the loaders give."""

import os
import re
from collections import Counter
from collections.abc import Mapping
from statistics import median
from typing import get_args

import polars as pl
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


def messages(dataset: Dataset) -> int:
    return sum(len(t.messages) for t in dataset.transcripts)


def sessions(dataset: Dataset) -> int:
    return len({(t.workspace_id, m.session_id) for t in dataset.transcripts for m in t.messages})


def judged(dataset: Dataset) -> Counter[str | None]:
    """Judged queries by category."""
    found = set(judged_queries(dataset)["query_id"])
    return Counter(query.category for query in dataset.queries if query.query_id in found)


def asked(dataset: Dataset) -> Counter[str | None]:
    return Counter(query.category for query in dataset.queries)


def zeros_left_out(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def test_a_number_that_is_missing_or_there_twice_is_noticed() -> None:
    assert stated("all 1,157 questions, of them 3 judged", "# questions, of them # judged") == (1157, 3)
    assert stated("`A` 2,436, `B` 7", "`A` #") == (2436,)
    assert numbers("12, 1,157, 3") == [12, 1157, 3]
    for text in ("questions", "1157questions", "3 questions and 4 questions", "1 question"):
        with pytest.raises(AssertionError):
            stated(text, "# questions")
    for cell in ("", "none", "12 3", "1,15", "12,"):
        with pytest.raises(AssertionError):
            number(cell)
    with pytest.raises(AssertionError):
        table("locomo", "no such column")


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
        assert set(table("beam", "`size`")) == set(DEVELOPED)
        conversations, order = row["conversations (`beam-<size>-<n>`), in order"].split(": ")
        assert [t.workspace_id for t in dataset.transcripts] == [f"beam-{size}-{n}" for n in numbers(order)]
        assert len({t.workspace_id for t in dataset.transcripts}) == number(conversations)
        of_category = judged(dataset)
        single_shot = dataset.groups["single-shot"]
        found = {
            "messages": messages(dataset),
            "sessions": sessions(dataset),
            "questions": len(dataset.queries),
            "judged": of_category.total(),
            "judgements": len(dataset.qrels),
            "single-shot": sum(of_category[category] for category in single_shot),
        }
        assert {name: number(row[name]) for name in found} == found

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
        assert {cells["in `single-shot`"] for cells in rows.values()} == {"yes", "no"}
        marked = stated(words("beam"), "(`->-> 1,4`): #, #, # of them")[at]
        assert dataset.notes == (f"{marked} messages end with a mark of the generation plan, which is cut off",)

    def test_dialogsum() -> None:
        dataset = Dialogsum().load()
        part = fact("dialogsum", "part used")
        told = "development: # dialogues, # turns (# to # a dialogue), # words"
        lengths = [len(t.messages) for t in dataset.transcripts]
        said = [m for t in dataset.transcripts for m in t.messages]
        assert stated(part, told) == (
            len({t.workspace_id for t in dataset.transcripts}),
            len(said),
            min(lengths),
            max(lengths),
            sum(len(m.content.split()) for m in said),
        )
        assert sessions(dataset) == len(dataset.transcripts)
        assert stated(fact("dialogsum", "references"), "#, one for each whole dialogue") == (len(dataset.references),)
        people = Counter(len({m.author for m in t.messages}) for t in dataset.transcripts)
        rows = table("dialogsum", "people in a dialogue")
        assert {number(name): number(cells["dialogues"]) for name, cells in rows.items()} == people
        authors = [f"#Person{n}#" for n in range(1, 5)]
        speakers = re.findall(rf"`(#Person\d#)` ({_NUMBER})(?=[,.])", words("dialogsum"))
        assert [name for name, _ in speakers] == authors
        assert {name: number(count) for name, count in speakers} == Counter(m.author for m in said)
        assert fact("dialogsum", "judged unit").startswith("none: no questions and no judgements")
        assert (len(dataset.queries), len(dataset.qrels), len(dataset.session_qrels)) == (0, 0, 0)

    def test_locomo() -> None:
        dataset = Locomo().load()
        part = fact("locomo", "part used")
        assert stated(part, "# conversations, # turns, # sessions, # questions") == (
            len({t.workspace_id for t in dataset.transcripts}),
            messages(dataset),
            sessions(dataset),
            len(dataset.queries),
        )
        order = part.removeprefix("development: conv-").split(": ")[0]
        assert [t.workspace_id for t in dataset.transcripts] == [f"conv-{n}" for n in numbers(order)]
        rows = table("locomo", "category")
        assert {name: number(cells["questions"]) for name, cells in rows.items()} == asked(dataset)
        told = {name: number(cells["judged (original)"]) for name, cells in rows.items()}
        assert zeros_left_out(told) == judged(dataset)
        text = words("locomo")
        told_of_all = stated(text, "Judged questions: # of # with `evidence=original`")
        assert told_of_all == (judged(dataset).total(), len(dataset.queries))
        repaired = judged(Locomo(evidence="repaired").load()).total()
        assert stated(text, "the audit found wrong; # are judged then") == (repaired,)

    def test_longmemeval() -> None:
        official, whole = (LongMemEval(protocol=protocol).load() for protocol in ("official", "all"))
        own = LongMemEval(protocol="all", added_questions=False).load()
        rows = table("longmemeval", "haystack")
        haystacks = {t.workspace_id: t for t in whole.transcripts}
        assert len(haystacks) == len(rows) == stated(fact("longmemeval", "part used"), "the # haystacks")[0]
        for name, cells in rows.items():
            (said,) = (t.messages for t in whole.transcripts if name in t.workspace_id)
            (place,) = (t.workspace_id for t in whole.transcripts if name in t.workspace_id)
            categories = Counter(query.category for query in whole.queries if query.workspace_id == place)
            added = categories.pop("single-session-added", 0)
            assert categories == {cells["LongMemEval's question"]: 1}
            assert {
                "sessions": number(cells["sessions"]),
                "turns": number(cells["turns"]),
                "user turns": number(cells["user turns"]),
                "added questions": number(cells["added questions"]),
            } == {
                "sessions": len({m.session_id for m in said}),
                "turns": len(said),
                "user turns": sum(m.role == "user" for m in said),
                "added questions": added,
            }
        protocols = table("longmemeval", "", "`official`")
        turns, questions = protocols["turns"], protocols["questions"]
        assert stated(turns["`official`"], "the user's: # in # sessions") == (messages(official), sessions(official))
        assert stated(turns["`all`"], "all: # in # sessions") == (messages(whole), sessions(whole))
        marked, left_out = stated(questions["`official`"], "a marked turn of the user: #; the # added ones")
        assert (marked, left_out) == (len(official.queries), len(whole.queries) - len(own.queries))
        assert stated(questions["`all`"], "#; # with `added_questions=false`") == (len(whole.queries), len(own.queries))
        for protocol, dataset in (("`official`", official), ("`all`", whole)):
            of_query = workspace_of_query(dataset)
            marks = dataset.qrels.join(of_query, on="query_id").group_by("workspace_id").len()
            by_haystack = [dict(marks.iter_rows())[t.workspace_id] for t in dataset.transcripts]
            assert stated(protocols["judged turns"][protocol], "# (#, #, #)") == (len(dataset.qrels), *by_haystack)
            assert judged(dataset).total() == len(dataset.queries)
        through = [
            dataset.qrels.join(workspace_of_query(dataset), on="query_id")
            .join(session_of_message(dataset), on=["workspace_id", "message_id"])
            .select("query_id", "session_id")
            .n_unique()
            for dataset in (official, whole)
        ]
        by_session = protocols["judged sessions"]
        assert stated(by_session["`official`"], "#, through their turns") == (through[0],)
        told = stated(by_session["`all`"], "# through their turns, and # by session only")
        assert told == (through[1], len(whole.session_qrels))

    def test_personamem() -> None:
        dataset = Personamem().load()
        told = stated(
            fact("personamem", "part used"),
            "# personas, # contexts, # sessions, # messages, # characters, # questions",
        )
        contexts = {t.workspace_id for t in dataset.transcripts}
        assert told[1:4] == (len(contexts), sessions(dataset), messages(dataset))
        assert told[5] == len(dataset.queries)
        sizes = Counter(len({m.session_id for m in t.messages}) for t in dataset.transcripts)
        *of_size, four, five, six = stated(fact("personamem", "workspace"), "(#, # and # contexts have #, # and #)")
        assert dict(zip((four, five, six), of_size, strict=True)) == sizes
        roles = Counter(m.role for t in dataset.transcripts for m in t.messages)
        told_roles = stated(fact("personamem", "roles"), "`[SYSTEM]` #, `[USER]` #, `[ASSISTANT]` # messages")
        assert dict(zip(("system", "user", "assistant"), told_roles, strict=True)) == roles
        rows = table("personamem", "category")
        assert {name: number(cells["questions"]) for name, cells in rows.items()} == asked(dataset)
        assert fact("personamem", "judged unit").startswith("none: ")
        assert judged(dataset).total() == 0
        assert fact("personamem", "options").startswith("four a question, exactly one of them correct")
        offered = dataset.options.group_by("query_id").agg(pl.len(), pl.col("is_correct").sum())
        assert offered.select("len", "is_correct").unique().rows() == [(4, 1)]
        assert len(offered) == len(dataset.queries)

    def test_qmsum() -> None:
        dataset = Qmsum().load()
        said = [m for t in dataset.transcripts for m in t.messages]
        kept = [m for t in Qmsum(marks="keep").load().transcripts for m in t.messages]
        assert stated(fact("qmsum", "part used"), "# meetings, # turns, # words, # names of speakers, # questions") == (
            len({t.workspace_id for t in dataset.transcripts}),
            len(said),
            sum(len(m.content.split()) for m in kept),
            len({m.author for m in said}),
            len(dataset.queries),
        )
        lengths = [len(t.messages) for t in dataset.transcripts]
        assert stated(fact("qmsum", "workspace"), "one meeting: # to # turns") == (min(lengths), max(lengths))
        assert sessions(dataset) == len(dataset.transcripts)
        assert stated(fact("qmsum", "references"), "#: the answer to each question") == (len(dataset.references),)
        rows = table("qmsum", "category")
        assert {name: number(cells["questions"]) for name, cells in rows.items()} == asked(dataset)
        assert zeros_left_out({name: number(cells["judged"]) for name, cells in rows.items()}) == judged(dataset)
        text = words("qmsum")
        sizes = dataset.qrels.group_by("query_id").len()["len"].to_list()
        assert stated(text, "Judgements: #") == (len(dataset.qrels),)
        assert stated(text, "A question has # to # relevant turns, the median is #; # of # have more than ten") == (
            min(sizes),
            max(sizes),
            median(sizes),
            sum(size > 10 for size in sizes),
            len(sizes),
        )
