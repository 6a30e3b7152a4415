"""What a session recorded of its tokens, and what messages cost by it."""

import json
from pathlib import Path
from typing import Any

import pytest

from lcm.context.assembly.lossless import Lossless
from lcm.protocols.context import ContextRequest
from lcm.records.conversation import Event, Message
from lcm.store.store import Store
from lcm.token_estimator import Recorded, ScriptAware
from lcm.transcript.message_tokens import Reply, Usage, message_tokens, replies, usage_of
from lcm.transcript.reading import read_transcripts
from lcm.transcript.rendering import rendered
from tests.lcm.context.assembly.recorded import message

AT = "2026-09-10T08:00:00.000Z"
TOKENS = ScriptAware()


def said(words: str, **usage: Any) -> Message:
    return message({"role": "assistant", "content": words, **usage})


def piece(words: str, answer: str, output: int) -> Message:
    return said(words, id=answer, usage={"input_tokens": 9000, "output_tokens": output})


def token_count(after: int, output: int | None, total: int = 0) -> Event:
    usage = {"input_tokens": 9000, "output_tokens": output}
    info = {"total_token_usage": {"output_tokens": total}, "last_token_usage": usage} if output is not None else None
    return Event("event_msg", {"type": "event_msg", "payload": {"type": "token_count", "info": info}}, after)


@pytest.mark.parametrize(
    "usage",
    [
        {"usage": {"input_tokens": 9000, "output_tokens": 77}},
        {"usage": {"prompt_tokens": 9000, "completion_tokens": 77, "total_tokens": 9077}},
        {"usage": {"input": 9000, "output": 77, "cacheRead": 3, "cost": {"total": 0.1}}},
        {"tokens": {"input": 9000, "output": 65, "cached": 0, "thoughts": 12, "total": 9077}},
        {"usageMetadata": {"promptTokenCount": 9000, "candidatesTokenCount": 65, "thoughtsTokenCount": 12}},
        {"info": {"tokens": {"input": 9000, "output": 65, "reasoning": 12, "cache": {"read": 5, "write": 0}}}},
        {"usage": {"input": 9000, "output": 77, "reasoning": 12}},
        {"usage": {"completion_tokens": 77, "completion_tokens_details": {"reasoning_tokens": 12}}},
        {"metrics": {"tokens": {"prompt": 9000, "completion": 77, "cached": 12}}},
        {"usage": {"outputTokens": True, "output": 77}},
        {"usage_metadata": {"input_tokens": 9000, "output_tokens": 77}},
        {"response_metadata": {"token_usage": {"completion_tokens": 77}}},
        {"metadata": {"usage": {"inputTokens": 9000, "outputTokens": 77}}},
    ],
    ids=lambda usage: json.dumps(usage)[:40],
)
def test_the_output_of_an_answer_is_read_from_where_its_format_writes_it(usage: dict[str, Any]) -> None:
    assert replies([said("four words of it", **usage)]) == [Reply((0,), 77)]
    assert replies([message({"role": "user", "content": "what a user says has no output", **usage})]) == []


@pytest.mark.parametrize("usage", [{}, {"usage": None}, {"usage": 77}, {"usage": {"output_tokens": 0}}, {"tokens": 77}])
def test_what_names_no_output_has_no_recorded_number(usage: dict[str, Any]) -> None:
    assert replies([said("words", **usage)]) == []


def test_pieces_of_an_answer_share_its_last_number() -> None:
    result = message({"role": "user", "content": "the result"})
    talk = [piece("Let me look.", "msg_1", 1), piece("a call", "msg_1", 60), result, piece("Done.", "msg_2", 9)]
    assert replies(talk) == [Reply((0, 1), 60), Reply((3,), 9)]
    counts = message_tokens(talk, rendered, Recorded())
    assert counts[0] + counts[1] == 60
    assert counts[2:] == [TOKENS.count([rendered(result)])[0], 9]


def test_an_event_counts_what_was_answered_since_the_last_one() -> None:
    user, result = message({"role": "user", "content": "go"}), message({"role": "tool", "content": "a b"})
    talk = [user, said("thought"), said("call"), result, said("words"), said("and nobody counted these")]
    events = [
        token_count(0, None),
        token_count(3, 40, total=40),
        token_count(4, 40, total=40),  # told again, with other limits
        Event("turn_context", {"type": "turn_context"}, 4),
        token_count(5, 7, total=47),
    ]
    assert replies(talk, events) == [Reply((1, 2), 40), Reply((4,), 7)]
    assert replies(talk[4:], events, first=4) == [Reply((0,), 7)]


def test_the_estimator_is_held_against_what_was_recorded() -> None:
    talk = [message({"role": "user", "content": "hello"}), said("four words of it", usage={"output_tokens": 40})]
    expected = Usage(1, 40, TOKENS.count([rendered(talk[1])])[0])
    assert usage_of(talk, rendered, TOKENS, (), 0) == usage_of(talk, rendered, Recorded(), (), 0) == expected
    assert usage_of(talk[:1], rendered, TOKENS, (), 0) == Usage()
    assert expected.plus(expected) == Usage(2, 80, 2 * expected.estimated)


def test_a_store_and_a_context_take_recorded_numbers() -> None:
    """Pieces are counted together, however far apart they are looked at."""
    words = [f"word {number}" for number in range(150)]
    talk = [piece(word, "msg_1", 600) if number in (3, 140) else said(word) for number, word in enumerate(words)]
    [context] = Lossless(Recorded()).assemble(talk, [ContextRequest(5000)])
    plain = message_tokens(talk, rendered, TOKENS)
    assert context.items[3].tokens + context.items[140].tokens == 600
    rest = [item.tokens for place, item in enumerate(context.items) if place not in (3, 140)]
    assert rest == [count for place, count in enumerate(plain) if place not in (3, 140)]


def test_a_session_of_codex_is_stored_by_its_counts(tmp_path: Path) -> None:
    def record(kind: str, payload: dict[str, Any]) -> str:
        return json.dumps({"timestamp": AT, "type": kind, "payload": payload})

    def spoken(role: str, kind: str, text: str) -> str:
        return record("response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]})

    lines = [
        record("session_meta", {"id": "s", "cwd": "/w"}),
        spoken("user", "input_text", "hello"),
        spoken("assistant", "output_text", "good morning"),
        json.dumps({"timestamp": AT, **token_count(0, 123, 123).native}),
        spoken("user", "input_text", "bye"),
        spoken("assistant", "output_text", "see you"),
        json.dumps({"timestamp": AT, **token_count(0, 45, 168).native}),
    ]
    counts = []
    for known in (4, 7):  # a session that grows
        (tmp_path / "rollout.jsonl").write_text("\n".join(lines[:known]) + "\n")
        [transcript] = read_transcripts(tmp_path / "rollout.jsonl")
        with Store(tmp_path / "memory.db") as store:
            store.ingest(transcript, Recorded(), rendered)
            counts.append([entry.tokens for entry in store.context(transcript.conversation_id)])
    assert counts == [[2, 123], [2, 123, 1, 45]]
