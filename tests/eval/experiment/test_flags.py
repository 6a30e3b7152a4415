"""What a run says of contexts: how many were compacted, and how near the largest came to what triggers that."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from eval.experiment.flags import flags_of_contexts, flags_of_haystacks, flags_of_parts, flags_of_usage
from eval.experiment.outcome import Outcome
from eval.experiment.workspace import large_files
from eval.measures.sessions import Survival
from eval.replay.bulk import Bulk
from eval.replay.per_turn import PerTurn
from eval.replay.workspace_replay import Replay
from lcm.compaction.clustering import Clustering
from lcm.compaction.guidance.protected import NoGuidance
from lcm.compaction.lossless.lossless import SWEEPS, Lossless
from lcm.compaction.summarizer.chain import Truncate
from lcm.compaction.summary_documents import SearchableSummaries
from lcm.compaction.work import NoCompaction
from lcm.memory.conversation_compaction import WAITS
from lcm.memory.memory import Memory
from lcm.memory.session import SessionRules, live_message
from lcm.protocols.compaction import Compaction
from lcm.protocols.contract import Contract, contract_of
from lcm.records.conversation import Transcript
from lcm.records.summary import ContextReading
from lcm.retrieval.decay import Exponential, NoDecay
from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.fusion import HybridScore
from lcm.retrieval.ranking.evidence.text_evidence import Pool
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.selection import Diversity
from lcm.retrieval.source.indexes import Dense, Hybrid, Lexical
from lcm.token_estimator import Recorded, Utf16Units
from tests.eval.tiny import tiny
from tests.lcm.compaction.contexts import NOW, message
from tests.support import experiments
from tests.support.workspaces import LINES, minute, queries, ranking, system, transcript

ANSWERS = pl.DataFrame({"document_id": ["doc:1"], "is_recovered": [False]})
SWEEP, LEAF = "tokens that trigger it", "raw tokens before its fresh tail that trigger a leaf"


def outcome(compaction: Compaction, replay: Replay, session: SessionRules | None = None) -> Outcome:
    talks = tuple(transcript(LINES[:n], f"talk {n}", f"workspace {n}") for n in (8, 4))
    asked = [
        replace(query, query_id=f"{query.query_id} {n}", workspace_id=f"workspace {n}")
        for n in (8, 4)
        for query in queries()
    ]
    own = system(compaction=compaction, session=session or SessionRules())
    return experiments.outcome(tiny(talks, asked, [("q0 8", "talk 8:0")]), own, replay=replay)


def told(compaction: Compaction, replay: Replay) -> list[str]:
    return [flag for flag in outcome(compaction, replay).flags if "compacted" in flag]


def lossless(**settings: Any) -> Lossless:
    return Lossless(Truncate(), Utf16Units(), **{"fresh_tail_count": 1, "min_leaf_tokens": 0} | settings)


def clustering(**settings: int) -> Clustering:
    return Clustering(Truncate(), NoGuidance(), Utf16Units(), Hashing(), min_turns=1, tail_budget_tokens=1, **settings)


def test_what_triggers_see_is_told_with_the_largest_context_of_all_workspaces() -> None:
    far = lossless(budget_tokens=4000, leaf_chunk_tokens=1000)
    (bulk,) = told(far, Bulk())
    with_tokens = outcome(far, PerTurn())
    assert with_tokens.counts["contexts"] == 2
    assert with_tokens.counts["contexts_compacted"] == 0
    size = int(bulk.partition("had ")[2].partition(" ")[0])
    assert bulk == f"0 of 2 contexts compacted; the largest had {size} of the 3,000 {SWEEP}"
    (per_turn,) = told(far, PerTurn())
    assert per_turn.startswith(f"0 of 2 contexts compacted; the largest had {size} of the 3,000 {SWEEP}, and ")
    assert per_turn.endswith(f" of the 1,000 {LEAF}")
    assert 0 < int(per_turn.partition("and ")[2].partition(" ")[0]) < size


def test_contexts_that_were_compacted_are_counted_and_clusters_tell_of_their_own_trigger() -> None:
    some = outcome(lossless(budget_tokens=90, leaf_chunk_tokens=60), PerTurn())
    (flag,) = (one for one in some.flags if "compacted" in one)
    assert flag.startswith("1 of 2 contexts compacted; the largest had ")
    assert (some.counts["contexts"], some.counts["contexts_compacted"]) == (2, 1)
    (waits,) = told(clustering(session_token_budget=2000), PerTurn())
    assert waits.endswith(" of the 2,000 tokens between its last summary and its recent tail that trigger it")
    (never,) = told(clustering(session_token_budget=0), PerTurn())
    assert "compaction.session_token_budget=0" in never
    (always,) = told(clustering(), Bulk())
    assert always.startswith("2 of 2 contexts compacted; ")
    assert "whatever stands before the recent tail" in always


@pytest.fixture(scope="module")
def nothing() -> Outcome:
    """What a run without compaction finds."""
    return outcome(NoCompaction(), Bulk())


def test_without_compaction_nothing_is_told(nothing: Outcome) -> None:
    for silent in (nothing, outcome(NoCompaction(), PerTurn())):
        assert not any("compacted" in flag for flag in silent.flags)
        assert "contexts" not in silent.counts


def test_what_reached_its_trigger_and_gave_nothing_is_told() -> None:
    read = [
        ContextReading("a", False, SWEEP, 7_000, 6_000),
        ContextReading("b", True, SWEEP, 6_500, 6_000),
        ContextReading("a", False, LEAF, 0, 1_000),
    ]
    (flag,) = flags_of_contexts(read)
    assert flag == (
        f"1 of 2 contexts compacted; the largest had 7,000 of the 6,000 {SWEEP}, and 0 of the 1,000 {LEAF}; "
        "1 reached that, and all that may be folded there gave nothing shorter"
    )
    assert flags_of_contexts([]) == ()
    for hard, is_told in ((500, True), (3000, False), (0, False)):
        read = [ContextReading("a", False, SWEEPS, 20, 2000), ContextReading("a", False, WAITS, 20, hard)]
        assert any("nothing is left to the background" in flag for flag in flags_of_contexts(read)) is is_told, hard


def test_parts_that_found_nothing_to_do_are_named() -> None:
    for replay, through in ((Bulk(), "summarizer"), (PerTurn(), "summarizer, replay.per_turn")):
        (idle,) = [flag for flag in outcome(lossless(budget_tokens=4000), replay).flags if flag.startswith("parts ")]
        assert idle == f"parts that found nothing to do: compaction, and with it {through} (no context was folded)"
    folded = outcome(lossless(budget_tokens=20), PerTurn()).flags
    assert not any(flag.startswith("parts ") for flag in folded)


@pytest.mark.parametrize(
    ("fields", "idle"),
    [
        ({}, None),
        ({"hot_spot_share": 0.5, "hot_spot_heat": 50}, "hot spots (nothing that later messages come back to fits"),
        ({"hot_spot_share": 0.5, "hot_spot_heat": 1}, None),
        ({"fresh_tail_max_count": 3, "fresh_tail_novelty": 1.0}, "fresh tail by novelty (it was never longer than"),
        ({"fresh_tail_max_count": 3, "fresh_tail_novelty": 0.0}, None),
    ],
)
def test_what_may_keep_messages_and_never_kept_one_is_named(fields: dict[str, Any], idle: str | None) -> None:
    talk = ["src/db.py and so on " * 4, "It is in src/db.py " * 4, *(f"Matter {n} is another " * 4 for n in range(6))]
    heard = Transcript("talk", tuple(message(n, text) for n, text in enumerate(talk, 1)), "workspace 8")
    asked = replace(queries()[0], workspace_id="workspace 8", asked_at=NOW)
    folding = system(compaction=lossless(budget_tokens=200, leaf_chunk_tokens=60, **fields))
    flags = experiments.outcome(tiny([heard], [asked], [(asked.query_id, "c-m1")]), folding, replay=PerTurn()).flags
    assert any(flag.startswith("1 of 1 contexts compacted") for flag in flags)
    told = [flag for flag in flags if "hot spots (" in flag or "fresh tail by novelty (" in flag]
    assert [flag.startswith(f"parts that found nothing to do: {idle}") for flag in told] == [True] * (idle is not None)


def test_session_rules_that_changed_nothing_of_what_was_taken_in_are_named(nothing: Outcome) -> None:
    def named(**rules: Any) -> bool:
        flags = outcome(NoCompaction(), Bulk(), SessionRules(**rules)).flags
        return any(flag.startswith("parts that found nothing to do: session (no text is large, ") for flag in flags)

    assert named(large_file_threshold_tokens=25_000)
    assert named(ignore_patterns=["cron:*"])
    assert not named(ignore_patterns=["talk 4"])
    assert not named(), "the configuration tells that there are no rules to follow"
    with Memory.open(replace(system(), session=SessionRules(large_file_threshold_tokens=20))) as memory:
        assert large_files(memory, ()).item() == 0
        words = f'Read <file name="log.txt">{"a line " * 40}</file>'
        memory.take_turn("talk", [live_message({"role": "user", "content": words}, "talk", minute(0))])
        assert large_files(memory, ()).item() == 1
        assert flags_of_parts(memory.system, ["session"], ANSWERS, nothing.documents, nothing.decisions) == ()


class Filled(Ranking):
    """A ranking of which some slots are filled."""

    slots = ("decay", "summary_expansion")
    told = Contract(compares_vectors=True)

    def __post_init__(self) -> None:
        Ranking.__post_init__(self)
        object.__setattr__(self, "contract", self.told)

    def filled_slots(self) -> list[str]:
        return list(self.slots)


def test_what_works_through_a_ranking_is_told_where_no_answer_holds_what_it_found(nothing: Outcome) -> None:
    """An expansion that can find no summary is told of by the configuration alone."""
    filled = replace(system(), ranking=Filled(ranking().source))
    (idle,) = flags_of_parts(filled, (), ANSWERS, nothing.documents, nothing.decisions)
    assert idle == "parts that found nothing to do: decay (no answer changed)"
    documents = nothing.documents.with_columns(kind=pl.lit("message"))
    for answers, more in ((ANSWERS.clear(), ", vector_index, embedder"), (ANSWERS.with_columns(is_recovered=True), "")):
        (idle,) = flags_of_parts(filled, (), answers, documents, nothing.decisions)
        assert idle == (
            f"parts that found nothing to do: ranking, and with it source, fusion, text_index, decay{more} "
            "(no answer holds what it found)"
        )
    for decay, is_named in ((Exponential(), True), (NoDecay(), False)):  # a decay that a fusion weighs works there too
        weighing = replace(system(), ranking=Ranking(ranking().source, {"fusion": HybridScore(decay)}))
        (idle,) = flags_of_parts(weighing, (), ANSWERS.clear(), documents, nothing.decisions)
        assert ("decay" in idle) == is_named
    searching = replace(filled, summary_documents=SearchableSummaries())
    recovered = ANSWERS.with_columns(is_recovered=True)
    for kind, is_named in (("message", True), ("summary", False)):  # summaries that no recovered answer holds
        documents = pl.DataFrame({"document_id": ["doc:1"], "kind": [kind], "is_durable": [True]})
        (idle,) = flags_of_parts(searching, (), recovered, documents, nothing.decisions)
        assert ("summary_documents" in idle) == is_named


def test_an_embedder_that_only_idle_parts_would_ask_is_named(nothing: Outcome) -> None:
    for compares, filled, acted, is_named in (
        (False, ("recovery",), ["recovery"], False),
        (False, ("recovery",), [], True),
        (False, (), [], False),
        (True, ("recovery",), [], False),
    ):

        class Words(Filled):
            told, slots = Contract(compares_vectors=compares), filled

        words = replace(system(), ranking=Words(ranking().source))
        flags = flags_of_parts(words, acted, ANSWERS, nothing.documents, nothing.decisions)
        assert any("embedder (" in flag for flag in flags) == is_named


def test_a_ranking_says_whether_it_compares_vectors() -> None:
    assert not contract_of(Ranking(Lexical())).compares_vectors
    assert contract_of(Ranking(Lexical(), {"diversity": Diversity()})).compares_vectors
    assert contract_of(Ranking(Dense())).compares_vectors


def test_where_sessions_are_taken_in_it_is_told_why_nothing_was_folded_and_nothing_of_the_replay() -> None:
    kept = {"budget_tokens": 4000, "leaf_chunk_tokens": 1000}
    for compaction, expected in (
        (lossless(**kept), []),
        (NoCompaction(), ["survival: compaction=none is chosen"]),
        (
            lossless(**kept, fresh_tail_count=99),
            ["fresh_tail_count=99 keeps all 8", "of the 3,000 tokens that trigger"],
        ),
    ):
        own = replace(system(), compaction=compaction)
        measures = {"survival": Survival((500,), 1)}
        found = experiments.outcome(tiny([transcript()]), own, measures, replay=Bulk())
        assert found.sections["survival"]
        assert all(any(one in flag for flag in found.flags) for one in expected), found.flags
        assert expected or not [flag for flag in found.flags if "compacted" in flag or "folded" in flag]


@pytest.mark.parametrize(("whole", "pooled"), [(len(LINES) - 1, 3), (len(LINES), 0)])
def test_a_run_tells_how_many_queries_were_answered_from_a_pool(whole: int, pooled: int) -> None:
    dataset = tiny([transcript()], queries(), [("q0", "talk:0")])
    of_pools = replace(ranking(), source=Pool(Hybrid(), whole_documents=whole))
    flags = experiments.outcome(dataset, system(ranking=of_pools)).flags
    told = [flag for flag in flags if "ranking.source.whole_documents" in flag]
    assert [flag.split(" documents")[0] for flag in told] == [f"{pooled} queries saw more than {whole}"][:pooled]


def test_messages_without_a_time_are_told_with_what_has_nothing_to_work_on() -> None:
    talk = transcript(LINES)
    untimed = replace(talk, messages=tuple(replace(message, created_at=None) for message in talk.messages))
    (told,) = flags_of_haystacks(tiny([untimed], queries(), []))
    assert told == "no message says when it was said: decay and recency have nothing to work on"
    assert flags_of_haystacks(tiny([talk, replace(untimed, conversation_id="other")], queries(), [])) == ()


def test_recorded_tokens_are_asked_of_sessions_that_record_none() -> None:
    plain, talk = system(), transcript(LINES)
    asking = replace(plain, token_estimator=Recorded())
    (note,) = flags_of_usage(asking, tiny((talk,), [], []))
    assert note.startswith("token_estimator=recorded: no session records")
    assert list(flags_of_usage(plain, tiny((talk,), [], []))) == []
    answer = replace(talk.messages[1], role="assistant", envelope={"native": {"usage": {"output_tokens": 7}}})
    recorded = replace(talk, messages=(talk.messages[0], answer, *talk.messages[2:]))
    assert list(flags_of_usage(asking, tiny((recorded,), [], []))) == []
