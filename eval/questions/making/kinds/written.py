"""Written questions: a language model asks for a statement in words of its own."""

from collections.abc import Iterator
from dataclasses import dataclass

from eval.questions.making.kind import Draft
from eval.questions.making.statements import content_units, statements
from eval.questions.making.talk import Talk
from lcm.checks import check_range
from lcm.language_model.replies import names, object_in
from lcm.protocols.models import LanguageModel
from lcm.retrieval.ranking.evidence.text_facts import content_words
from lcm.text import stem

_SYSTEM = (
    "You write questions that test whether a memory finds again what was said. Reply with one JSON object, "
    '{"question": "..."}, and nothing else.'
)
_PROMPT = """{speaker} said this in a recorded conversation:

<message>
{text}
</message>

Write one short question that somebody could ask weeks later, to which this statement of the message is the answer:

<statement>
{statement}
</statement>

The question must be understood by somebody who does not see the message. Describe things by other words: do not use
any of the following words, nor other forms of them: {forbidden}."""
_AGAIN = "\n\nThis question does not do, for it uses {shared}: {question}"


@dataclass(frozen=True, slots=True)
class Written:
    """Has a model ask for rare, self-contained statements without the content words of their message.

    Words are compared by their stems. A question that shares one is asked for again, with what was wrong with it; after
    the last try it is dropped. Evidence: the message and its byte-equal copies.
    """

    language_model: LanguageModel
    n: int = 100
    tries: int = 3
    """Requests for a question before it is dropped."""
    rarest: float = 0.5
    """Share of the statements of a workspace, those with the rarest words first, that are asked for."""
    least_words: int = 5
    """Content words of a statement."""
    most_words: int = 40
    """Words of a statement."""
    most_forbidden: int = 80
    """Content words of a message; a longer one is not asked for, as nothing could be said of it without them."""

    def __post_init__(self) -> None:
        check_range(self, "n", ge=0)
        check_range(self, "rarest", gt=0, le=1)
        check_range(self, "tries", "least_words", "most_words", "most_forbidden", ge=1)

    def drafts(self, talk: Talk, seed: str) -> Iterator[Draft]:
        for statement in statements(talk, self.least_words, self.most_words, self.rarest):
            turn = talk.turns[statement.place]
            if len(content_units(talk, turn.text)) <= self.most_forbidden:
                yield Draft(statement.place, statement.text, talk.copies[turn.text], talk.end)

    def worded(self, draft: Draft, talk: Talk) -> str | None:
        message = talk.turns[draft.place].message
        held = list(dict.fromkeys(content_words(message.content)))
        stems = {stem(word) for word in held}
        prompt = _PROMPT.format(
            speaker=message.author or ("The user" if message.role == "user" else "The assistant"),
            text=message.content,
            statement=draft.text,
            forbidden=", ".join(held),
        )
        again = ""
        for _ in range(self.tries):
            reply = self.language_model.reply(_SYSTEM, prompt + again, names("question"))
            question = (object_in(reply, "question") or {}).get("question")
            if not isinstance(question, str) or not content_words(question):
                continue
            shared = [word for word in dict.fromkeys(content_words(question)) if stem(word) in stems]
            if not shared:
                return " ".join(question.split())
            again += _AGAIN.format(shared=", ".join(shared), question=" ".join(question.split()))
        return None
