"""A question is answered within a grant, which ends with it; nobody delegates twice."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from lcm.context.answerer.answerer import Answer, GrantedReader, Question
from lcm.context.answerer.llm import Llm
from lcm.context.recall.delegation import DelegationError
from lcm.context.recall.recall import Recall
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


@dataclass
class Doing:
    """An answerer that does what a test wants."""

    deed: Callable[[Question, GrantedReader], str]
    readers: list[GrantedReader] = field(default_factory=list)

    def answer(self, question: Question, reader: GrantedReader) -> Answer:
        self.readers.append(reader)
        return Answer(self.deed(question, reader), ())


def test_the_answer_quotes_the_sentences_that_speak_of_it(store: Store) -> None:
    configured = recall()
    answered = configured.expand_query(
        configured.on(store), "Why did the migration fail on port 8443?", told, query="migration"
    )
    lines = answered.answer.text.splitlines()
    assert "- The migration failed because port 8443 was taken by the old proxy. [msg#2]" in lines
    assert not any("rained" in line or "kettle" in line for line in lines)
    assert set(answered.answer.cited_messages) == {2, 4}
    assert set(answered.answer.cited_ids) <= {summary.summary_id for summary in store.summaries()}
    assert answered.answer.expanded_summaries == 2
    assert answered.conversations == (1,)
    assert TOKENS.count([answered.answer.text])[0] <= 2000


@pytest.mark.parametrize("max_tokens", [1, 20, 40])
def test_an_answer_keeps_to_its_tokens(store: Store, max_tokens: int) -> None:
    configured = recall()
    answered = configured.expand_query(
        configured.on(store), "migration port proxy goats", told, query="migration", max_tokens=max_tokens
    )
    if answered.answer.cited_messages:
        assert TOKENS.count([answered.answer.text])[0] <= max_tokens
    assert answered.answer.is_truncated


def test_messages_lead_to_their_leaves_and_those_of_no_summary_count_too(store: Store) -> None:
    configured = recall()
    answered = configured.expand_query(configured.on(store), "old proxy", told, query="taken by the old proxy")
    assert answered.answer.cited_messages == (2,)
    talk(store, "fresh", ["The lantern is behind the harbor wall."])
    answered = configured.expand_query(configured.on(store), "Where is the lantern?", told, query="lantern")
    assert answered.answer.text == "- The lantern is behind the harbor wall. [msg#5]"
    assert answered.answer.cited_ids == ()
    shallow = recall(rules="original")
    assert not shallow.expand_query(shallow.on(store), "Where?", told, query="lantern").answer.cited_messages


def test_nothing_found_is_an_answer_and_lends_nothing(store: Store) -> None:
    asked = Doing(lambda question, reader: "x")
    configured = Recall(asked, TOKENS)
    answered = configured.expand_query(configured.on(store), "What?", told, query="zeppelin")
    assert answered.answer.text == "Nothing was found for 'zeppelin': no summary or message holds these words."
    assert answered.route.action == "answer_directly"
    assert asked.readers == []


def test_what_is_named_must_be_there_and_of_one_conversation(store: Store) -> None:
    talk(store, "other", ["The migration of birds."])
    fold(store, "other", 0, 1, "A migration.")
    configured = recall()
    with pytest.raises(StoreError, match="no 'sum_none'"):
        configured.expand_query(configured.on(store), "What?", told, summary_ids=["sum_none"])
    with pytest.raises(StoreError, match=r"lies in 2 conversations \(1, 2\)"):
        configured.expand_query(configured.on(store), "What?", told, query="migration")
    assert configured.expand_query(
        configured.on(store), "What birds?", told, query="migration", conversation="other"
    ).conversations == (2,)


def fails(question: Question, reader: GrantedReader) -> str:
    raise ModelError("no reply")


def breaks(question: Question, reader: GrantedReader) -> str:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("deed", "error"), [(fails, ModelError), (breaks, KeyboardInterrupt), (lambda q, r: "fine", None)]
)
def test_the_grant_ends_on_every_exit(
    store: Store, deed: Callable[[Question, GrantedReader], str], error: type[BaseException] | None
) -> None:
    asked = Doing(deed)
    configured = Recall(asked, TOKENS)
    for _ in range(2):  # the slot is free again too
        if error is None:
            configured.expand_query(configured.on(store), "What?", told, query="migration")
        else:
            with pytest.raises(error):
                configured.expand_query(configured.on(store), "What?", told, query="migration")
    assert len(configured.delegations.grants) == 0
    for reader in asked.readers:
        assert reader.remaining_tokens == 0
        with pytest.raises(GrantError, match="Grant not found"):
            reader.expand([store.summaries()[0].summary_id])


def test_an_answer_that_comes_too_late_is_none_and_its_grant_expires_meanwhile(store: Store) -> None:
    now = [START]
    first = store.summaries()[0].summary_id

    def slow(question: Question, reader: GrantedReader) -> str:
        now[0] += timedelta(seconds=149)
        reader.expand([first])
        now[0] += timedelta(seconds=1)
        with pytest.raises(GrantError, match="expired"):
            reader.expand([first])
        return "late"

    configured = Recall(Doing(slow), TOKENS)
    with pytest.raises(LcmError, match="longer than 120 seconds"):
        configured.expand_query(configured.on(store), "What?", lambda: now[0], query="migration")


def test_a_delegated_reader_does_not_delegate(store: Store) -> None:
    refusals = []

    def recursive(question: Question, reader: GrantedReader) -> str:
        for request in ("a", "a", "b"):
            with pytest.raises(DelegationError) as refusal:
                configured.expand_query(reader, "What?", told, query="migration", request_id=request)  # type: ignore[arg-type]
            refusals.append((refusal.value.code, refusal.value.reason))
        return "done"

    configured = Recall(Doing(recursive), TOKENS)
    configured.expand_query(configured.on(store), "What?", told, query="migration")
    code = "EXPANSION_RECURSION_BLOCKED"
    assert refusals == [(code, "depth_cap"), (code, "idempotent_reentry"), (code, "depth_cap")]


def test_one_question_at_a_time_for_each_asker(store: Store) -> None:
    outcome = []

    def nested(question: Question, reader: GrantedReader) -> str:
        if question.prompt == "inner":
            return "fine"
        for origin in ("main", "other"):
            try:
                configured.expand_query(configured.on(store), "inner", told, query="migration", origin=origin)
                outcome.append(origin)
            except DelegationError as refusal:
                outcome.append(f"{origin} {refusal.code}")
        return "done"

    configured = Recall(Doing(nested), TOKENS)
    configured.expand_query(configured.on(store), "outer", told, query="migration")
    assert outcome == ["main EXPANSION_CONCURRENCY_BLOCKED", "other"]


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
    model = Scripted(
        [
            json.dumps({"answer": "", "citedIds": [], "expand": [first, "sum_made_up"]}),
            f'Here:\n```json\n{{"answer": "Port 8443 was taken.", "citedIds": ["{first}", "sum_made_up"]}}\n```',
        ]
    )
    configured = Recall(Llm(model), TOKENS)
    answered = configured.expand_query(configured.on(store), "Why?", told, summary_ids=[first, second])
    assert answered.answer.text == "Port 8443 was taken."
    assert answered.answer.cited_ids == (first,)
    assert "8443" not in model.prompts[0]
    assert "8443" in model.prompts[1]


@pytest.mark.parametrize("reply", ["I do not know.", '{"answer": ""}', '{"answer": 3}'])
def test_a_reply_without_an_answer_is_an_error(store: Store, reply: str) -> None:
    configured = Recall(Llm(Scripted([reply])), TOKENS)
    with pytest.raises(ModelError, match="answer"):
        configured.expand_query(configured.on(store), "Why?", told, query="migration")


def test_a_long_reply_is_cut_after_a_sentence(store: Store) -> None:
    words = "It was the port. " * 30
    configured = Recall(Llm(Scripted([json.dumps({"answer": words})])), TOKENS)
    answer = configured.expand_query(configured.on(store), "Why?", told, query="migration", max_tokens=10).answer
    assert answer.text == "It was the port. It was the port."
    assert answer.is_truncated


def test_a_question_is_no_answer_where_a_statement_speaks_of_it() -> None:
    configured = recall()
    with Store() as store:
        talk(store, "talk", ["Did they give you an adrenaline pen?", "Two adrenaline pens, one at school."])
        fold(store, "talk", 0, 2, "About pens.")
        asked = configured.expand_query(configured.on(store), "Which adrenaline pens?", told, query="adrenaline")
        assert asked.answer.text.splitlines()[0] == "- Two adrenaline pens, one at school. [msg#2]"
        assert "Did they" not in asked.answer.text
        store.append("other", [said("other", 1, "Where is the kettle?")], TOKENS)
        alone = configured.expand_query(configured.on(store), "Where is the kettle?", told, query="kettle")
        assert alone.answer.text == "- Where is the kettle? [msg#3]"


def test_reading_begins_at_messages_that_are_named_by_any_id(store: Store) -> None:
    configured = recall()
    for named in ("msg#2", "talk:2"):
        answered = configured.expand_query(
            configured.on(store), "Why did the migration fail?", told, summary_ids=[named]
        )
        assert answered.answer.cited_messages == (2,)
    with pytest.raises(StoreError, match="no 'msg#99' in the store"):
        configured.expand_query(configured.on(store), "Why?", told, summary_ids=["msg#99"])
