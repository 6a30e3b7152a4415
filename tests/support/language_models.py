"""Language models for tests: nothing is asked of anybody."""

import json
import re
from dataclasses import dataclass, field

from lcm.errors import ModelError


@dataclass
class Replying:
    """Gives the same reply to everything, and keeps what it was asked."""

    text: str
    asked: list[tuple[str, str]] = field(default_factory=list)

    def reply(self, system: str, prompt: str, is_usable: object = None, **settings: object) -> str:
        self.asked.append((system, prompt))
        return self.text


@dataclass
class Quoting:
    """Replies one memory a chunk that quotes the words of its last turn, and rests on that."""

    def reply(self, system: str, prompt: str, is_usable: object = None, **settings: object) -> str:
        number, words = re.findall(r'<turn number="(\d+)".*?>\n(.*?)\n</turn>', prompt, re.DOTALL)[-1]
        memory = {"category": "events", "abstract": f"Somebody said: {words}", "sources": [int(number)]}
        return json.dumps({"memories": [memory]})


@dataclass
class Failing:
    """Never has a reply."""

    def reply(self, system: str, prompt: str, is_usable: object = None, **settings: object) -> str:
        raise ModelError("the model is gone")


@dataclass
class Listing:
    """Replies one memory a turn, said to be of today."""

    def reply(self, system: str, prompt: str, is_usable: object = None, **settings: object) -> str:
        turns = re.findall(r'<turn number="(\d+)".*?>\n(.*?)\n</turn>', prompt, re.DOTALL)
        memories = [{"category": "events", "abstract": f"Said today: {w}", "sources": [int(n)]} for n, w in turns]
        return json.dumps({"memories": memories})


@dataclass
class Weighing:
    """Finds a candidate the more useful the more it is shown of the conversation, or of other candidates."""

    def reply(self, system: str, prompt: str, is_usable: object = None, **settings: object) -> str:
        found = {"utility": len(prompt) / 20_000, "reason": "by its length"}
        several = json.loads(prompt).get("candidates", [])
        return json.dumps({"results": [{"index": one["index"], **found} for one in several]} if several else found)


@dataclass
class Picking:
    """Means the last of the documents that it is shown, and merges by writing both down."""

    def reply(self, system: str, prompt: str, is_usable: object = None, **settings: object) -> str:
        shown = json.loads(prompt)
        if isinstance(shown["existing"], list):
            return json.dumps({"decision": "support", "match_index": len(shown["existing"])})
        return json.dumps({"abstract": f"{shown['existing']['abstract']}; {shown['new']['abstract']}"})
