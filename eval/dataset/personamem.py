"""PersonaMem: sessions of a persona with an assistant, and multiple-choice questions about what the persona is like."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

import polars as pl

from eval.dataset.card import Card, PinnedFile, Release, dataset_digest
from eval.dataset.dataset import OPTIONS_SCHEMA, QRELS_SCHEMA, Dataset, opaque_id
from eval.dataset.personamem_files import QUESTIONS, Question, Turn, contexts_beside, read_contexts, read_questions
from eval.dataset.published import check_only, check_part, find_file, identified, notes_of, part_words
from lcm.clock import EPOCH
from lcm.records.conversation import Message, Part, Transcript
from lcm.records.query import Query

ASKED_AT = EPOCH + timedelta(days=1)
"""Where a file does not say after which message a question is asked, the day after all of them."""
BETWEEN_MESSAGES = timedelta(seconds=1)
"""No session has a time. Where a file says after which message a question is asked, messages are so far apart."""

_HUB = "https://huggingface.co/datasets/bowen-upenn/PersonaMem-v1/resolve/fd7c30f071d5c2ee2a211506783be222d7b6002e/"


def _length(name: str, questions: tuple[str, int | None], contexts: tuple[str, int | None]) -> Release:
    pins = (
        PinnedFile(f"questions_{name}.csv", *questions),
        PinnedFile(f"shared_contexts_{name}.jsonl", *contexts),
    )
    return Release(f"v1_{name}", f"Hugging Face bowen-upenn/PersonaMem-v1, {name}", pins, url=_HUB, licence="MIT")


RELEASES = (
    Release(
        "development",
        "12 personas of the 32k set, repackaged by vectorize-io/agent-memory-benchmark commit de83fa7816ab",
        (
            PinnedFile(
                "personamem_32k_documents_dev.jsonl.gz",
                "aaaf2d4968e7da569e5bd1f827e0708b3a611ff8a4778eacfc8a5c5fdc1c92e9",
            ),
            PinnedFile(
                "personamem_32k_queries_dev.jsonl.gz",
                "16501596fdc0ef6958d027cc6b41148670e63d9fe404b26d88ef9cea20eb8f4c",
            ),
        ),
        is_told=False,
    ),
    _length(
        "32k",
        ("cccd34cf53e0bc4d9536c04cff5ca045156d9a4e227e83327112482840bbc93c", 1_305_366),
        ("217247ebfec9e8442fc53570c795ab69f21aad08745f7de78d9beab51b122d4a", 5_613_210),
    ),
    _length(
        "128k",
        ("f0e137c3167fadbffbce5be2786105283c3299972c4ac1f158939155fd1578a7", None),
        ("733cc009e84a138b386c9e40adea741565db01074f73af4058fd039b42951726", None),
    ),
)


@dataclass(frozen=True, slots=True)
class Personamem:
    """20 personas in 37 contexts with 589 questions as published (32k), 12 in 22 with 365 in the development part.

    Times: none recorded. A published question is asked after the message that it names, and hears no more of its
    context; the development part has lost that, and its questions hear all. No judgements.
    """

    directory: str | None = None
    """None: the folder `personamem` in `LCM_DATASETS_DIR`."""
    file: str | None = None
    """Of the questions: its path below the folder, or an absolute one; None: the only such file there. The contexts lie
    beside it."""
    pinned: bool = False
    """Refuse files of no known release, instead of taking them and saying so."""
    only: Sequence[str] | None = None
    """The contexts that are taken, by id; None: all."""

    card: ClassVar[Card] = Card(
        name="personamem",
        title="PersonaMem v1: chats of 20 personas, 589 questions with options; 12 with 365 in the development part",
        licence="MIT on the data card; the repackaging of the development part names none: not shipped",
        origin="bowen-upenn/PersonaMem-v1; the development part by vectorize-io/agent-memory-benchmark de83fa7816ab",
        how_to_get="`lcm datasets get personamem release=v1_32k`, or by hand questions_32k.csv and "
        "shared_contexts_32k.jsonl",
        releases=RELEASES,
    )

    def __post_init__(self) -> None:
        check_only(self.only)

    def load(self) -> Dataset:
        asked = find_file(self.card, QUESTIONS, self.directory, self.file, pinned=self.pinned)
        beside = identified(self.card, contexts_beside(asked.path), pinned=self.pinned)
        contexts = read_contexts(asked.path, beside.path)
        check_part(self.only, contexts, beside.path.name)
        taken = {name: turns for name, turns in contexts.items() if self.only is None or name in self.only}
        is_dated, queries, options, beyond = False, list[Query](), list[tuple[str, str, str, bool]](), 0
        known = set[str]()
        for question in read_questions(asked.path):
            if question.context not in contexts:
                raise question.place.wrong("shared_context_id", f"{question.context!r} is no context")
            if question.question_id in known:
                raise question.place.wrong("question_id", f"{question.question_id!r} stands twice")
            known.add(question.question_id)
            is_dated = question.end is not None
            if question.context in taken:
                queries.append(_query(question, len(taken[question.context])))
                options += [(question.question_id, *option) for option in question.options]
                beyond += (question.end or 0) > len(taken[question.context])
        frame = pl.DataFrame(options, schema=OPTIONS_SCHEMA, orient="row")
        correct = frame.filter("is_correct").select("query_id", "text")
        doubled = len(frame.filter(~pl.col("is_correct")).join(correct, on=["query_id", "text"], how="semi"))
        notes = {
            "wrong options say word for word what the correct one says": doubled,
            "questions are asked after more messages than their context has": beyond,
        }
        protocol = f"options=4 context={'until_asked' if is_dated else 'whole'}{part_words(self.only)}"
        return Dataset(
            name="personamem",
            protocol=protocol,
            digest=dataset_digest([beside.pin, asked.pin], protocol),
            transcripts=tuple(_transcript(context, turns, is_dated) for context, turns in taken.items()),
            queries=tuple(queries),
            qrels=pl.DataFrame(schema=QRELS_SCHEMA),
            options=frame,
            notes=(*notes_of([asked, beside]), *(f"{count} {what}" for what, count in notes.items() if count)),
        )


def _query(question: Question, heard: int) -> Query:
    asked_at = ASKED_AT if question.end is None else EPOCH + (min(question.end, heard) - 1) * BETWEEN_MESSAGES
    return Query(question.question_id, question.text, asked_at, question.context, question.category)


def _transcript(context: str, turns: Sequence[Turn], is_dated: bool) -> Transcript:
    """One conversation a context; dated where questions come between its messages."""
    messages = tuple(
        Message(
            message_id=opaque_id("personamem", turn.session, str(turn.index)),
            role=turn.role,
            content=turn.text.removeprefix(f"{turn.role.capitalize()}: "),
            session_id=opaque_id("personamem", turn.session),
            created_at=EPOCH + place * BETWEEN_MESSAGES if is_dated else None,
            parts=(Part("text", text=turn.text),),
            envelope={"native": turn.native, "slots": {}},
        )
        for place, turn in enumerate(turns)
    )
    return Transcript(opaque_id("personamem", context), messages, workspace_id=context)
