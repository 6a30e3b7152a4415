"""What stands around the words of a message; the vectors of the original are in tests/golden."""

import pytest

from lcm.writing.extraction.llm import strip_envelope

IDS = '```json\n{"sender_id": "7", "message_id": "3"}\n```'
INFO = 'Sender (untrusted metadata):\n```json\n{"name": "Ada"}\n```'
TASK = "[Subagent Task] You are running as a subagent (depth 1/2). Do not busy-poll for status. Sum it up."


@pytest.mark.parametrize(
    ("text", "plain", "careful"),
    [
        ("Do not use any memory tools.\nTea, please", "Tea, please", "Do not use any memory tools.\nTea, please"),
        (f"{TASK}\nDo not use any memory tools\nTea", "Sum it up.\nTea", "Sum it up.\n\nTea"),
        ("[Subagent Context]\nYou are running as a subagent.\n\nTea", "You are running as a subagent.\n\nTea", "Tea"),
        ("[Subagent Task] Say: do not busy-poll for status.", "Say:", "Say: do not busy-poll for status."),
        (f"Tea {INFO} please", "Tea please", "Tea  please"),
        (f"Tea\n{IDS}\nplease", f"Tea\n{IDS}\nplease", "Tea\n\nplease"),  # its order was that of the original
        (INFO.replace('"Ada"', "Ada"), "", INFO.replace('"Ada"', "Ada")),
        (INFO.replace('{"name": "Ada"}', "[1]"), "", INFO.replace('{"name": "Ada"}', "[1]")),
        (INFO.replace("Sender", "Thread starter"), INFO.replace("Sender", "Thread starter"), None),
        ("System: [2026-03-18 14:21:36 GMT+8] Chat[default] DM | 7\nTea", "Tea", "Tea"),
    ],
)
def test_an_envelope_is_taken_away_and_words_stay(text: str, plain: str, careful: str | None) -> None:
    assert strip_envelope(text) == plain
    assert strip_envelope(text, is_careful=True) == (plain if careful is None else careful)
