"""What a summarizer is given to read."""

import json
from dataclasses import replace
from typing import Any

from lcm.clock import EPOCH
from lcm.compaction.lossless.source_text import (
    ALONE,
    BESIDE,
    OMITTED,
    has_words,
    source_of_messages,
    source_of_summaries,
    summary_words,
)
from lcm.records.conversation import Message
from lcm.records.summary import Summary
from lcm.transcript.parts import decompose
from tests.lcm.compaction.contexts import BEGIN, message

FILE_A, FILE_B = "file_00000000000000aa", "file_00000000000000bb"
CALL = {"type": "toolCall", "id": "1", "name": "bash", "arguments": {"command": "ls " + "x" * 500}}
IMAGE = {"type": "image", "data": "QUJD" * 100, "mimeType": "image/png"}


def words(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def recorded(native: dict[str, Any]) -> Message:
    said = decompose(native)
    return Message("m", said.role, said.content, "s", BEGIN, None, said.parts, said.envelope)


def called(*blocks: dict[str, Any]) -> Message:
    return recorded({"role": "assistant", "content": list(blocks)})


def returned(text: str) -> Message:
    return recorded({"role": "toolResult", "toolCallId": "1", "toolName": "bash", "content": [words(text)]})


def test_what_has_no_time_is_not_dated() -> None:
    timed = [message(1, "one"), message(2, "two", "assistant")]
    plain = "[2026-01-05 09:07 UTC]\none\n\n[2026-01-05 09:14 UTC]\ntwo"
    assert source_of_messages(timed, "original", "UTC").text == plain
    said = [replace(message(1, "one"), created_at=None), replace(message(2, "two"), created_at=EPOCH)]
    assert source_of_messages(said, "corrected", "Asia/Tokyo").text == "[undated] user:\none\n\n[undated] user:\ntwo"
    assert source_of_messages(said[:1], "original", "UTC").text == "[1970-01-01 00:00 UTC]\none"
    summary = Summary("s", "c", "leaf", 0, "both", 1, EPOCH, earliest_at=EPOCH, latest_at=EPOCH)
    assert source_of_summaries([summary], "corrected", "UTC").text == "[undated - undated]\nboth"
    assert source_of_summaries([summary], "original", "UTC").text.startswith("[1970-01-01 00:00 UTC - ")


def test_labelled_shows_who_speaks_and_what_tools_were_called_but_no_reasoning() -> None:
    said = [
        replace(message(1, "one"), author="Ann"),
        called({"type": "thinking", "thinking": "secret"}, words("so"), CALL),
        returned("y" * 900),
        message(4, " "),
    ]
    assert source_of_messages(said, "corrected", "UTC").text.split("\n\n") == [
        "[2026-01-05 09:07 UTC] Ann (user):\none",
        "[2026-01-05 09:00 UTC] assistant:\nso",
        f"[2026-01-05 09:00 UTC] tool:\nran `ls …`: {'y' * 160} …",
    ]


def test_a_call_is_told_with_its_own_result_or_where_it_was_made() -> None:
    alone = [called(words("so"), {**CALL, "arguments": {"command": "ls src"}})]
    assert source_of_messages(alone, "corrected", "UTC").text == (
        "[2026-01-05 09:00 UTC] assistant:\nso\n\n[2026-01-05 09:00 UTC] tool:\nran `ls src`: no result"
    )
    again = []  # one id names two calls: a result is that of the one before it
    for command, output in (("ls a", "one"), ("ls b", "two")):
        again += [called({**CALL, "arguments": {"command": command}}), returned(output)]
    told = source_of_messages(again, "corrected", "UTC").text
    assert [line for line in told.split("\n") if line.startswith("ran")] == ["ran `ls a`: one", "ran `ls b`: two"]
    assert not has_words([called(CALL)], "original")
    assert has_words([called(CALL)], "corrected")


def test_media_is_named_and_what_encodes_it_left_out() -> None:
    alone = recorded({"role": "user", "content": [IMAGE]})
    said = f"look\n\ndata:image/png;base64,QUJD\nMEDIA:/a.png\n{'QUJD' * 64}"
    beside = recorded({"role": "user", "content": [words(said), IMAGE]})
    for rules in ("original", "corrected"):
        assert source_of_messages([alone], rules, "UTC").text.endswith(f"\n{ALONE}")  # type: ignore[arg-type]
        text = source_of_messages([beside], rules, "UTC").text  # type: ignore[arg-type]
        assert text.endswith(f"\nlook\n{OMITTED}{BESIDE}")


def test_of_media_content_that_is_json_only_words_are_read() -> None:
    nested = {"content": [{"caption": "a cat", "data": "QUJD"}, {"message": {"text": "it sleeps"}}]}
    parts = recorded({"role": "user", "content": [IMAGE]}).parts
    image = Message("m", "user", json.dumps(nested), "s", BEGIN, None, parts)
    assert source_of_messages([image], "original", "UTC").text.endswith(f"\na cat\nit sleeps{BESIDE}")


def test_files_are_named_once_in_order_of_their_first_mention() -> None:
    said = [message(1, f"see {FILE_B} and {FILE_A}"), message(2, FILE_B)]
    assert source_of_messages(said, "original", "UTC").file_ids == (FILE_B, FILE_A)
    cut = [message(1, "y " * 900 + FILE_A, "tool")]
    assert source_of_messages(cut, "corrected", "UTC").file_ids == (FILE_A,), "also where its mention is cut off"


def test_summaries_show_their_range_or_when_they_were_made() -> None:
    later = BEGIN.replace(hour=11)
    known = Summary(
        "s1", "c", "leaf", 0, f"one {FILE_A}", 1, later, earliest_at=BEGIN, latest_at=later, file_ids=(FILE_B,)
    )
    source = source_of_summaries([known, Summary("s2", "c", "leaf", 0, "two", 1, later)], "corrected", "UTC")
    assert source.text == (
        f"[2026-01-05 09:00 UTC - 2026-01-05 11:00 UTC]\none {FILE_A}\n\n"
        "[2026-01-05 11:00 UTC - 2026-01-05 11:00 UTC]\ntwo"
    )
    assert source.file_ids == (FILE_B, FILE_A)


def test_0_15_shows_roles_and_tools_that_stand_alone_and_leaves_out_what_says_nothing() -> None:
    said = [
        message(1, "one \n\n" + "A" * 400 + "\ntwo"),
        called(CALL),
        message(3, '[{"type": "thinking", "thinking": "secret"}]'),
        message(4, '{"result": {"text": "three", "data": ["four"]}, "other": "five"}', "tool"),
    ]
    text = source_of_messages(said, "0.15", "UTC").text
    assert text.split("\n\n") == [
        "[2026-01-05 09:07 UTC | user]\none\ntwo",
        f"[2026-01-05 09:00 UTC | assistant]\n{CALL['arguments']['command']}",
        "[2026-01-05 09:28 UTC | tool]\nthree\nfour",
    ]
    assert source_of_messages(said[2:3], "0.15", "UTC").text == ""


def test_0_15_leaves_out_what_a_host_injected_between_tags() -> None:
    said = [message(1, 'one <Recalled at="now">\nold\n</recalled> two'), message(2, "<recalled>old</recalled>")]
    assert source_of_messages(said, "0.15", "UTC", ["recalled"]).text == "[2026-01-05 09:07 UTC | user]\none  two"
    assert "old" in source_of_messages(said, "0.15", "UTC").text


def test_0_15_condenses_summaries_without_their_reasoning() -> None:
    texts = ["<think>secret</think> kept", "kept\n[thinking]\nsecret", "<reasoning>secret</reasoning>", "say <think>"]
    made = [Summary(f"s{i}", "c", "leaf", 0, text, 1, BEGIN) for i, text in enumerate(texts)]
    assert [summary_words(one, "0.15") for one in made] == ["kept", "kept", "", "say <think>"]
    assert [summary_words(one, "original") for one in made] == texts
    assert source_of_summaries(made, "0.15", "UTC").text.count("[2026-01-05 09:00 UTC - ") == 3
