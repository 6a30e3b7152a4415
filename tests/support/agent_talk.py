"""An agent at work: messages that call tools, and messages that bring their results."""

from collections.abc import Sequence

from lcm.records.conversation import Message, Part, Transcript
from tests.support.workspaces import minute


def said(message_id: str, role: str, words: str, at: int = 0, session: str = "s") -> Message:
    return Message(message_id, role, words, session, minute(at), parts=(Part("text", words),))  # type: ignore[arg-type]


def calling(
    message_id: str, call_ids: Sequence[str | None], at: int = 0, session: str = "s", words: str = ""
) -> Message:
    """The assistant calls a tool under each id."""
    calls = (Part("tool", tool_call_id=i, tool_name="look", tool_input=f'{{"at": "{message_id}"}}') for i in call_ids)
    told = (Part("text", words),) if words else ()
    return Message(message_id, "assistant", words, session, minute(at), parts=(*told, *calls))


def answering(message_id: str, call_id: str | None, at: int = 0, session: str = "s", by_user: bool = False) -> Message:
    """A result: in a message of the tool, as OpenAI has it, or of the user, as Anthropic has it."""
    words = f"found {message_id}"
    part = Part("tool" if by_user else "text", words, call_id)
    return Message(message_id, "user" if by_user else "tool", words, session, minute(at), parts=(part,))


def agent_talk() -> Transcript:
    """A user's turn, a call of two tools with words, their results, a call that nobody answers, and a last word."""
    messages = (
        said("ask", "user", "Why does the kettle leak?", 0),
        calling("call", ["one", "two"], 1, words="I shall look at the kettle and the river."),
        answering("first", "one", 2),
        answering("second", "two", 3, by_user=True),
        calling("lost", ["three"], 4),
        said("told", "assistant", "Its seal is broken.", 5),
    )
    return Transcript("agent", messages)
