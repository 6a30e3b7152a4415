"""The dataset cards: what docs/datasets states in numbers is what the loaders give."""

import os
import re
from collections import Counter

from eval.dataset.beam import Beam
from eval.dataset.dataset import Dataset
from eval.dataset.dialogsum import Dialogsum
from eval.dataset.locomo import Locomo
from eval.dataset.longmemeval import LongMemEval
from eval.dataset.personamem import Personamem
from eval.dataset.qmsum import Qmsum
from eval.measures.retrieval import judged_queries, session_of_message, workspace_of_query
from tests.conftest import ROOT

CARDS = ROOT / "docs" / "datasets"


def lacking(name: str, *told: str) -> list[str]:
    """What a card does not say, whatever its lines' ends; no number is found within a longer one."""
    text = " ".join((CARDS / f"{name}.md").read_text(encoding="utf-8").split())
    return [one for one in told if not re.search(rf"(?<![\w,]){re.escape(one)}(?!\w)", text)]


def judged(dataset: Dataset) -> Counter[str | None]:
    """Judged queries by category."""
    found = set(judged_queries(dataset)["query_id"])
    return Counter(query.category for query in dataset.queries if query.query_id in found)


def asked(dataset: Dataset) -> Counter[str | None]:
    return Counter(query.category for query in dataset.queries)


def sizes(dataset: Dataset) -> tuple[int, int, int, int]:
    """Count workspaces, messages, sessions and queries."""
    sessions = {(t.workspace_id, m.session_id) for t in dataset.transcripts for m in t.messages}
    return (
        len(dataset.workspaces),
        sum(len(t.messages) for t in dataset.transcripts),
        len(sessions),
        len(dataset.queries),
    )


def listed(*numbers: int) -> str:
    return ", ".join(f"{one:,}" for one in numbers)


def ends(dataset: Dataset) -> str:
    """What follows the last hyphen of each workspace."""
    return ", ".join(one.rpartition("-")[2] for one in dataset.workspaces)


def test_every_card_is_read_here() -> None:
    names = ["beam", "dialogsum", "lmeb", "locomo", "longmemeval", "personamem", "qmsum"]
    assert sorted(card.stem for card in CARDS.iterdir() if card.stem != "index") == names


if os.environ.get("LCM_DATASETS_DIR"):

    def test_beam() -> None:
        developed = {size: Beam(size=size).load() for size in ("100K", "500K", "1M")}
        told, marked = [], []
        for size, dataset in developed.items():
            found, single_shot = judged(dataset), dataset.groups["single-shot"]
            conversations, messages, sessions, questions = sizes(dataset)
            told.append(
                f"| {size} | {conversations}: {ends(dataset)} | {messages:,} | {sessions} | {questions} "
                f"| {found.total()} | {len(dataset.qrels):,} | {sum(found[one] for one in single_shot)} |"
            )
            (note,) = dataset.notes
            assert note.endswith(" messages end with a mark of the generation plan, which is cut off")
            marked.append(int(note.split()[0]))
        for category in asked(dataset):
            is_single = "yes" if category in single_shot else "no"
            counts = (listed(*(of(one)[category] for one in developed.values())) for of in (asked, judged))
            questions_of, judged_of = (one.replace("0, 0, 0", "none: nothing is relevant") for one in counts)
            told.append(f"| {category} | {questions_of} | {judged_of} | {is_single} |")
        assert lacking("beam", *told, f"(`->-> 1,4`): {listed(*marked)} of them") == []

    def test_dialogsum() -> None:
        dataset = Dialogsum().load()
        lengths = [len(t.messages) for t in dataset.transcripts]
        dialogues, turns, sessions, _ = sizes(dataset)
        of_words = sum(len(m.content.split()) for t in dataset.transcripts for m in t.messages)
        people = Counter(len({m.author for m in t.messages}) for t in dataset.transcripts)
        told = [f"| {several} | {count} |" for several, count in people.items()]
        part = (
            f"{dialogues} dialogues, {turns:,} turns ({min(lengths)} to {max(lengths)} a dialogue), {of_words:,} words"
        )
        assert lacking("dialogsum", part, f"{len(dataset.references)}, one for each whole dialogue", *told) == []
        assert sessions == dialogues

    def test_locomo() -> None:
        dataset = Locomo().load()
        conversations, turns, sessions, questions = sizes(dataset)
        found, repaired = judged(dataset), judged(Locomo(evidence="repaired").load())
        names = ("multi_hop", "temporal", "open_domain", "single_hop", "adversarial")
        told = [f"| {name} | {n} | {asked(dataset)[name]} | {found[name]} |" for n, name in enumerate(names, start=1)]
        told += [
            f"conv-{ends(dataset)}: {conversations} conversations",
            f"{turns:,} turns, {sessions} sessions, {questions:,} questions",
            f"Judged questions: {found.total():,} of {questions:,} with `evidence=original`",
            f"the audit found wrong; {repaired.total():,} are judged then",
        ]
        assert lacking("locomo", *told) == []
        assert set(asked(dataset)) == set(names)

    def test_longmemeval() -> None:
        official, whole = (LongMemEval(protocol=protocol).load() for protocol in ("official", "all"))
        own = LongMemEval(protocol="all", added_questions=False).load()
        told = [f"the {len(whole.workspaces)} haystacks"]
        for transcript in whole.transcripts:
            part = whole.part({transcript.workspace_id})
            _, turns, sessions, _ = sizes(part)
            users = sum(m.role == "user" for m in transcript.messages)
            categories = asked(part)
            added = categories.pop("single-session-added", 0)
            ((category, _),) = categories.items()
            told.append(f"| {transcript.workspace_id} | {sessions} | {turns} | {users} | {category} | {added} |")
        through = []
        for protocol, dataset in (("user's", official), ("all", whole)):
            marks = dataset.qrels.join(workspace_of_query(dataset), on="query_id")
            by_haystack = dict(marks.group_by("workspace_id").len().iter_rows())
            told += [
                "{1}: {0[1]:,} in {0[2]} sessions".format(sizes(dataset), protocol),
                f"| {len(marks)} ({listed(*(by_haystack[one] for one in dataset.workspaces))})",
            ]
            assert judged(dataset).total() == len(dataset.queries)
            sessions_of = marks.join(session_of_message(dataset), on=["workspace_id", "message_id"])
            through.append(sessions_of.select("query_id", "session_id").n_unique())
        n_added = len(whole.queries) - len(own.queries)
        told += [
            f"with a marked turn of the user: {len(official.queries)}; the {n_added} added ones",
            f"| {len(whole.queries)}; {len(own.queries)} with `added_questions=false` |",
            f"| {through[0]}, through their turns |",
            f"| {through[1]} through their turns, and {len(whole.session_qrels)} by session only |",
        ]
        assert lacking("longmemeval", *told) == []

    def test_personamem() -> None:
        dataset = Personamem().load()
        contexts, messages, sessions, questions = sizes(dataset)
        roles = Counter(m.role for t in dataset.transcripts for m in t.messages)
        told = [
            f"{contexts} contexts, {sessions} sessions, {messages:,} messages",
            f"characters, {questions} questions",
            f"`[SYSTEM]` {roles['system']}, `[USER]` {roles['user']:,}, `[ASSISTANT]` {roles['assistant']:,} messages",
            *(f"| {category} | {count} |" for category, count in asked(dataset).items()),
        ]
        assert lacking("personamem", *told) == []
        assert len(dataset.options) == 4 * questions
        assert dataset.notes == ("14 wrong options say word for word what the correct one says",)

    def test_qmsum() -> None:
        dataset = Qmsum().load()
        meetings, turns, sessions, questions = sizes(dataset)
        kept = [m for t in Qmsum(marks="keep").load().transcripts for m in t.messages]
        of_words, speakers = sum(len(m.content.split()) for m in kept), len({m.author for m in kept})
        found = judged(dataset)
        told = [
            f"{meetings} meetings, {turns:,} turns, {of_words:,} words",
            f"{speakers} names of speakers, {questions} questions",
            f"{len(dataset.references)}: the answer to each question",
            f"Judgements: {len(dataset.qrels):,}",
            *(f"| {category} | {count} | {found[category]} |" for category, count in asked(dataset).items()),
        ]
        assert lacking("qmsum", *told) == []
        assert sessions == meetings
        assert dataset.notes == ("1253 turns have no words; 823 of 13443 judgements name one of them",)
