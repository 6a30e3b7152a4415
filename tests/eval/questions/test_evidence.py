"""What evidence names: ids, lines, quotations, and what is refused."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eval.dataset.own import Own
from eval.questions.evidence import LocatedQuestion, Unresolved, locate
from eval.questions.files import QuestionsFile
from eval.questions.question import Evidence, Question
from eval.questions.quotation import holding, searched_texts
from eval.questions.sessions import Sessions
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from lcm.transcript.reading import read_transcripts
from tests.conftest import ROOT

OWN = ROOT / "docs" / "examples" / "own"
CLAUDE = "c857d09d-b23e-4822-8360-0bc06ad8d58f"
REFUSED = f"{CLAUDE}:711e14d8-803f-43e1-8b96-919d6b3a289c"


@pytest.fixture(scope="module")
def sessions() -> Sessions:
    return Own([str(OWN / "sessions")]).sessions()


def talk(folder: Path, *said: str | dict[str, object]) -> Sessions:
    """What the folder holds, with these messages in a file `a.jsonl` of it."""
    lines = (json.dumps({"role": "user"} | (one if isinstance(one, dict) else {"content": one})) for one in said)
    if said:
        (folder / "a.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return Own([str(folder)]).sessions()


def located(
    sessions: Sessions, *evidence: Evidence, store: Path | None = None, **fields: object
) -> tuple[list[LocatedQuestion], list[Unresolved]]:
    question = Question("q", "Where?", evidence, line=7, **fields)  # type: ignore[arg-type]
    return locate(QuestionsFile(Path("q.jsonl"), "", (question,), (), ()), sessions, store=store)


def ids(sessions: Sessions, *evidence: Evidence, **fields: object) -> list[str]:
    found = located(sessions, *evidence, **fields)
    assert [str(one.problem) for one in found[1]] == []
    return found[0][0].message_ids


def refusal(sessions: Sessions, *evidence: Evidence, **fields: object) -> str:
    found = located(sessions, *evidence, **fields)
    assert found[0] == []
    return str(found[1][0].problem)


@pytest.mark.parametrize(
    "evidence",
    [
        Evidence(REFUSED),
        Evidence(REFUSED.partition(":")[2]),
        Evidence(message_ids=(REFUSED,)),
        Evidence("refuse the whole file and mail Birgit"),
        Evidence("REFUSE  the whole file\nand mail Birgit."),
        Evidence("refuse the hole file and mail Birgitt"),
        Evidence(quote="refuse the whole file", message_ids=(REFUSED,)),
        Evidence(f"sessions/claude/{CLAUDE}.jsonl:14"),
        Evidence(f"{CLAUDE}.jsonl:14"),
    ],
    ids=lambda evidence: evidence.text or evidence.quote or "object",
)
def test_a_message_is_named_in_many_ways(sessions: Sessions, evidence: Evidence) -> None:
    lines = (OWN / "sessions" / "claude" / f"{CLAUDE}.jsonl").read_text().splitlines()
    assert json.loads(lines[13])["uuid"] == REFUSED.partition(":")[2]
    assert ids(sessions, evidence) == [REFUSED]


def test_a_number_is_that_of_the_store(sessions: Sessions, tmp_path: Path) -> None:
    assert "msg#3 is a number in a store" in refusal(sessions, Evidence("msg#3"))
    path = tmp_path / "memory.db"
    with Store(path) as store:
        for transcript in reversed(sessions.transcripts):
            store.ingest(transcript, Utf16Units())
    first = sessions.transcripts[-1].messages
    assert ids(sessions, Evidence("msg#3"), store=path) == [first[2].message_id]
    assert "there is no message msg#999" in refusal(sessions, Evidence("msg#999"), store=path)
    assert "stands in no message" in refusal(sessions, Evidence("msg#12345678901234567890"), store=path)


def test_the_line_of_an_unknown_file_is_refused_with_the_nearest_files(sessions: Sessions) -> None:
    told = refusal(sessions, Evidence(f"claud/{CLAUDE}.jsonl:14"))
    assert f"is called 'claud/{CLAUDE}.jsonl'; did you mean 'claude/{CLAUDE}.jsonl'" in told
    assert "is called 'x.jsonl'; correct it" in refusal(sessions, Evidence("x.jsonl:14"))
    assert "no message has the id" in refusal(sessions, Evidence(f"{CLAUDE}:999"))


def test_calls_arguments_and_results_are_searched(sessions: Sessions) -> None:
    for quote, role in {
        'select = ["E", "F", "DTZ"]': "assistant",  # within the JSON of an argument
        "ExecStart=/opt/tidepool/current/.venv/bin/uvicorn": "assistant",
        "Requests/sec:   2950.81": "tool",
        '"height_m":0.31': "tool",
        "sqlite3 tide.db 'PRAGMA journal_mode=WAL;'": "assistant",
    }.items():
        (question,) = located(sessions, Evidence(quote))[0]
        (place,) = question.located[0].places
        assert (question.located[0].how, place.message.role) == ("quotation", role)


def test_likeness_keeps_every_number_and_says_how_like(sessions: Sessions) -> None:
    (question,) = located(sessions, Evidence("A token bucket pro key: the ferry company holds 600"))[0]
    assert question.located[0].how.startswith("like, 9")
    for unlike in (
        "A token bucket per key: the ferry company's holds 660",
        "the captain's dog is called Bosun and barks",
    ):
        assert "stands in no message" in refusal(sessions, Evidence(unlike))


def test_likeness_swaps_no_number_and_no_negation(tmp_path: Path) -> None:
    server = "The staging server is {} working again since dawn."
    for said, quoted in (
        ("We paid 40 dollars for the lamp, 30 cents for the bulb.", "We paid 30 dollars for the lamp"),
        ("The meeting grew from 20 to 10 people, they say.", "The meeting grew from 10 to 20 people, they say."),
        (server.format("not"), server.format("now")),
        (server.format("not"), server.replace("{} ", "")),
        (server.format("now"), server.replace("is {}", "isn’t")),
        ("I never recommended blue paint for the kitchen wall.", "I ever recommended blue paint for the kitchen wall."),
    ):
        sessions = talk(tmp_path, said)
        (unresolved,) = located(sessions, Evidence(quoted))[1]
        assert "stands in no message" in str(unresolved.problem)
        assert unresolved.nearest[0].message.content == said
        assert ids(sessions, Evidence(said.replace("a", "á", 1))) == ["a:1"]


def test_a_quotation_like_no_message_is_refused_with_those_that_share_its_words(tmp_path: Path) -> None:
    """In the order of how many of its content words they hold; a message that holds none is not near."""
    said = (
        "Where do the coffee filters lie?",
        "In the second drawer.",
        "Is the machine old?",
        "Every eight weeks, with citric acid; Petra does it, when she is at the machine",
    )
    sessions = talk(tmp_path, *said)
    (unresolved,) = located(sessions, Evidence("Petra descales the machine each week"))[1]
    assert "stands in no message" in str(unresolved.problem)
    assert [place.message.content for place in unresolved.nearest] == [said[3], said[2]]
    assert located(sessions, Evidence("zebras graze under moonlight"))[1][0].nearest == ()


def test_what_stands_in_several_messages_is_refused_with_the_nearest_unless_these_are_copies(
    sessions: Sessions, tmp_path: Path
) -> None:
    (unresolved,) = located(sessions, Evidence("1,200"))[1]
    assert str(unresolved.problem).startswith("q.jsonl:7: evidence: '1,200' stands in 3 messages; quote more of one")
    assert len(unresolved.nearest) == 3
    (unresolved,) = located(sessions, Evidence("Keep forty of them, and tell me by post"))[1]
    assert "Keep thirty" in unresolved.nearest[0].message.content
    assert len(ids(sessions, Evidence("wrk -t2 -c40 -d10s"))) == 2  # calls that say the same
    twice = talk(tmp_path, "We sail at dawn.", "We sail at dawn.")
    assert ids(twice, Evidence("We sail at dawn")) == ["a:1", "a:2"]
    assert len({one.content_digest() for one in holding(["dawn"], twice.transcripts)["dawn"]}) == 1
    thrice = talk(tmp_path, "We sail at dawn.", "We sail at dawn!", "We sail at dawn.")
    assert "stands in 3 messages" in refusal(thrice, Evidence("We sail at dawn"))


def test_evidence_stands_when_it_is_asked_for(tmp_path: Path) -> None:
    """Undated messages and those dated before their forerunners are said with these, as a replay has them."""
    said = [
        ("We sail at dawn.", "2026-03-01T10:00:00Z"),
        ("At noon we land.", None),
        ("We anchor.", "2026-02-01T10:00:00Z"),
        ("We sail at dawn.", "2026-03-09T10:00:00Z"),
    ]
    sessions = talk(tmp_path, *({"content": words, "timestamp": at} for words, at in said))
    for day, words, found in (
        (5, "We sail at dawn.", ["a:1"]),
        (9, "We sail at dawn.", ["a:1", "a:4"]),
        (1, "At noon we land", ["a:2"]),
        (1, "We anchor.", ["a:3"]),
    ):
        assert ids(sessions, Evidence(words), asked_at=datetime(2026, 3, day, 12, tzinfo=UTC)) == found
        early = refusal(sessions, Evidence(words), asked_at=datetime(2026, 2, 20, tzinfo=UTC))
        assert "was said at 2026-03-01T10:00:00" in early
    both = Evidence(message_ids=("a:1", "a:4"))
    assert "a:4 was said at" in refusal(sessions, both, asked_at=datetime(2026, 3, 5, tzinfo=UTC))


def test_what_a_model_thought_is_no_evidence(tmp_path: Path) -> None:
    blocks = [{"type": "thinking", "thinking": "dawn"}, {"type": "text", "text": "dusk"}]
    record = {"type": "assistant", "uuid": "u", "message": {"role": "assistant", "content": blocks}}
    (tmp_path / "s.jsonl").write_text(f"{json.dumps(record)}\n")
    (transcript,) = read_transcripts(tmp_path / "s.jsonl")
    assert searched_texts(transcript.messages[0]) == ["dusk"]
    thoughtful = Own([str(tmp_path / "s.jsonl")]).sessions()
    told = refusal(thoughtful, Evidence("dawn"))
    assert "'dawn' stands only in what a model thought, which is no evidence" in told
    assert "'daw' stands in no message" in refusal(thoughtful, Evidence("daw"))
    assert ids(thoughtful, Evidence("dusk")) == ["s:u"]


def test_a_question_is_asked_where_its_evidence_lies() -> None:
    own = Own([str(OWN / "sessions")], workspace="folder")
    sessions = own.sessions()
    assert [file.workspace_id for file in sessions.files] == ["claude", "codex", "pi"]
    (question,) = located(sessions, Evidence("Set to max-age=300"))[0]
    assert question.workspace_id == "codex"
    both = (Evidence("Set to max-age=300"), Evidence("Deploy tidepool"))
    assert "its evidence lies in 2 workspaces ('codex', 'pi')" in refusal(sessions, *both)
    assert "must name its workspace" in refusal(sessions)
    assert located(sessions, workspace="pi")[0][0].workspace_id == "pi"
    assert "stands in no message" in refusal(sessions, Evidence("Deploy tidepool"), workspace="codex")
    assert "there is no workspace 'emacs'" in refusal(sessions, workspace="emacs")


def test_a_line_in_a_document_is_that_of_the_message_that_stands_there(tmp_path: Path) -> None:
    told = {
        "messages": [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "There."}],
        "note": {"a": 1},
    }
    (tmp_path / "talk.json").write_text(json.dumps(told, indent=1))
    sessions = talk(tmp_path)
    lines = (tmp_path / "talk.json").read_text().splitlines()
    asked, answered, noted = (
        next(n for n, line in enumerate(lines, 1) if text in line) for text in ("Where", "There", '"a"')
    )
    assert ids(sessions, Evidence(f"talk.json:{asked}")) == ["talk:1"]
    assert ids(sessions, Evidence(f"talk.json:{answered}")) == ["talk:2"]
    for line in (noted, 0, 1, len(lines), len(lines) + 1, 9999):
        told_of = refusal(sessions, Evidence(f"talk.json:{line}"))
        assert f"'talk.json:{line}' holds no message" in told_of
        assert (f"for the file has {len(lines)} lines" in told_of) == (line > len(lines))
    (tmp_path / "talk.json").write_text(json.dumps({"messages": told["messages"]}, indent=1))
    end = (tmp_path / "talk.json").read_text().count("\n") + 1
    assert ids(talk(tmp_path), Evidence(f"talk.json:{end}")) == ["talk:2"]
    (tmp_path / "talk.json").write_text(json.dumps(told))
    assert "'talk.json:1' holds 2 messages" in refusal(talk(tmp_path), Evidence("talk.json:1"))


def test_a_copy_is_named_by_its_id_its_line_and_its_words_as_the_original(tmp_path: Path) -> None:
    session = OWN / "sessions" / "claude" / f"{CLAUDE}.jsonl"
    resumed = tmp_path / "dddddddd-b23e-4822-8360-0bc06ad8d58f.jsonl"
    shutil.copy(session, tmp_path)
    resumed.write_text(session.read_text().replace(CLAUDE, resumed.stem))
    sessions = Own([str(tmp_path)]).sessions()
    number = next(
        at for at, line in enumerate(session.read_text().splitlines(), 1) if REFUSED.partition(":")[2] in line
    )
    for name in (REFUSED, REFUSED.partition(":")[2], f"{resumed.stem}:{REFUSED.partition(':')[2]}"):
        assert ids(sessions, Evidence(name)) == [REFUSED]
    assert ids(sessions, Evidence(f"{resumed.name}:{number}")) == [REFUSED]
    every = Own([str(tmp_path)], copies="all").sessions()
    assert sum(len(one.messages) for one in every.transcripts) == 2 * sum(
        len(one.messages) for one in sessions.transcripts
    )
    assert refusal(every, Evidence(REFUSED.partition(":")[2]))
