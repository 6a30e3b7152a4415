"""An answer that a language model gives after reading what it is shown.

Source: ours.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eval.answering.answerer import Excerpt
from eval.answering.prompts import ANSWER_VERSION, prompt
from lcm.encoding import to_json
from lcm.errors import UnansweredError
from lcm.language_model.replies import only_value
from lcm.protocols.models import LanguageModel

_SYSTEM = prompt("answer", ANSWER_VERSION)


@dataclass(frozen=True, slots=True)
class Llm:
    """Shows a model the question and the excerpts as JSON lines, so that no words of theirs can end them."""

    language_model: LanguageModel

    def answer(self, question: str, excerpts: Sequence[Excerpt]) -> str:
        return self._reply({"question": question}, excerpts)

    def choose(self, question: str, excerpts: Sequence[Excerpt], options: Mapping[str, str]) -> str:
        chosen = self._reply({"question": question, "options": dict(options)}, excerpts).strip("() ").lower()
        names = {name.lower(): name for name in options}
        if chosen and chosen not in names:
            raise UnansweredError(f"the model chose {chosen[:80]!r}, which is none of the options {', '.join(options)}")
        return names.get(chosen, "")

    def _reply(self, asked: Mapping[str, object], excerpts: Sequence[Excerpt]) -> str:
        lines = [to_json(asked), *(to_json(dict(_shown(one))) for one in excerpts)]
        reply = self.language_model.reply(_SYSTEM, "\n".join(lines), lambda text: _answer_in(text) is not None)
        answer = _answer_in(reply)
        if answer is None:
            raise UnansweredError(f"the reply holds no JSON object with an answer: {reply[:200]!r}")
        return answer


def _shown(excerpt: Excerpt) -> Iterator[tuple[str, str]]:
    if excerpt.said_at is not None:
        yield "said", f"{excerpt.said_at:%A, %d %B %Y}"
    yield "text", excerpt.text


def _answer_in(reply: str) -> str | None:
    value = only_value(reply, "answer")
    return value.strip() if isinstance(value, str) else None
