"""Recall under a budget of tokens: whole documents, one that is cut off, quotations, passages, summaries."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.dataset.dataset import QUOTATIONS_SCHEMA, Dataset
from eval.dataset.own import Own
from eval.judging.judgements import estimated
from eval.measures.coverage import evidence_text
from eval.measures.measure import REPORT_TOKENS, RunReading
from eval.measures.retrieval import Retrieval
from lcm.errors import LcmError
from lcm.records.conversation import Message, Part, Transcript
from lcm.records.query import Query
from tests.eval.tiny import tiny
from tests.support.experiments import outcome
from tests.support.workspaces import minute, system

Texts = Mapping[str, str]
Document = tuple[str, Sequence[str]] | tuple[str, Sequence[str], str]
"""Its text, the messages that it stands for, and its kind."""

RANKED = {
    **dict.fromkeys(("workspace_id", "document_id", "text"), pl.String()),
    "source_message_ids": pl.List(pl.String()),
    "kind": pl.String(),
    **dict.fromkeys(("tokens", "rank"), pl.Int64()),
    "query_id": pl.String(),
}
WORDS = "the quick brown fox jumps over the lazy dog and then it rests a while below the old oak near the river bank"


def dataset(texts: Texts, relevant: Sequence[str], quotations: Sequence[tuple[int, str, str]] = ()) -> Dataset:
    """One query, `q`; quotations are rows evidence, message, words."""
    messages = tuple(Message(name, "user", text, "s", minute(i)) for i, (name, text) in enumerate(texts.items()))
    quoted = pl.DataFrame([("q", *row) for row in quotations], schema=QUOTATIONS_SCHEMA, orient="row")
    judged = (("q", name) for name in relevant)
    return tiny([Transcript("c", messages)], [Query("q", "q", minute(99))], judged, quotations=quoted)


def found(
    data: Dataset,
    ranked: Sequence[Document],
    budgets: Sequence[int],
    names: Sequence[str] = (),
    others: Sequence[Document] = (),
    stands_for: Sequence[str] = (),
) -> list[float]:
    """The values at each budget, then those of `names`. `others` are documents that were not returned; the first that
    was stands for those of the ids `stands_for`; documents are d1, d2 ..."""
    rows = [
        ("default", f"d{rank}", text, list(sources), *(kind or ["message"]), *REPORT_TOKENS.count([text]), rank, "q")
        for rank, (text, sources, *kind) in enumerate((*ranked, *others), 1)
    ]
    frame = pl.DataFrame(rows, schema=RANKED, orient="row")
    texts = evidence_text(frame, data.queries, data).with_columns(workspace_id=pl.lit("default"))
    nobody = pl.lit([], pl.List(pl.String()))
    instead = pl.when(rank=1).then(pl.lit(list(stands_for), pl.List(pl.String()))).otherwise(nobody)
    run = frame.head(len(ranked)).with_columns(stands_for=instead)
    asked = [*(f"recall@{budget}t" for budget in budgets), *names]
    retrieval = Retrieval(names=asked, levels=["message"])
    values = retrieval.rows(RunReading("system", run, frame, data, texts))
    by_name = dict(values.select("measure", "value").iter_rows())
    return [by_name[name] for name in asked]


def tokens(text: str) -> int:
    (count,) = REPORT_TOKENS.count([text])
    return count


def test_a_quotation_is_found_where_what_is_read_holds_it() -> None:
    """It ends with letter 19: five tokens; the document has 27. The other evidence is a message that nobody quotes."""
    texts = {"m0": WORDS, "m1": "we sail at dawn"}
    data = dataset(texts, list(texts), [(1, "m0", "Quick  brown FOX")])
    ranked = [(WORDS, ["m0"]), (texts["m1"], ["m1"])]
    assert tokens(WORDS[:19]) == 5
    assert found(data, ranked, [4, 5, tokens(WORDS) + 3, tokens(WORDS) + 4]) == [0, 1 / 2, 1 / 2, 1]


def test_a_piece_of_evidence_needs_one_of_its_messages_and_a_number_at_its_end_whole() -> None:
    texts = {"m0": f"first: {WORDS}", "m1": f"second: {WORDS}", "m2": "it is moored at the pier"}
    data = dataset(texts, list(texts), [(1, "m0", "lazy dog"), (1, "m1", "lazy dog"), (2, "m2", "at the pier")])
    assert found(data, [(texts["m1"], ["m1"])], [1000]) == [1 / 2]
    data = dataset({"m0": "keep 30 of them"}, ["m0"], [(1, "m0", "keep 30")])
    assert found(data, [("it said to keep 300", ["m0"])], [1000]) == [0]


def test_a_quotation_of_json_is_found_in_a_call_as_documents_tell_it() -> None:
    call = Part("tool", tool_name="book", tool_input=json.dumps({"flight": "HAT003", "note": "a\nb"}), tool_call_id="1")
    message = Message("m0", "assistant", "", "s", minute(0), parts=(call,))
    data = dataset({}, ["m0"], [(1, "m0", '"flight": "HAT003", "note": "a\\nb"')])
    data = replace(data, transcripts=(Transcript("c", (message,)),))
    assert found(data, [("[tool book] flight: HAT003\nnote: a\nb", ["m0"])], [8, 9]) == [0, 1]


def test_a_passage_of_a_long_message_is_not_the_message_and_all_its_passages_are() -> None:
    """Without a quotation; one that stands in a passage is found with that passage."""
    text = " ".join(f"{i} {WORDS}" for i in range(12))
    cuts = [0, len(text) // 3, 2 * len(text) // 3, len(text)]
    passages = [(f"notes.md, part {i}\n{text[a:b]}", ["m0"]) for i, (a, b) in enumerate(pairwise(cuts))]
    whole = sum(tokens(passage) for passage, _ in passages)
    data = dataset({"m0": text}, ["m0"])
    assert found(data, passages, [whole // 3, 2 * whole // 3, whole - 40, whole]) == [0, 0, 0, 1]
    assert found(data, passages[::-1], [whole - 40, whole]) == [0, 1]
    assert found(data, passages[1:], [whole], others=passages[:1]) == [0]
    quoted = dataset({"m0": text}, ["m0"], [(1, "m0", f"8 {WORDS}")])
    assert found(quoted, passages, [whole // 3, whole]) == [0, 1]
    assert found(quoted, passages[2:], [whole // 3 + 40], others=passages[:2]) == [1]


@pytest.mark.parametrize("kind", ["message", "summary"])
def test_what_tells_a_message_in_words_of_its_own_counts_when_it_is_read_whole(kind: str) -> None:
    """As recall@k counts it; for a quotation only where it repeats it."""
    texts = {"m0": WORDS, "m1": "we sail at dawn"}
    told = ("an animal rested by the water", ["m0", "m1"], kind)
    cost = tokens(told[0])
    assert found(dataset(texts, ["m0"]), [told], [cost - 1, cost], ["recall@1"]) == [0, 1, 1]
    assert found(dataset(texts, ["m0"], [(1, "m0", "lazy dog")]), [told], [cost], ["recall@1"]) == [0, 1]
    repeating = (f"said: {WORDS[:43]}", ["m0"], "summary")
    assert found(dataset(texts, ["m0"], [(1, "m0", "lazy dog")]), [repeating], [1000]) == [1]
    assert found(dataset(texts, ["m0"]), [repeating, (WORDS, ["m0"])], [tokens(repeating[0])]) == [1]


def test_of_what_an_extraction_drops_nothing_is_asked() -> None:
    """The message calls a tool with many words; its document says what it says in words alone."""
    call = Part("tool", tool_name="write", tool_input=json.dumps({"text": WORDS}), tool_call_id="1")
    message = Message("m0", "assistant", "I write it down", "s", minute(0), parts=(call,))
    data = replace(dataset({}, ["m0"]), transcripts=(Transcript("c", (message,)),))
    ranked = [("Ada: I write it down", ["m0"])]
    assert found(data, ranked, [4, 5]) == [0, 1]
    whole = (f"I write it down\n[tool write] text: {WORDS}", ["m0"])
    assert found(data, [*ranked, whole], [5, 5 + tokens(whole[0])]) == [0, 1], "another document holds the call"


def test_what_a_passage_is_headed_with_or_stands_for_beside_is_not_its_message() -> None:
    """A call and its long result, cut: the second passage stands for the call too, and shows none of its words."""
    texts = {"call": "[tool read] path: notes.md\nlimit: 200", "result": " ".join(f"{i} {WORDS}" for i in range(4))}
    half = len(texts["result"]) // 2
    first = (f"{texts['call']}\n{texts['result'][:half]}", list(texts))
    second = (f"notes.md, further\n{texts['result'][half:]}", list(texts))
    data = dataset(texts, ["call"])
    assert found(data, [second], [1000], ["recall"], others=[first]) == [0, 1]
    assert found(data, [second, first], [1000]) == [1]
    merged = ("another message's words are these, and it is read in place of this one", ["call", "m2"])
    data = dataset({**texts, "m2": merged[0]}, ["call"])
    assert found(data, [merged], [tokens(merged[0])]) == [1], "no document holds a word of it any more"


def test_what_stands_for_a_near_duplicate_counts_for_it_whole_and_for_the_quotations_that_it_holds() -> None:
    texts = {"m0": f"first: {WORDS}", "m1": f"second: {WORDS}"}
    ranked, others = [(texts["m1"], ["m1"])], [(texts["m0"], ["m0"])]
    cost = tokens(texts["m1"])
    assert found(dataset(texts, ["m0"]), ranked, [cost], ["recall@1"], others) == [0, 0]
    assert found(dataset(texts, ["m0"]), ranked, [cost - 1, cost], ["recall@1"], others, ["d2"]) == [0, 1, 1]
    shared, own = ([(1, "m0", words)] for words in ("lazy dog", "first: the quick"))
    assert found(dataset(texts, ["m0"], shared), ranked, [cost // 2, cost], others=others) == [0, 0]
    assert found(dataset(texts, ["m0"], shared), ranked, [cost // 2], others=others, stands_for=["d2"]) == [1]
    assert found(dataset(texts, ["m0"], own), ranked, [cost], others=others, stands_for=["d2"]) == [0]


@given(st.lists(st.text("abé ß.", min_size=1).filter(str.strip), min_size=1, max_size=4), st.data())
def test_it_is_what_reading_so_many_tokens_finds(said: list[str], data: st.DataObject) -> None:
    """Windows over messages, in any order: what they show under each budget, cut off as a reader would cut, is searched
    for every quotation and unquoted message. More tokens find no less, and where nothing is quoted no more than all."""
    texts = {f"m{i}": f"{i} {text} {i}" for i, text in enumerate(said)}
    names = list(texts)
    spans = st.tuples(st.integers(0, len(names) - 1), st.integers(1, 3))
    ranked = [
        ("\n".join(texts[name] for name in names[a : a + n]), names[a : a + n])
        for a, n in data.draw(st.lists(spans, unique=True, max_size=5))
    ]
    relevant = data.draw(st.lists(st.sampled_from(names), unique=True, min_size=1))
    quoted = data.draw(st.lists(st.sampled_from(relevant), unique=True))
    quotations = [
        (i, name, texts[name][: data.draw(st.integers(1, len(texts[name])))]) for i, name in enumerate(quoted)
    ]
    quotations = [row for row in quotations if not row[2][-1].isspace()]
    judged = dataset(texts, relevant, quotations)
    sought = {name: [texts[name]] for name in relevant} | {name: [words] for _, name, words in quotations}

    def read(budget: int) -> float:
        shown, left = [], budget
        for text, sources in ranked:
            kept = max((n for n in range(len(text) + 1) if tokens(text[:n]) <= left), default=0)
            shown.append((text[:kept], sources))
            left -= tokens(text)
            if left <= 0:
                break
        held = [
            any(name in sources and plain(words) in plain(text) for text, sources in shown)
            for name, wanted in sought.items()
            for words in wanted
        ]
        return sum(held) / len(held)

    def plain(text: str) -> str:
        return " ".join(text.split()).casefold()

    most = sum(tokens(text) for text, _ in ranked) + 1
    budgets = sorted({1, most, *data.draw(st.lists(st.integers(1, most), max_size=5))})
    *values, recall = found(judged, ranked, budgets, ["recall"])
    assert values == pytest.approx([read(budget) for budget in budgets])
    assert values == sorted(values)
    assert quotations or values[-1] == recall


def test_a_ranking_of_a_kept_run_is_refused_for_its_folder_keeps_no_words() -> None:
    run = pl.DataFrame({"query_id": ["q"], "document_id": ["d"], "rank": [1]})
    documents = pl.DataFrame(
        {"workspace_id": ["default"], "document_id": ["d"], "source_message_ids": [["m0"]], "tokens": [1]}
    )
    reading = RunReading("system", run, documents, dataset({"m0": "a"}, ["m0"]))
    with pytest.raises(LcmError, match=r"^recall@9t needs the words of the documents, which only `lcm evaluate` has"):
        estimated("recall@9t", reading, {}, run.select("query_id", "document_id").clear(), [], 0.95)


def test_questions_of_ones_own_are_measured_by_their_quotations(tmp_path: Path) -> None:
    """One quotes the words, one some like them, one names an id: that message has 13 tokens, the other 39."""
    sessions, questions = tmp_path / "session.json", tmp_path / "questions.jsonl"
    said = (f"Keep thirty back-ups of the harbour log. {WORDS}", "It is done; the tide turns at nine in the morning.")
    messages = [{"role": role, "content": text} for role, text in zip(("user", "assistant"), said, strict=True)]
    sessions.write_text(json.dumps({"conversation_id": "c", "messages": messages}))
    asked = [
        ("words", "How many back-ups of the harbour log?", "Keep thirty back-ups"),
        ("alike", "How many back-ups of the harbour log?", "keep thirty backups of the harbour log"),
        ("id", "When does the tide turn in the morning?", {"message_id": "c:2"}),
    ]
    lines = ({"question_id": name, "question": text, "evidence": evidence} for name, text, evidence in asked)
    questions.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    data = Own([str(sessions)], questions=str(questions)).load()
    quoted = data.quotations.select("query_id", "quotation").rows()
    assert quoted == [("words", "Keep thirty back-ups"), ("alike", "keep thirty back-ups of the harbour lo")]
    assert data.part(data.workspaces).quotations.equals(data.quotations)
    retrieval = Retrieval(names=["recall@5t", "recall@12t", "recall@13t"], levels=["message"])
    values = outcome(data, system(), {"retrieval": retrieval}).values.select("query_id", "value")
    assert dict(values.group_by("query_id").agg("value").iter_rows()) == {
        "words": [1, 1, 1],
        "alike": [0, 1, 1],
        "id": [0, 0, 1],
    }
