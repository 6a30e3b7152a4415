"""A question is answered within a grant, which ends with it; nobody delegates twice."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from lcm.context.answerer import Extractive, Llm
from lcm.context.recall.reader import Reader
from lcm.context.recall.recall import Answer, DelegatedAnswer, Question, Recall
from lcm.errors import GrantError, LcmError, ModelError, StoreError
from lcm.store.store import Store
from tests.lcm.context.recall.dags import START, TOKENS, fold, recall, said, talk

LINES = [
    "We moved the kettle to the garden.",
    "The migration failed because port 8443 was taken by the old proxy. It rained.",
    "Nobody was hurt by the goats.",
    "Anna restarted the proxy on port 9000 and the migration went through.",
]


def told() -> datetime:
    return START


@pytest.fixture
def store() -> Store:
    with Store() as made:
        talk(made, "talk", LINES)
        fold(made, "talk", 0, 2, "Garden work, and a migration that failed.")
        fold(made, "talk", 1, 2, "Goats, and how the migration ended.")
        yield made


def asked(store: Store, prompt: str, answerer: Any = None, clock: Any = told, **how: Any) -> DelegatedAnswer:
    configured = Recall(TOKENS, answerer=answerer or Extractive())
    return configured.expand_query(configured.on(store), prompt, clock, **how)


@dataclass
class Doing:
    """An answerer that does what a test wants."""

    deed: Callable[[Question, Reader], str]
    readers: list[Reader] = field(default_factory=list)

    def answer(self, question: Question, reader: Reader) -> Answer:
        self.readers.append(reader)
        return Answer(self.deed(question, reader), ())


def test_the_answer_quotes_the_sentences_that_speak_of_it(store: Store) -> None:
    answered = asked(store, "Why did the migration fail on port 8443?", query="migration")
    lines = answered.answer.text.splitlines()
    assert "- The migration failed because port 8443 was taken by the old proxy. [msg#2]" in lines
    assert not any("rained" in line or "kettle" in line for line in lines)
    assert set(answered.answer.cited_messages) == {2, 4}
    assert set(answered.answer.cited_ids) <= {summary.summary_id for summary in store.summaries()}
    assert (answered.answer.expanded_summaries, answered.conversations) == (2, (1,))
    assert TOKENS.count([answered.answer.text])[0] <= 2000


def test_an_answer_keeps_to_its_tokens(store: Store) -> None:
    for most in (1, 20, 40):
        answer = asked(store, "migration port proxy goats", query="migration", max_tokens=most).answer
        assert not answer.cited_messages or TOKENS.count([answer.text])[0] <= most
        assert answer.is_truncated


def test_messages_lead_to_their_leaves_and_those_of_no_summary_count_too(store: Store) -> None:
    assert asked(store, "old proxy", query="taken by the old proxy").answer.cited_messages == (2,)
    talk(store, "fresh", ["The lantern is behind the harbor wall."])
    answer = asked(store, "Where is the lantern?", query="lantern").answer
    assert (answer.text, answer.cited_ids) == ("- The lantern is behind the harbor wall. [msg#5]", ())
    shallow = recall(rules="original")
    assert not shallow.expand_query(shallow.on(store), "Where?", told, query="lantern").answer.cited_messages


def test_nothing_found_is_an_answer_and_lends_nothing(store: Store) -> None:
    answered = asked(store, "What?", doing := Doing(lambda question, reader: "x"), query="zeppelin")
    assert answered.answer.text == "Nothing was found for 'zeppelin': no summary or message holds these words."
    assert answered.route.action == "answer_directly"
    assert doing.readers == []


def test_what_is_named_must_be_there_and_of_one_conversation(store: Store) -> None:
    talk(store, "other", ["The migration of birds."])
    fold(store, "other", 0, 1, "A migration.")
    for problem, how in {
        "no 'sum_none'": {"summary_ids": ["sum_none"]},
        "no 'msg#99' in the store": {"summary_ids": ["msg#99"]},
        r"lies in 2 conversations \(1, 2\)": {"query": "migration"},
    }.items():
        with pytest.raises(StoreError, match=problem):
            asked(store, "What?", **how)
    assert asked(store, "What birds?", query="migration", conversation="other").conversations == (2,)
    for named in ("msg#2", "talk:2"):  # reading begins at what is named, by whichever id
        assert asked(store, "Why did the migration fail?", summary_ids=[named]).answer.cited_messages == (2,)


def fails(question: Question, reader: Reader) -> str:
    raise ModelError("no reply")


def breaks(question: Question, reader: Reader) -> str:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("deed", "error"), [(fails, ModelError), (breaks, KeyboardInterrupt), (lambda q, r: "fine", None)]
)
def test_the_grant_ends_on_every_exit(store: Store, deed: Any, error: Any) -> None:
    doing = Doing(deed)
    configured = Recall(TOKENS, answerer=doing)
    with nullcontext() if error is None else pytest.raises(error):
        configured.expand_query(configured.on(store), "What?", told, query="migration")
    for reader in doing.readers:
        assert reader.remaining_tokens == 0
        with pytest.raises(GrantError, match="Grant has been revoked"):
            reader.expand([store.summaries()[0].summary_id])


def test_an_answer_that_comes_too_late_is_none_and_its_grant_expires_meanwhile(store: Store) -> None:
    now, first = [START], store.summaries()[0].summary_id

    def slow(question: Question, reader: Reader) -> str:
        now[0] += timedelta(seconds=149)
        reader.expand([first])
        now[0] += timedelta(seconds=1)
        with pytest.raises(GrantError, match="expired"):
            reader.expand([first])
        return "late"

    with pytest.raises(LcmError, match="longer than 120 seconds"):
        asked(store, "What?", Doing(slow), lambda: now[0], query="migration")


def test_a_delegated_reader_does_not_delegate(store: Store) -> None:
    def recursive(question: Question, reader: Reader) -> str:
        with pytest.raises(GrantError, match="must not delegate"):
            configured.expand_query(reader, "What?", told, query="migration")
        with pytest.raises(GrantError, match="not lent on"):
            configured.grant_access(reader, [1], told)
        return "done"

    configured = Recall(TOKENS, answerer=Doing(recursive))
    assert configured.expand_query(configured.on(store), "What?", told, query="migration").answer.text == "done"


@dataclass
class Scripted:
    """A model that says what a test wrote, and keeps what it was asked."""

    replies: list[str]
    prompts: list[str] = field(default_factory=list)

    def reply(self, system: str, prompt: str, is_usable: object = None) -> str:
        self.prompts.append(prompt)
        return self.replies[len(self.prompts) - 1]


def test_a_model_reads_asks_for_more_and_cites_what_it_was_shown(store: Store) -> None:
    first, second = (summary.summary_id for summary in store.summaries())
    wants = json.dumps({"answer": "", "citedIds": [], "expand": [first, "sum_made_up"]})
    told = f'Here:\n```json\n{{"answer": "Port 8443 was taken.", "citedIds": ["{first}", "sum_made_up"]}}\n```'
    answer = asked(store, "Why?", Llm(model := Scripted([wants, told])), summary_ids=[first, second]).answer
    assert (answer.text, answer.cited_ids) == ("Port 8443 was taken.", (first,))
    assert ["8443" in prompt for prompt in model.prompts] == [False, True]


def test_a_reply_without_an_answer_is_an_error_and_a_long_one_is_cut_after_a_sentence(store: Store) -> None:
    for reply in ("I do not know.", '{"answer": ""}', '{"answer": 3}'):
        with pytest.raises(ModelError, match="answer"):
            asked(store, "Why?", Llm(Scripted([reply])), query="migration")
    long = Llm(Scripted([json.dumps({"answer": "It was the port. " * 30})]))
    answer = asked(store, "Why?", long, query="migration", max_tokens=10).answer
    assert (answer.text, answer.is_truncated) == ("It was the port. It was the port.", True)


def test_a_question_is_no_answer_where_a_statement_speaks_of_it() -> None:
    with Store() as store:
        talk(store, "talk", ["Did they give you an adrenaline pen?", "Two adrenaline pens, one at school."])
        fold(store, "talk", 0, 2, "About pens.")
        answer = asked(store, "Which adrenaline pens?", query="adrenaline").answer.text
        assert answer.splitlines()[0] == "- Two adrenaline pens, one at school. [msg#2]"
        assert "Did they" not in answer
        store.append("other", [said("other", 1, "Where is the kettle?")], TOKENS)
        alone = asked(store, "Where is the kettle?", query="kettle").answer.text
        assert alone == "- Where is the kettle? [msg#3]"
