"""A small talk of two named people over some days, and questions that name one of them, a time, or ask when."""

from datetime import timedelta

from lcm.memory.memory import Memory
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from tests.support.workspaces import START, system

TURNS = (
    ("Ada", "Hi Ben! Where have you been?"),
    ("Ben", "I went to Rome with my brother Carl."),
    ("Ada", "Lovely. How was the kettle?"),
    ("Ben", "We saw the Colosseum yesterday, and the kettle broke."),
    ("Ada", "My kettle is fine."),
    ("Ben", "Good."),
)


def workspace() -> Memory:
    messages = tuple(
        Message(f"talk {i}", "user" if i % 2 == 0 else "assistant", text, f"talk:session {i // 3}",
                created_at=START + timedelta(days=2 * i), author=author)
        for i, (author, text) in enumerate(TURNS)
    )  # fmt: skip
    memory = Memory.open(system())
    memory.ingest(Transcript("talk", messages))
    return memory


def questions() -> list[Query]:
    asked_at = START + timedelta(days=30)
    then = START + timedelta(days=5)
    texts = ("When did Ben go to Rome?", "What is Ada's kettle like?", f"What broke on {then:%d %B %Y}?")
    return [Query(f"talk {i}", text, asked_at) for i, text in enumerate(texts)]
