"""What is stripped from around a message's words; the vectors of the original are in tests/golden."""

from lcm.writing.extraction.envelope import strip_envelope

ENVELOPES = (
    "System: [2026-03-18 14:21:36 GMT+8] Feishu[default] DM | ou_123\n",
    'Sender (untrusted metadata):\n```json\n{"label":"x"}\n```\n',
    '```json\n{"message_id":"9","sender_id":"8"}\n```\n',
    "[Subagent Context] You are running as a subagent (depth 1/1). Do not use any memory tools.\n",
    "do not busy-poll for status\n\nReply with a brief acknowledgment only.\n",
    "\n\n\n",
)
WORDS = (
    "System: [2026-03-18 14:21:36 GMT+8] Exec completed (abc) code 0\nI like tea",
    "I like tea\nDo not use any memory tools.",
    '```json\n{"tea": true}\n```',
    "I like [Subagent Task] tea",
    "Thread starter (untrusted, for context):\n```json\n{}\n```\nI like tea",
)


def test_an_envelope_goes_and_the_words_stay() -> None:
    assert [one for one in ENVELOPES if strip_envelope(one + "I like tea") != "I like tea"] == []
    assert [text for text in WORDS if strip_envelope(text) != text] == []
    assert strip_envelope("[Subagent Task] Summarise the file.\nI like tea") == "Summarise the file.\nI like tea"
    assert strip_envelope("tea\n\n\n\n\ncoffee") == "tea\n\ncoffee"
