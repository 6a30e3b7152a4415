"""The evidence of `ranking=unified`: what each column says, by hand, and what every one of them must survive."""

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
import pytest

from lcm.memory.memory import Memory
from lcm.protocols.contract import contract_of
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import Batch, Stage
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.fusion import EVIDENCE_COLUMNS
from lcm.retrieval.ranking.evidence.talk import Talks
from lcm.retrieval.ranking.evidence.text_evidence import (
    FormEvidence,
    Span,
    SpeakerEvidence,
    TimeEvidence,
    WordEvidence,
    spans,
)
from lcm.retrieval.ranking.evidence.text_facts import FORM
from lcm.retrieval.ranking.evidence.vector_evidence import (
    BlockSums,
    Places,
    TalkVectors,
    TalkWords,
    VectorEvidence,
    WordLikeness,
)
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.indexes import Hybrid
from lcm.writing.extraction.said import Steps
from tests.lcm.refusals import assert_refused
from tests.support.workspaces import system

STARTED = datetime(2023, 5, 1, tzinfo=UTC)
Talk = Sequence[tuple[str | None, str]]
TALK: Talk = (
    ("Ada", "Hi Ben! Where have you been?"),
    ("Ben", "I went to Rome with my brother."),
    ("Ada", "Lovely."),
    ("Ben", "We saw the Colosseum yesterday."),
)


def said(talk: Talk = TALK, days_apart: int = 0, name: str = "talk", day: int = 0) -> Transcript:
    """Authors and what they say in one session, as user and assistant by turns."""
    return Transcript(
        name,
        tuple(
            Message(
                f"{name}{i}",
                "user" if i % 2 == 0 else "assistant",
                text,
                session_id="s",
                created_at=STARTED + timedelta(days=day + i * days_apart),
                author=author,
            )
            for i, (author, text) in enumerate(talk)
        ),
    )


def documents_of(*transcripts: Transcript, **parts: Any) -> pl.DataFrame:
    with Memory.open(system(**parts)) as memory:
        memory.ingest_all(transcripts)
        return memory.documents


def ranked(stages: Sequence[Stage], questions: Sequence[str], talk: Talk = TALK, days_apart: int = 0) -> pl.DataFrame:
    """The frame behind the stages, the rows of a question in the order of the talk."""
    seen: list[pl.DataFrame] = []

    def keep(frame: pl.DataFrame, batch: object) -> pl.DataFrame:
        seen.append(frame)
        return frame.with_columns(score=pl.lit(0.0))

    asked_at = STARTED + timedelta(days=100)
    with Memory.open(system()) as memory:
        memory.ingest(said(talk, days_apart))
        memory.rank(
            [Query(f"q{i}", text, asked_at) for i, text in enumerate(questions)],
            Ranking(Hybrid(), {**{str(i): stage for i, stage in enumerate(stages)}, "keep": keep}),
        )
    return seen[0].sort("query_id", "seq", maintain_order=True)


def evidence() -> list[Stage]:
    embedder = Hashing()
    return [
        WordEvidence(), VectorEvidence(embedder), WordLikeness(embedder), SpeakerEvidence(), TimeEvidence(),
        FormEvidence(),
    ]  # fmt: skip


def test_names_are_left_out_of_the_words_of_both_sides() -> None:
    frame = ranked([WordEvidence()], ["Where did Ben's brother go?", "Ben"])
    brother = frame.filter(query_id="q0")["words_passage"].to_list()
    assert brother == [brother[0], brother[1], brother[0], brother[0]]
    assert brother[1] > brother[0]
    assert frame.filter(query_id="q0")["covered_passage"].to_list() == [0, 1, 0, 0]
    assert frame.filter(query_id="q1")["words_passage"].to_list() == [0, 0, 0, 0]


def test_a_turn_lends_its_words_to_the_next_and_more_after_a_question() -> None:
    frame = ranked(
        [WordEvidence()], ["where have you been lovely"], (("Ada", "Lovely tea?"), ("Ben", "x"), ("Ada", "y"))
    )
    words = frame["words_passage"].to_list()
    assert frame["words_before"].to_list() == [0, words[0], words[1]]
    assert frame["words_after_question"].to_list() == [0, words[0], 0]
    assert words[0] > 0


def test_the_asked_person_speaks() -> None:
    frame = ranked([SpeakerEvidence()], ["Where did Ben go?", "Do Ada and Ben agree?", "Who went?"])
    by_query = {key[0]: rows for key, rows in frame.group_by("query_id")}
    assert by_query["q0"]["asked_speaks"].to_list() == [0, 1, 0, 1]
    assert by_query["q0"]["other_speaks"].to_list() == [1, 0, 1, 0]
    for query_id in ("q1", "q2"):
        assert by_query[query_id].select("asked_speaks", "other_speaks").sum().row(0) == (0, 0)


def test_time_evidence_halves_by_its_half_lives_on_both_sides_of_the_span() -> None:
    frame = ranked([TimeEvidence(behind_half_life_days=3, before_half_life_days=1)], ["on 3 May 2023"], days_apart=1)
    # 1 to 4 May at midnight; the span ends at the beginning of the 4th, which is 0 days behind it
    assert frame["said_then"].to_list() == pytest.approx([2**-2, 2**-1, 1, 1])
    assert frame["told_when_asked"].to_list() == [0, 0, 0, 0]
    assert ranked([TimeEvidence()], ["When was it?"])["told_when_asked"].to_list() == [0, 0, 0, 1]


def test_what_was_said_later_holds_where_a_question_asks_how_things_stand() -> None:
    asks_now = ["Where does Ben live now?", "What did they end up with?"]
    frame = ranked([TimeEvidence()], [*asks_now, "Where did Ben live?", "I know"], days_apart=1)
    rising = [i / 3 for i in range(4)]
    assert frame["later_if_now"].to_list() == pytest.approx([*rising, *rising, *[0] * 8])


def test_how_far_on_a_turn_was_said_is_told_by_time_then_by_place() -> None:
    documents = documents_of(
        said([(None, "new 0"), (None, "new 1")], name="new", day=1),
        said([(None, "old 0")], name="old"),
        said([(None, "beside 0"), (None, "beside 1")], name="beside"),
    )
    progress = dict(zip(documents["text"], Talks().of(documents).progress, strict=True))
    assert progress == pytest.approx({"old 0": 0, "beside 0": 0, "beside 1": 1 / 3, "new 0": 2 / 3, "new 1": 1})


def test_what_names_the_speakers_of_an_exchange_is_none_of_its_words() -> None:
    documents = documents_of(said([(None, "Tea?"), (None, "Yes.")]), extraction=Steps(exchange_characters=20))
    talk = Talks().of(documents.filter(kind="exchange"))
    assert talk.forms[:, FORM.index("words")].tolist() == [2]
    assert [talk.talks.words.names[word] for word in talk.said.words] == ["tea", "yes"]
    assert talk.is_user.tolist() == [True]


def test_time_expressions_are_spans_of_days() -> None:
    said = {
        "in May 2023": (date(2023, 5, 1), 31),
        "on 3 May, 2023": (date(2023, 5, 3), 1),
        "on May 3rd": (date(2023, 5, 3), 1),
        "2023-05-03": (date(2023, 5, 3), 1),
        "yesterday": (date(2023, 6, 9), 1),
        "two weeks ago": (date(2023, 5, 24), 7),
        "last week": (date(2023, 5, 28), 13),
        "am 3. 5. 2023": (date(2023, 5, 3), 1),
        "2023年5月3日に": (date(2023, 5, 3), 1),
        "2023년 5월에": (date(2023, 5, 1), 31),
    }
    expected = {text: ((start - date(1970, 1, 1)).days, days) for text, (start, days) in said.items()}
    found = {text: spans(text, date(2023, 6, 10), range(2023, 2024)) for text in said}
    assert found == {text: [Span(start, start + days)] for text, (start, days) in expected.items()}
    for text in ("who may go", "on 31 February 2023", "version 1.5.20234"):
        assert spans(text, date(2023, 6, 10), range(2023, 2024)) == [], text


def test_who_speaks_is_told_in_any_language() -> None:
    questions = [
        "What did I offer?",
        "Was habe ich gesagt?",
        "我喝什么？",
        "Что я пью?",
        "Was ist Chichi?",
        "In India?",
    ]
    asked = ranked([SpeakerEvidence()], questions, [(None, "Tee"), (None, "茶")])
    assert asked["asker_speaks"].to_list() == [1, 0] * 4 + [0, 0] * 2
    inflected = ranked([SpeakerEvidence()], ["Что сделал дед Йонаса?"], (("Марта", "a"), ("Йонас", "b")) * 2)
    assert inflected["asked_speaks"].to_list() == [0, 1, 0, 1]
    talk = (("王梅", "我报名了"), ("李强", "好"), ("Zoë", "Oui"), ("王梅", "走"), ("李强", "是"), ("Zoë", "Non"))
    frame = ranked([SpeakerEvidence()], ["王梅在哪里跑？", "Où est Zoë ?"], talk)
    assert frame["asked_speaks"].to_list() == [1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1]


def test_names_of_any_script_are_left_out_of_a_query() -> None:
    speakers = Talks().of(documents_of(said([("王梅", "a"), ("Zoë", "b"), ("王梅", "c"), ("Zoë", "d")]))).speakers
    assert speakers.without_names("王梅在哪里？") == "在哪里？"
    assert speakers.without_names("Is Zoë's tea hot?") == "Is tea hot?"
    assert speakers.without_names("Zoës Tee, Zoe's tea") == "Zoës Tee, tea"


def test_form_is_told_of_a_talk_between_two_named_people_alone_and_the_asker_of_any_other() -> None:
    stages = [FormEvidence(), SpeakerEvidence()]
    talk = ranked(stages, ["I"])
    assert talk["form_first_person"].to_list() == [0, 1, 0, 1]
    assert talk["form_question"].to_list() == [1, 0, 0, 0]
    assert talk["asker_speaks"].to_list() == [0, 0, 0, 0]
    chat = ranked(stages, ["I"], tuple((None, text) for _, text in TALK))
    assert chat["asker_speaks"].to_list() == [1, 0, 1, 0]
    assert chat["form_length"].to_list() == [0, 0, 0, 0]
    meeting = ranked(stages, ["I"], (*TALK, ("Cleo", "I like trains."), ("Cleo", "I do.")))
    assert meeting["form_first_person"].to_list() == [0] * 6


def test_passages_share_the_evidence_of_their_turn_and_have_their_own() -> None:
    long = "\n\n".join(("The kettle leaks. " * 9, "Rome was sunny. " * 9))
    seen: list[pl.DataFrame] = []

    def keep(frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        seen.append(frame.join(batch.documents.select("document_id", "text"), on="document_id"))
        return frame.with_columns(score=pl.lit(0.0))

    stages = {"words": WordEvidence(), "vectors": VectorEvidence(Hashing()), "keep": keep}
    with Memory.open(system(extraction=Steps(passage_characters=200))) as memory:
        memory.ingest(said([(None, "What now?"), (None, long), (None, "Thanks.")]))
        memory.rank([Query("q", "a kettle in sunny weather", STARTED)], Ranking(Hybrid(), stages))
    (kettle,), (rome,) = (seen[0].filter(pl.col("text").str.contains(word)).to_dicts() for word in ("kettle", "Rome"))
    shared = ("words_window", "words_before", "meaning_window", "meaning_section", "covered_session")
    assert all(kettle[column] == rome[column] for column in shared)
    assert kettle["covered_session"] > max(kettle["covered_passage"], rome["covered_passage"]) > 0
    assert kettle["meaning_passage"] != rome["meaning_passage"]


def test_a_section_goes_from_one_turn_of_the_user_up_to_the_next_and_meanings_are_centred() -> None:
    talk = [(None, f"{word} tea") for word in ("red", "green", "blue", "black")]
    frame = ranked([VectorEvidence(Hashing())], ["green"], talk)
    nearest = frame["meaning_section"].to_list()
    assert nearest == [nearest[0]] * 2 + [nearest[2]] * 2
    assert nearest[0] > nearest[2]
    assert frame["meaning_passage"].arg_max() == 1
    assert frame["meaning_passage"].sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    "talk",
    [
        (("Ada", "one"),),
        ((None, "台所のやかん"), (None, "やかんが壊れた")),
        ((None, "no date: no author"), (None, "?!"), (None, "…")),
        (("A.B (x", "strange"), ("A.B (x", "names")),
    ],
)
def test_every_column_is_finite_and_a_query_alone_gets_the_same(talk: Talk) -> None:
    questions = ["", "台所", "what did A.B (x say in May 2023?", "?"]
    together = ranked(evidence(), questions, talk)
    new = sorted(EVIDENCE_COLUMNS & set(together.columns))
    assert len(new) == sum(len(contract_of(stage).makes) for stage in evidence())  # type: ignore[attr-defined]
    assert np.isfinite(together.select(new).to_numpy()).all()
    alone = pl.concat([ranked(evidence(), [q], talk) for q in questions])
    assert alone.select(new).equals(together.select(new))


def test_settings_out_of_range_are_refused() -> None:
    assert_refused(WordEvidence, "be >= 1", window=0)
    assert_refused(TimeEvidence, "be > 0", before_half_life_days=math.nan)


def test_a_word_is_as_like_to_a_turn_as_to_the_nearest_of_its_words() -> None:
    embedder = Hashing()
    texts = ("running shoes", "a runner runs", "tea", "kettle and runway")
    talk = Talks().of(documents_of(said([(None, text) for text in texts])))
    turns = [("running", "shoes"), ("runner", "runs"), ("tea",), ("kettle", "runway")]
    asked = ["runs", "kettles", "nowhere"]
    embedded = dict(zip(words := sorted({*chain(*turns), *asked}), embedder.embed(words, "document"), strict=True))
    mean = np.mean([embedded[word] for word in set(chain(*turns))], axis=0)
    vectors = {word: (row - mean) / np.linalg.norm(row - mean) for word, row in embedded.items()}
    for word in asked:
        alike, _ = TalkWords(talk, embedder).likeness(talk.everything, [word])
        nearest = [max(vectors[word] @ vectors[other] for other in own) for own in turns]
        likeness = np.array([max(0.0, one - 0.3) / 0.7 for one in nearest])
        weight = math.log1p((4 - likeness.sum() + 0.5) / (likeness.sum() + 0.5))
        assert alike == pytest.approx(weight * likeness, abs=1e-5)
        assert word != "runs" or alike.max() > 0.5


def test_windows_are_as_near_as_the_sum_of_their_turns() -> None:
    messages = tuple(
        Message(f"m{i}", "user", f"{word} tea. " * (1 + 30 * (i == 2)), "s" if i < 4 else "t", STARTED)
        for i, word in enumerate(("red", "green", "blue", "black", "white", "grey"))
    )
    with Memory.open(system(extraction=Steps(passage_characters=200))) as memory:
        memory.ingest(Transcript("talk", messages))
        talk = Talks().of(memory.documents)
        vectors = memory.live.indexes.vector_index.vectors_of(memory.documents["document_id"].to_list())

    def vectors_of(documents: Places) -> Vectors:
        return vectors[documents]

    seen = talk.everything
    laid = TalkVectors(talk, BlockSums(), vectors_of)
    rows = laid._lay_out(seen, vectors_of).passages
    assert len(rows) > len(talk) == len(messages)
    turns = np.array([rows[seen.turns == turn].sum(axis=0) for turn in range(len(talk))])
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    query = vectors[0].astype(np.float64)
    passages, window, wide_window = laid.cosines(seen, query, vectors_of)
    asked = (query - laid._mean) / np.linalg.norm(query - laid._mean)
    assert passages == pytest.approx(rows @ asked, abs=1e-5)
    for radius, found in ((1, window), (2, wide_window)):
        near = np.array([turns[[place for place in row if place >= 0]].sum(axis=0) for row in talk.around(radius)])
        assert found == pytest.approx(near @ asked / np.linalg.norm(near, axis=1), abs=1e-5)


def test_vectors_of_another_index_are_laid_out_anew() -> None:
    found = []
    for seed in (0, 1):  # two memories of the same documents, whose vectors differ
        embedder = Hashing(seed=seed)
        with Memory.open(system(embedder=embedder)) as memory:
            memory.ingest(said())
            (batch,) = memory.batches([Query("q", "a trip to Rome", STARTED)])
            frame = memory.documents.select("document_id", query_id=pl.lit("q"))
            found.append(VectorEvidence(embedder)(frame, batch)["meaning_passage"].to_list())
    assert found[0] != found[1]
