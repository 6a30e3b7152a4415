"""What it takes to have at hand what the next turns need: probes, the ways back, and tokens of a task."""

from dataclasses import replace

import polars as pl
import pytest

from eval.measures.means import Means
from eval.measures.measure import REPORT_TOKENS, SystemReading
from eval.measures.session_play import RecallWays, played
from eval.measures.sessions import RESUME_SCHEMA, Resume, probes_of
from lcm.records.conversation import Message, Role, Transcript
from tests.eval.measures.test_survival import dataset, folding
from tests.support.workspaces import minute, transcript

SAID: tuple[tuple[Role, str], ...] = (
    (
        "user",
        "The notes lie at https://example.org/notes/2026, and much else was said there about the old harbour wall.",
    ),
    ("assistant", "I read them all, from the beginning to the very end of them, and then looked out for a while."),
    ("user", "now the other one, please, and take all the time that it needs, for nobody is waiting for it here"),
    ("assistant", "It is done, and it took a good while, as such things do when nobody is waiting for them at all."),
    ("user", "and then write down where the notes are"),
    ("assistant", "Written: the notes are at https://example.org/notes/2026."),
)


def talk(said: tuple[tuple[Role, str], ...] = SAID) -> Transcript:
    messages = [Message(f"m{n}", role, words, "s", minute(n)) for n, (role, words) in enumerate(said)]
    return Transcript("talk", tuple(messages))


def measured(resume: Resume, said: tuple[tuple[Role, str], ...] = SAID) -> pl.DataFrame:
    return resume.rows(SystemReading(folding(10_000), dataset(talk(said))))


def values(rows: pl.DataFrame, arm: str, budget: int | None) -> dict[str, float]:
    of_budget = pl.col("budget").is_null() if budget is None else pl.col("budget") == budget
    return dict(rows.filter(pl.col("arm") == arm, of_budget).select("measure", "value").iter_rows())


def test_a_later_mention_of_what_was_said_is_a_probe() -> None:
    """A stop also knows what the user asks next, and at the end what was asked last."""
    stops = list(played(folding(), talk(), 1, stops_at_turns=True))
    assert [stop.prompt for stop in stops] == [SAID[2][1], SAID[4][1], SAID[4][1]]
    of_first, of_second = [list(probes_of(stop)) for stop in stops if stop.next_turn]
    assert of_first == []
    (probe,) = of_second
    assert (probe.fact.kind, probe.fact.key) == ("url", "https://example.org/notes/2026")
    assert probe.cues == ("written",)  # its other words are those of the address


def test_a_fact_behind_a_summary_costs_its_expansion_once_in_a_task() -> None:
    """Two of three turns are folded before the last: one expansion of one leaf shows its messages."""
    found = values(measured(Resume((500,), 3)), "system", 500)
    assert (found["at_hand"], found["recalled"], found["lost"], found["probes"]) == (0, 1, 0, 1)
    assert found["rounds"] == 1
    for stop in played(folding(10_000), talk(), 3, stops_at_turns=True):
        if stop.number == 2:
            edges = stop.memory.store.edges("talk")
            (leaf,) = edges.filter(source_id="m0")["summary_id"]
            assert found["recall_tokens"] == edges.filter(summary_id=leaf)["tokens"].sum()
    assert found["task_tokens"] == pytest.approx((2 * found["context_tokens"] + found["recall_tokens"]) / 3)


def test_without_compaction_all_is_at_hand_under_a_large_budget_and_lost_under_a_small_one() -> None:
    rows = measured(Resume((30, 500), 3))
    assert values(rows, "last_n", 500)["at_hand"] == 1
    assert values(rows, "last_n", 30)["lost"] == 1
    whole = values(rows, "whole_history", None)
    sent = [words if role == "user" else f'[{{"type":"text","text":"{words}"}}]' for role, words in SAID]
    costs = [sum(REPORT_TOKENS.count(sent[:n])) for n in (2, 4)]
    assert whole["at_hand"] == 1
    assert whole["context_tokens"] == sum(costs) / 2


def test_shares_of_probes_are_all_there_is_and_equal_talks_give_equal_rows() -> None:
    rows = measured(Resume((30, 500), 2))
    shares = rows.filter(pl.col("measure").is_in(["at_hand", "recalled", "lost"]))
    assert shares.group_by("arm", "budget").agg(pl.col("value").sum())["value"].unique().to_list() == [1.0]
    assert rows.equals(measured(Resume((30, 500), 2)))
    assert rows.schema == RESUME_SCHEMA
    assert Resume().section(rows, Means())["whole_history"]["at_hand"]["n"] == 1
    told = replace(talk().messages[4], content="write down https://example.org/notes/2026")
    said = tuple((one.role, one.content) for one in (*talk().messages[:4], told, talk().messages[5]))
    assert measured(Resume((500,), 3), said).is_empty()  # what somebody tells in the same turn is no probe


def test_what_cannot_be_measured_is_refused_or_noted() -> None:
    with pytest.raises(ValueError, match="tasks must be"):
        Resume(tasks=0)
    assert not Resume(budgets=()).is_measured(folding(), dataset())
    resume = Resume((100,), 2)
    rows = resume.rows(SystemReading(folding(), dataset(transcript(("Hello there.", "And good day.")))))
    assert resume.notes(rows, SystemReading(folding(), dataset())) == [
        "resume: no assistant mentions again what was said before, so there was nothing to bring back"
    ]


def test_what_is_new_or_otherwise_than_before_is_no_probe_and_what_is_mentioned_twice_is_one() -> None:
    url = "https://example.org/notes/2026"
    last = f"The notes are at {url}, yes, at {url}; the port is 9090, and more lies at https://example.org/other/2027."
    said: tuple[tuple[Role, str], ...] = (
        ("user", f"The notes lie at {url}. The port is 8080."),
        ("assistant", "Noted."),
        ("user", "And where was that?"),
        ("assistant", last),
    )
    stops = played(folding(), talk(said), 1, stops_at_turns=True)
    assert [[probe.fact.key for probe in probes_of(stop)] for stop in stops] == [[url], []]


def test_a_search_costs_what_it_shows_and_the_message_that_is_read() -> None:
    stops = played(folding(10_000), talk(), 1)
    stop = next(stops)
    said = {one.message_id: one for one in stop.said}
    ways = RecallWays(stop)
    way = ways.best(["m0"], ["harbour wall"], ())
    assert way is not None
    assert (way.steps, way.message_ids) == (2, ("m0",))
    assert way.tokens > said["m0"].tokens
    later = ways.best(["m0"], ["no such words", "harbour wall"], ())
    assert later is not None
    assert (later.steps, later.tokens > way.tokens) == (3, True)
