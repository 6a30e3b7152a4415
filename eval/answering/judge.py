"""A language model as a judge of answers: it reads question, references and answer, and says whether that is correct.

Its word is an opinion: what it is worth stands beside it, as its agreement with labelled answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.answering.prompts import JUDGE_VERSION, prompt
from lcm.encoding import to_json
from lcm.errors import UnansweredError
from lcm.language_model.replies import only_value
from lcm.protocols.models import LanguageModel

_SYSTEM = prompt("judge", JUDGE_VERSION)


@dataclass(frozen=True, slots=True)
class Judge:
    """Asks a model once an answer. One that says nothing is not correct, and nobody is asked."""

    language_model: LanguageModel

    def is_correct(self, question: str, references: Sequence[str], answer: str) -> bool:
        """Whether an answer says what a reference says.

        Raises:
            UnansweredError: if the reply is no verdict.
        """
        if not answer.strip():
            return False
        asked = to_json({"question": question, "references": list(references), "answer": answer})
        reply = self.language_model.reply(_SYSTEM, asked, lambda text: _verdict(text) is not None)
        verdict = _verdict(reply)
        if verdict is None:
            raise UnansweredError(f"the reply holds no JSON object with a verdict: {reply[:200]!r}")
        return verdict


def _verdict(reply: str) -> bool | None:
    value = only_value(reply, "correct")
    return value if isinstance(value, bool) else None
