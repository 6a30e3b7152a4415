"""tau-bench results: JSONL or an array of records `{task_id, trial, reward, info, traj}`.

`traj` is OpenAI-style chat.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lcm.encoding import well_formed
from lcm.records.conversation import Event
from lcm.transcript.identity import native_id
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.sessions import ConversationIds, chat_message, sessions


@dataclass(frozen=True, slots=True)
class TauBenchReader:
    """Reads one conversation a record, named by the file, the task and the trial: `results/task-3-trial-0`.

    What a record holds beside its messages is an event of type `session`, with null in place of `traj`.
    """

    name = "tau_bench"

    def detects(self, file: RecordedFile) -> bool:
        values = [file.first] if isinstance(file.first, dict) else file.first
        return any(map(_is_record, values))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        ids = ConversationIds()
        for session in sessions(file):
            conversation_id = ids.name(_name(session.header, file))
            yield RecordedItem(conversation_id, Event("session", session.header))
            for element in session.elements:
                with file.record(element.line, element.place):
                    if element.key == "traj":
                        yield RecordedItem(conversation_id, chat_message(element.value, conversation_id))
                    else:
                        yield RecordedItem(conversation_id, Event(well_formed(element.key), element.value))


def _name(record: Mapping[str, Any], file: RecordedFile) -> str:
    numbers = {"task": native_id(record.get("task_id")), "trial": native_id(record.get("trial"))}
    run = "-".join(f"{what}-{number}" for what, number in numbers.items() if number)
    return f"{file.name}/{run}" if run else file.name


def _is_record(value: object) -> bool:
    traj = value.get("traj") if isinstance(value, dict) and "task_id" in value else None
    return isinstance(traj, list) and all(isinstance(said, dict) and "role" in said for said in traj[:1])
