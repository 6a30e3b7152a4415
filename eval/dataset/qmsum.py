"""QMSum: transcribed meetings, with questions answered by summaries and located in spans of turns."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal

from eval.dataset.card import Card, read_card
from eval.dataset.dataset import Dataset, Draft, one_session
from eval.dataset.files import PublishedFile, Record, json_lines, json_records, whole_number
from lcm.checks import check_choice
from lcm.clock import EPOCH
from lcm.records.conversation import Transcript
from lcm.records.query import Query

ASKED_AT = EPOCH + timedelta(days=1)
"""No meeting has a time, so its turns date from the epoch; every question is asked the day after."""
_MARK = re.compile(r"\{[a-z]+\}")

_TURNS = "meeting_transcripts"
MEETINGS = json_records("lines", ("topic_list", "general_query_list", "specific_query_list", _TURNS), ())

Marks = Literal["strip", "keep"]


@dataclass(frozen=True, slots=True)
class Qmsum(PublishedFile):
    """35 meetings of the validation or the test set, 162 of the training set; questions, each with a reference summary.

    Times: none recorded. Judged unit: the turn. Questions of the category `general` ask for the whole meeting and have
    no judgements. `only` names meetings, as `meeting-3`, the fourth of the file.
    """

    marks: Marks = "strip"
    """Transcription marks such as {vocalsound}: `strip` takes them out of a turn's words, and the space that they
    leave; `keep` leaves the words as recorded."""

    card: ClassVar[Card] = read_card("qmsum")

    def __post_init__(self) -> None:
        PublishedFile.__post_init__(self)
        check_choice(self, marks=Marks)

    def load(self) -> Dataset:
        found = self.find(MEETINGS)
        records = {f"meeting-{n}": record for n, record in enumerate(json_lines(found.path))}
        self.check_part(records, found.path.name)
        draft, unknown = Draft(), 0
        for meeting, record in records.items():
            if not self.takes(meeting):
                continue
            transcript = self._transcript(record, meeting)
            draft.transcripts.append(transcript)
            for category, index, question in _questions(record):
                query_id = f"{meeting}/{category}/{index}"
                draft.queries.append(Query(query_id, question.get("query", str), ASKED_AT, meeting, category))
                answered = None if category == "general" else query_id  # general questions ask for the whole
                draft.references.append((transcript.conversation_id, answered, question.get("answer", str)))
                spans = _spans(question) if category == "specific" else []
                draft.judge(query_id, (transcript.messages[n].message_id for n in _turns(spans, transcript)))
                unknown += sum(last >= len(transcript.messages) for _, last in spans)
        wordless = {m.message_id for t in draft.transcripts for m in t.messages if not m.content.strip()}
        unfound = sum(message_id in wordless for _, message_id, _ in draft.qrels)
        of_judged = f"turns have no words; {unfound} of {len(draft.qrels)} judgements name one of them"
        beyond = "spans go beyond their meeting: what is beyond it is left out"
        draft.counts.update({of_judged: len(wordless), beyond: unknown})
        return self.dataset(draft, f"marks={self.marks} unit=turn", [found])

    def _transcript(self, record: Record, meeting: str) -> Transcript:
        turns = [(turn.get("speaker", str), turn.get("content", str), turn) for turn in record.each(_TURNS)]
        said = ((speaker, self._content(text), text, turn.fields) for speaker, text, turn in turns)
        return one_session("qmsum", meeting, said)

    def _content(self, text: str) -> str:
        return " ".join(_MARK.sub(" ", text).split()) if self.marks == "strip" else text


def _questions(record: Record) -> Iterator[tuple[str, int, Record]]:
    """Category, index within it, question."""
    for category in ("general", "specific"):
        for index, question in enumerate(record.each(f"{category}_query_list")):
            yield category, index, question


def _spans(question: Record) -> list[tuple[int, int]]:
    """A span names its first and its last turn, counted from 0, as text."""
    spans = []
    for span in question.get("relevant_text_span", list):
        is_named = isinstance(span, list) and len(span) == 2 and all(isinstance(turn, str) for turn in span)
        first, last = map(whole_number, span) if is_named else (None, None)
        if first is None or last is None:
            raise question.wrong("relevant_text_span", f"must name a first and a last turn as text, got {span!r:.60}")
        spans.append((first, last))
    return spans


def _turns(spans: list[tuple[int, int]], transcript: Transcript) -> list[int]:
    """The turns of all spans, each once, in order."""
    end = len(transcript.messages)
    return sorted({turn for first, last in spans for turn in range(first, min(last + 1, end))})
