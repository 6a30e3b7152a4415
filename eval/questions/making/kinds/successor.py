"""Successors: what was said next."""

from collections.abc import Iterator
from dataclasses import dataclass

from eval.questions.making.kind import Draft
from eval.questions.making.statements import asks, content_units, sentences
from eval.questions.making.talk import Talk, units
from lcm.checks import check_range


@dataclass(frozen=True, slots=True)
class Successor:
    """Asks, in the words of a message, for the reply that came next.

    Evidence: that reply, the replies to byte-equal messages, and byte-equal copies of all of them.
    """

    n: int = 100
    only_questions: bool = True
    """Whether only messages that ask something count: their question is asked again. Else the last words of any do."""
    least_words: int = 3
    """Content words of what is asked with, and of a reply."""
    most_words: int = 40
    """Words of what is asked with."""

    def __post_init__(self) -> None:
        check_range(self, "n", ge=0)
        check_range(self, "least_words", "most_words", ge=1)

    def drafts(self, talk: Talk, seed: str) -> Iterator[Draft]:
        for place, turn in enumerate(talk.turns):
            text = self._asked(turn.text) if turn.is_spoken and talk.copies[turn.text][0] == place else None
            if text is None or len(content_units(talk, text)) < self.least_words:
                continue
            replies = [reply for copy in talk.copies[turn.text] if (reply := self._reply(talk, copy)) is not None]
            evidence = talk.with_copies(replies)
            if evidence:
                yield Draft(place, text, evidence, talk.end)

    def _asked(self, text: str) -> str | None:
        """The last question of a message, or its last words."""
        said = sentences(text)
        if self.only_questions:
            said = [sentence for sentence in said if asks(sentence)]
        if not said:
            return None
        words = units(said[-1])
        return said[-1] if len(words) <= self.most_words else said[-1][words[-self.most_words].start :]

    def _reply(self, talk: Talk, place: int) -> int | None:
        """The next turn, if another speaks in it."""
        turn = talk.turns[place]
        if turn.is_last:
            return None
        reply = talk.turns[place + 1]
        is_other = (reply.message.role, reply.message.author) != (turn.message.role, turn.message.author)
        says_enough = len(content_units(talk, reply.text)) >= self.least_words
        return place + 1 if is_other and reply.is_spoken and says_enough else None
