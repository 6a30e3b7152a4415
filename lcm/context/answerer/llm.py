"""An answer that a language model gives after reading.

Source: lossless-claw 0.6.3, whose sub-agent calls the tools itself; here they are called for it.
The task is in our words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from lcm.checks import check_range
from lcm.context.recall.expansion import ExpansionResult, ReachedMessage, most_units
from lcm.context.recall.reader import Reader
from lcm.context.recall.recall import Answer, Question, begun
from lcm.encoding import to_json
from lcm.errors import ModelError
from lcm.language_model.json_reply import names, object_in
from lcm.protocols.models import LanguageModel, TokenEstimator
from lcm.text import sentences

_TASK = resources.files(__package__).joinpath("llm_task.txt").read_text("utf-8")


@dataclass(slots=True)
class _Evidence:
    """What the model was shown so far."""

    lines: list[str]
    summary_ids: set[str]
    tokens: int = 0
    expanded: int = 0
    is_truncated: bool = False

    def add_summary(self, summary_id: str, kind: str, text: str, tokens: int, time_range: str = "") -> None:
        if summary_id not in self.summary_ids:
            self.summary_ids.add(summary_id)
            self.tokens += tokens
            self.lines.append(to_json({"summary": summary_id, "kind": kind, "range": time_range, "text": text}))

    def add_message(self, said: ReachedMessage) -> None:
        self.tokens += said.tokens
        shown = {"message": said.number, "summary": said.leaf_id, "role": said.role, "text": said.text}
        self.lines.append(to_json(shown))

    def add(self, found: ExpansionResult) -> None:
        self.is_truncated = self.is_truncated or found.is_truncated
        for root in found.roots:
            self.expanded += 1
            for child in root.children:
                self.add_summary(child.summary_id, child.kind, child.content, child.tokens)
            for said in root.messages:
                self.add_message(said)


@dataclass(frozen=True, slots=True)
class Llm:
    """Shows a model the summaries to begin with and what lies beneath; expands what it then asks for; asks again.

    Half of the grant is kept for what it asks for. Ids that it was not shown are not cited; a longer answer is cut
    after a sentence.
    """

    language_model: LanguageModel
    follow_ups: int = 1
    """How often it may ask for more."""

    def __post_init__(self) -> None:
        check_range(self, "follow_ups", ge=0)

    def answer(self, question: Question, reader: Reader) -> Answer:
        evidence = _first_evidence(question, reader)
        system = _TASK.replace("{max_tokens}", str(question.max_tokens))
        for round_number in range(self.follow_ups + 1):
            reply = self._reply(system, question, evidence, reader)
            wanted = _known(reply.get("expand"), evidence.summary_ids)
            if not wanted or round_number == self.follow_ups or reader.remaining_tokens <= 0:
                break
            evidence.add(reader.expand(wanted, depth=1, token_cap=reader.remaining_tokens, has_messages=True))
        text, is_cut = _cut(str(reply["answer"]).strip(), question.max_tokens, reader.token_estimator)
        return Answer(
            text,
            tuple(_known(reply.get("citedIds"), evidence.summary_ids)),
            (),
            evidence.expanded,
            evidence.tokens,
            is_cut or evidence.is_truncated or reply.get("truncated") is True,
        )

    def _reply(self, system: str, question: Question, evidence: _Evidence, reader: Reader) -> dict[str, Any]:
        head = to_json({"question": question.prompt, "budget_tokens": reader.remaining_tokens})
        text = self.language_model.reply(system, "\n".join([head, "evidence:", *evidence.lines]), names("answer"))
        found = object_in(text, "answer")
        if found is None or not isinstance(found.get("answer"), str):
            raise ModelError(f"the reply holds no JSON object with an answer: {text[:200]!r}")
        if not found["answer"].strip() and not found.get("expand"):
            raise ModelError("the reply's answer is empty")
        return found


def _first_evidence(question: Question, reader: Reader) -> _Evidence:
    evidence = _Evidence([], set())
    for said in reader.messages(question.messages) if question.messages else ():
        evidence.add_message(said)
    kept_back = reader.remaining_tokens // 2
    shown: list[str] = []
    for summary_id, summary in begun(question, reader):
        if summary is None:
            evidence.is_truncated = True
            continue
        (tokens,) = reader.token_estimator.count([summary.content])
        time_range = f"{summary.earliest_at or '?'} to {summary.latest_at or '?'}"
        evidence.add_summary(summary_id, summary.kind, summary.content, tokens, time_range)
        shown.append(summary_id)
    cap = reader.remaining_tokens - kept_back
    if shown and cap > 0:
        evidence.add(reader.expand(shown, depth=1, token_cap=cap, has_messages=question.needs_messages))
    return evidence


def _known(ids: object, shown: set[str]) -> list[str]:
    """The ids of a reply that it was shown, each once."""
    given: Sequence[object] = ids if isinstance(ids, list) else []
    return list(dict.fromkeys(one for one in given if isinstance(one, str) and one in shown))


def _cut(text: str, max_tokens: int, estimator: TokenEstimator) -> tuple[str, bool]:
    """As many whole sentences as fit, at least something of the first; and whether anything is missing."""
    if estimator.count([text])[0] <= max_tokens:
        return text, False
    kept = ""
    for sentence in sentences(text):
        if estimator.count([(kept + sentence).rstrip()])[0] > max_tokens:
            break
        kept += sentence
    if not kept:
        kept = text[: most_units(text, max_tokens, lambda units: text[:units], estimator)]
    return kept.rstrip(), True
