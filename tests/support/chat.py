"""A user with an assistant whose answers are cut into passages, and questions of what the one and the other said."""

from lcm.memory.memory import Memory
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from lcm.writing.extraction.said import Steps
from tests.support.workspaces import minute, system

ANSWER = """\
A kettle whistles when its lid is shut and the kettle boils.

The lid of this kettle is bent, so the kettle is mute.

Bend the lid of the kettle back, and the kettle whistles in the morning again."""
TURNS = (
    "The kettle should whistle in the morning, please.",
    ANSWER,
    "And the garden kettle?",
    "The kettle in the garden whistles.",
    "Why is the kettle mute? Tell me now please.",
    "Its lid.",
    "Why is the kettle mute?",
    "Its lid.",
)


def workspace() -> Memory:
    messages = tuple(
        Message(f"chat {i}", "user" if i % 2 == 0 else "assistant", text, "chat", minute(i))
        for i, text in enumerate(TURNS)
    )
    memory = Memory.open(system(extraction=Steps(passage_characters=120)))
    memory.ingest(Transcript("chat", messages))
    return memory


def questions() -> list[Query]:
    texts = ("When did I want the kettle to whistle?", "Tell me now why the kettle is mute, please")
    return [Query(f"chat {i}", text, minute(60)) for i, text in enumerate(texts)]
