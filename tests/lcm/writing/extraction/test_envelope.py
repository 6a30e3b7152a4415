"""What is stripped from around a message's words."""

import pytest

from lcm.writing.extraction.envelope import strip_envelope


@pytest.mark.parametrize(
    "envelope",
    [
        "System: [2026-03-18 14:21:36 GMT+8] Feishu[default] DM | ou_123\n",
        'Sender (untrusted metadata):\n```json\n{"label":"x"}\n```\n',
        'Conversation info (untrusted metadata):\n```json\n{"message_id":"1"}\n```\n',
        'Replied message (untrusted, for context):\n```json\n{"body":"hi"}\n```\n',
        '```json\n{"message_id":"9","sender_id":"8"}\n```\n',
        "[Subagent Context] You are running as a subagent (depth 1/1). Do not use any memory tools.\n",
        "do not busy-poll for status\n\nReply with a brief acknowledgment only.\n",
        "\n\n\n",
    ],
)
def test_an_envelope_goes_and_the_words_stay(envelope: str) -> None:
    assert strip_envelope(envelope + "I like tea") == "I like tea"


@pytest.mark.parametrize(
    "text",
    [
        "System: [2026-03-18 14:21:36 GMT+8] Exec completed (abc) code 0\nI like tea",
        "I like tea\nDo not use any memory tools.",
        '```json\n{"tea": true}\n```',
        "I like [Subagent Task] tea",
        "Thread starter (untrusted, for context):\n```json\n{}\n```\nI like tea",
    ],
)
def test_what_is_no_envelope_stays(text: str) -> None:
    assert strip_envelope(text) == text


def test_the_task_behind_a_marker_stays() -> None:
    assert strip_envelope("[Subagent Task] Summarise the file.\nI like tea") == "Summarise the file.\nI like tea"


def test_blank_lines_that_are_left_over_become_one() -> None:
    assert strip_envelope("tea\n\n\n\n\ncoffee") == "tea\n\ncoffee"
