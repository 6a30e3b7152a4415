"""What of the evidence stands in a context: verbatim, in a summary's words, or below a summary."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl
import pytest

from eval.measures.means import Means
from eval.measures.measure import MemoryReading
from eval.measures.memory import Compression, compressed
from eval.measures.retention import Retention
from lcm.context.assembly.lossless import Lossless as LosslessAssembly
from lcm.memory.memory import Memory
from lcm.protocols.context import ContextRequest
from lcm.records.context import Context, ContextItem
from lcm.records.conversation import Message, Part
from lcm.records.document import AuthoredNode
from lcm.records.query import Query
from lcm.records.summary import Summary
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from tests.eval.tiny import tiny
from tests.support.workspaces import LINES, minute, system, transcript

TOKENS = Utf16Units()


def folded() -> Memory:
    """Six of eight messages under two leaves, one of which stands under a condensed summary; a tail of two."""
    memory = Memory.open(replace(system(), assembly=LosslessAssembly(TOKENS, fresh_tail_count=2)))
    memory.ingest(transcript())
    _fold(memory, "sum_a", 0, 0, 3, "nothing of it")
    _fold(memory, "sum_b", 0, 1, 3, " ".join(LINES[3:6]))
    _fold(memory, "sum_c", 1, 0, 1, "above")
    return memory


def _fold(memory: Memory, name: str, depth: int, start: int, count: int, words: str) -> None:
    entries = memory.store.context("talk")[start : start + count]
    summary = Summary(
        summary_id=name,
        conversation_id="talk",
        kind="condensed" if depth else "leaf",
        depth=depth,
        content=words,
        token_count=TOKENS.count([words])[0],
        created_at=minute(9),
        source_ids=tuple(entry.item_id for entry in entries),
        method="test",
        confidence=0.5,
    )
    memory.store.replace_range("talk", entries[0].ordinal, entries[-1].ordinal, summary)


def reading(
    memory: Memory, asked: Sequence[Query], evidence: Mapping[str, Sequence[str]], ranked: pl.DataFrame
) -> MemoryReading:
    return MemoryReading(memory, asked, ranked, evidence, tiny())


def measured(evidence: Sequence[int], budget: int = 10_000, threshold: float = 0.5) -> dict[str, float]:
    with folded() as memory:
        asked = [Query("q", "goats", minute(9))]
        found = Retention([budget], threshold).rows(
            reading(memory, asked, {"q": [f"talk:{i}" for i in evidence]}, memory.rank(asked))
        )
    return {name.removesuffix(f"@{budget}"): value for name, value in found.select("measure", "value").iter_rows()}


def test_evidence_is_verbatim_in_the_tail_or_kept_by_a_summarys_words_within_the_budget() -> None:
    found = measured([6, 7])
    assert (found["verbatim"], found["retained"]) == (1, 1)
    assert "expansions" not in found
    assert measured([3])["summarised"] == 1
    assert measured([3], threshold=1.0)["summarised"] == 1  # every word of it
    found = measured([0, 3, 6, 7])
    assert (found["verbatim"], found["summarised"], found["reachable"]) == (2 / 4, 1 / 4, 1 / 4)
    found = measured([0, 7], budget=1)
    assert (found["verbatim"], found["retained"]) == (1 / 2, 1 / 2)
    assert measured([]) == {}


def test_what_a_summary_only_covers_is_reached_by_expansion_and_its_cost_is_what_that_shows() -> None:
    found = measured([0])
    assert (found["verbatim"], found["summarised"], found["reachable"]) == (0, 0, 1)
    assert found["expansions"] == 2  # sum_c, then sum_a
    of_a = sum(TOKENS.count([text])[0] for text in LINES[:3])  # users' messages cost their words
    assert found["expansion_tokens"] >= of_a + TOKENS.count(["nothing of it"])[0]


def test_a_context_is_of_the_conversation_that_the_query_names_or_of_the_last() -> None:
    with folded() as memory:
        memory.ingest(transcript(LINES * 2, "later"))
        asked = [Query("named", "a", minute(20), conversation_id="talk"), Query("open", "a", minute(20))]
        evidence = {"named": ["talk:7"], "open": ["talk:7"]}
        found = Retention([10_000]).rows(reading(memory, asked, evidence, memory.rank(asked)))
        found = found.filter(measure="verbatim@10000")
    assert dict(found.select("query_id", "value").iter_rows()) == {"named": 1, "open": 0}  # "later" was heard last


class Recalls:
    """Shows the first document that was recalled, and nothing of the conversation."""

    reads_prompts = False
    shows_documents = True

    def rendered(self, message: Message) -> str:
        return message.content

    def assemble(
        self, items: Sequence[Message | Summary], asks: Sequence[ContextRequest], authored: Sequence[AuthoredNode] = ()
    ) -> list[Context]:
        found = []
        for ask in asks:
            (one, *_) = ask.recalled
            text = f"<entry>{html.escape(one.text)}</entry>"
            item = ContextItem("document", one.document_id, text, 1, source_message_ids=one.source_message_ids)
            found.append(Context((item,), 1, ask.budget_tokens))
        return found


def recalled(memory: Memory, document_id: str, message_id: str) -> str:
    """Name the share that is 1 where one document is all that is shown and one message all that is sought."""
    asked = [Query("q", "goats", minute(9))]
    ranked = memory.rank(asked).head(1).with_columns(document_id=pl.lit(document_id))
    found = Retention([9]).rows(reading(memory, asked, {"q": [message_id]}, ranked))
    shares = found.filter(pl.col("measure").is_in(["verbatim@9", "summarised@9", "reachable@9"]), value=1)
    return shares["measure"].item()


def test_a_recalled_document_holds_its_messages_in_full_or_in_part_or_leads_to_them() -> None:
    said = ("goats & sheep <graze>", "the red tractor needs a new clutch before harvest")
    with Memory.open(replace(system(), assembly=Recalls())) as memory:
        memory.ingest(transcript(said))
        whole, other = memory.documents["document_id"]
        told = {"part": "red tractor, new clutch before harvest", "hardly": "a machine"}
        memory.store.add_documents(
            [replace(memory.store.document(other), document_id=name, text=words) for name, words in told.items()]
        )
        memory = Memory(memory.system, memory.store)
        assert recalled(memory, whole, "talk:0") == "verbatim@9"
        assert recalled(memory, "part", "talk:1") == "summarised@9"
        assert recalled(memory, "hardly", "talk:1") == "reachable@9"


def test_calls_are_held_where_a_document_shows_them_and_what_says_nothing_is_held_by_none() -> None:
    called = Part("tool", tool_call_id="c", tool_name="set_valve", tool_input='{"litres": 40}')
    told = transcript(("goats", "", ""))
    messages = (told.messages[0], replace(told.messages[1], parts=(called,)), replace(told.messages[2], parts=()))
    with Memory.open(replace(system(), assembly=Recalls())) as memory:
        memory.ingest(replace(told, messages=messages))
        first = memory.store.document(memory.documents["document_id"][0])
        _, call, empty = (message.message_id for message in messages)
        shown = {"held": "[tool set_valve] litres: 40", "lost": "a valve was turned"}
        memory.store.add_documents(
            [
                replace(first, document_id=name, text=text, source_message_ids=(call, empty))
                for name, text in shown.items()
            ]
        )
        memory = Memory(memory.system, memory.store)
        assert recalled(memory, "held", call) == "verbatim@9"
        assert {recalled(memory, *pair) for pair in (("held", empty), ("lost", call), ("lost", empty))} == {
            "reachable@9"
        }


@pytest.mark.parametrize("bad", [{"budgets": [0]}, {"rouge_threshold": 0}, {"rouge_threshold": 1.1}])
def test_what_measures_nothing_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Retention(**bad)  # type: ignore[arg-type]


def test_compression_counts_what_is_shown_and_what_can_be_reached() -> None:
    with folded() as memory:
        rows = compressed(memory.store, TOKENS)
    (row,) = rows.iter_rows(named=True)
    raw = sum(TOKENS.count(LINES))
    shown = sum(TOKENS.count(["above", " ".join(LINES[3:6]), *LINES[6:]]))
    assert (row["raw_tokens"], row["context_tokens"], row["tokens_saved"]) == (raw, shown, raw - shown)
    assert (row["messages"], row["context_items"], row["summaries"], row["depth"]) == (8, 4, 3, 1)
    assert row["fanout"] == pytest.approx((3 + 3 + 1) / 3)
    assert (row["normal"], row["confidence"], row["recoverability"]) == (3, 0.5, 1)
    assert Compression().section(rows, Means())["ratio"] == raw / shown


def test_compression_counts_images_while_they_stand_in_the_context() -> None:
    picture = {"type": "image", "data": "AAAA"}
    part = Part("file", metadata={"slot": "content", "raw": picture})
    said = [Message(f"m{number}", "user", "word", "s", parts=(part,), created_at=minute(number)) for number in range(3)]
    with Store() as store:
        store.append("talk", said, TOKENS)
        store.remove_from_context("talk", [store.context("talk")[0].ordinal])
        (row,) = compressed(store, TOKENS).iter_rows(named=True)
    assert (row["raw_tokens"], row["context_tokens"]) == (3 * 1201, 2 * 1201)


def test_a_message_taken_out_of_the_context_is_retired_and_what_no_item_leads_to_is_lost() -> None:
    with folded() as memory:
        memory.store.remove_from_context("talk", [memory.store.context("talk")[0].ordinal])
        (row,) = compressed(memory.store, TOKENS).iter_rows(named=True)
    assert (row["retired"], row["recoverability"]) == (3, 1)
    with folded() as memory:
        with memory.store.writing() as connection:
            connection.execute("DELETE FROM context_items WHERE summary_id = 'sum_c'")
        (row,) = compressed(memory.store, TOKENS).iter_rows(named=True)
    assert row["recoverability"] == 5 / 8
