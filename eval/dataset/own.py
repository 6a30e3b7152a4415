"""A user's own recorded sessions: with questions about them and what answers each, or with nothing to judge them by."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from eval.dataset.card import Card, read_card, text_digest
from eval.dataset.dataset import Dataset, Draft
from eval.mirror import local
from eval.questions.evidence import LocatedQuestion, Unresolved, locate
from eval.questions.files import Problem, QuestionsFile, read_file, refuse
from eval.questions.quotation import OF_OVERLAP, overlap
from eval.questions.sessions import Sessions, WorkspaceRule, read_sessions
from lcm.checks import check_choice, check_range
from lcm.clock import EPOCH
from lcm.errors import DatasetError
from lcm.records.conversation import Transcript
from lcm.records.query import Query
from lcm.transcript.reading import CopiesRule


@dataclass(frozen=True, slots=True)
class Transcripts:
    """The files that are named, in one workspace. There are no queries and no judgements."""

    paths: Sequence[str] = ()
    """Files, and folders in which every transcript is read."""
    format: str = "auto"
    """`auto`, or the name of a transcript format."""
    strict: bool = False
    """Refuse a file with a line that cannot be read, instead of putting the line aside."""
    copies: CopiesRule = "once"
    """Whether a message that was written again, by a session resumed or forked, is one message or as many."""

    card: ClassVar[Card] = read_card("transcripts")

    def __post_init__(self) -> None:
        check_choice(self, copies=CopiesRule)

    def load(self) -> Dataset:
        sessions = read_sessions(self.paths, self.format, self.strict, "all", self.card.name, self.copies)
        protocol = f"format={self.format}{sessions.protocol(self.copies)}"
        digest = text_digest(*sessions.sha256s, protocol)
        return Draft(list(sessions.transcripts)).dataset(self.card.name, protocol, digest, sessions.notes)


@dataclass(frozen=True, slots=True)
class Own(Transcripts):
    """Sessions of any format that lcm reads, and a file of questions.

    Times: as recorded; a question that does not say when is asked when the last message of its workspace has been said.
    Judged unit: the message. A question that nothing answers has no judgements.
    """

    questions: str | None = None
    """JSONL, CSV or Parquet."""
    workspace: WorkspaceRule = "all"
    """What is searched together: all files, those of a folder, or a file alone."""
    similarity: float = 0.9
    """How like a quotation must be to words that are not the same; 1 = but for case and white space."""
    store: str | None = None
    """The store in which `lcm grep` found what questions name as `msg#21`."""

    card: ClassVar[Card] = read_card("own")

    def __post_init__(self) -> None:
        Transcripts.__post_init__(self)
        check_choice(self, workspace=WorkspaceRule)
        check_range(self, "similarity", ge=0.5, le=1)

    def load(self) -> Dataset:
        """Read the sessions and the questions; a wrong line of these, or evidence that is not found, is refused:
        nothing is evaluated on what might be meant."""
        if self.questions is None:
            raise DatasetError(
                "dataset.questions names no file: write questions with their evidence (docs/own_data.md), or let "
                "`lcm questions make PATHS into=questions.jsonl` make some"
            )
        file, sessions = self.read()
        located, unresolved = self.located(file, sessions)
        questions = [one.question for one in located]
        made = sorted({one.generated for one in questions if one.generated is not None})
        n_asked = sum(one.generated is None for one in questions)
        refuse(problems_of(file, unresolved), has_nearest=any(one.nearest for one in unresolved))
        ends = _ends(sessions)
        draft = Draft(list(sessions.transcripts))
        for one in located:
            asked = one.question
            asked_at = asked.asked_at or ends[one.workspace_id]
            draft.queries.append(Query(asked.question_id, asked.question, asked_at, one.workspace_id, asked.category))
            draft.judge(asked.question_id, one.message_ids)
            draft.quotations += [
                (asked.question_id, number, message_id, quotation)
                for number, each in enumerate(one.located, 1)
                for message_id, quotation in each.quotations.items()
            ]
            if asked.is_unanswerable:
                draft.unanswerable.add(asked.question_id)
            elif asked.answer:
                draft.answers.append((asked.question_id, asked.answer))
        protocol = f"workspace={self.workspace} format={self.format}{sessions.protocol(self.copies)}"
        judged = (f"{query} {message}" for query, message, _ in draft.qrels)
        return draft.dataset(
            self.card.name,
            protocol,
            text_digest(*sessions.sha256s, file.sha256, protocol, *judged),
            (*sessions.notes, *_notes(file, located, sessions.transcripts)),
            generated=", ".join(made) + (f"; {n_asked} asked by people" if n_asked else "") if made else None,
            generated_by_query={one.question_id: one.generated for one in questions if one.generated},
        )

    def read(self) -> tuple[QuestionsFile, Sessions]:
        """The questions and the sessions, not yet held against each other."""
        file = read_file(local(self.questions or ""))
        return file, self.sessions()

    def sessions(self) -> Sessions:
        """The sessions in their workspaces."""
        return read_sessions(self.paths, self.format, self.strict, self.workspace, self.card.name, self.copies)

    def located(self, file: QuestionsFile, sessions: Sessions) -> tuple[list[LocatedQuestion], list[Unresolved]]:
        """The questions whose evidence was found, and those whose evidence was not."""
        return locate(file, sessions, self.similarity, None if self.store is None else local(self.store))


def problems_of(file: QuestionsFile, unresolved: Sequence[Unresolved]) -> list[Problem]:
    """All that is wrong with a questions file, by its lines."""
    return sorted([*file.problems, *(one.problem for one in unresolved)], key=lambda one: one.line)


def unused_keys(file: QuestionsFile) -> list[str]:
    """A note of the keys of a questions file that say nothing, if it has any."""
    return [f"keys of {file.path.name} that say nothing here: {', '.join(file.unused)}"] if file.unused else []


def _ends(sessions: Sessions) -> dict[str, datetime]:
    """When the last message of each workspace had been said."""
    ends: dict[str, datetime] = {}
    for one in sessions.transcripts:
        ends[one.workspace_id] = max([ends.get(one.workspace_id, EPOCH), *one.instants()[-1:]])
    return ends


def _notes(file: QuestionsFile, located: Sequence[LocatedQuestion], sessions: Sequence[Transcript]) -> list[str]:
    alike = sum(any("like" in each.how for each in one.located) for one in located)
    notes = [f"questions: {file.path.name}, sha256 {file.sha256}"]
    if alike:
        notes.append(f"{alike} questions quote words that are not the same; `lcm questions check` shows them")
    notes += unused_keys(file)
    texts = {message.message_id: message.content for one in sessions for message in one.messages}
    found = (overlap(one.question.question, [texts[name] for name in one.message_ids]) for one in located)
    if shares := [share for share in found if share is not None]:
        notes.append(f"questions share {sum(shares) / len(shares):.2f} {OF_OVERLAP}")
    return notes
