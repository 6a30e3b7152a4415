"""Conversations written for tests of what is made from them: who, what, and days after the start."""

from collections.abc import Sequence
from datetime import timedelta

from eval.questions.making import Draft, Kind, Talk, talks_of
from lcm.records.conversation import Message, Part, Role, Transcript
from tests.support.workspaces import START

Line = tuple[Role, str, float] | tuple[Role, str, float, tuple[Part, ...]]


def recorded(
    lines: Sequence[Line], conversation_id: str = "talk", authors: tuple[str, str] | None = None
) -> Transcript:
    """A conversation whose messages are `talk:0`, `talk:1` ...; `authors` names the user and the assistant."""
    messages = []
    for number, (role, text, days, *parts) in enumerate(lines):
        author = None if authors is None else authors[role == "assistant"]
        messages.append(
            Message(
                message_id=f"{conversation_id}:{number}",
                role=role,
                content=text,
                session_id="session",
                created_at=START + timedelta(days=days),
                author=author,
                parts=parts[0] if parts else (Part("text", text=text),),
            )
        )
    return Transcript(conversation_id, tuple(messages))


def talk_of(*transcripts: Transcript) -> Talk:
    (talk,) = talks_of(transcripts)
    return talk


def drafts(kind: Kind, *transcripts: Transcript) -> list[Draft]:
    return list(kind.drafts(talk_of(*transcripts), "seed"))
