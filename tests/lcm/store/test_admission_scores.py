"""What admission scored, found by message, against a reading of every decision."""

import random
import sqlite3
from datetime import UTC, datetime

import pytest

from lcm.encoding import to_json
from lcm.store.doctor import rebuild_scores, scan
from lcm.store.documents import admission_scores
from lcm.store.sqlite import connect
from lcm.store.store import MIGRATIONS, migrate

AT = datetime(2026, 1, 1, tzinfo=UTC)
IDS = [f"m{number}" for number in range(20)]
BEFORE_SCORES = 6


def of_all_decisions(connection: sqlite3.Connection, message_ids: list[str]) -> dict[str, float]:
    """The oracle: no table of scores, every decision read."""
    rows = connection.execute(
        """
        SELECT s.value, max(d.score) FROM decisions d, json_each(d.candidate, '$.source_message_ids') s
        WHERE d.score IS NOT NULL AND s.value IN (SELECT value FROM json_each(?)) GROUP BY s.value
        """,
        (to_json(message_ids),),
    )
    return dict(rows.fetchall())


def out_of_step(connection: sqlite3.Connection) -> list[str]:
    return [finding for check in scan(connection) if check.name == "admission_scores" for finding in check.findings]


def decide(connection: sqlite3.Connection, rng: random.Random, number: int) -> None:
    for _ in range(number):
        sources = rng.choices(IDS, k=rng.randint(1, 4))  # one may stand twice
        score = rng.choice([None, 0.0, rng.random()])
        connection.execute(
            """
            INSERT INTO decisions (conversation_id, decided_at, action, reason, category, scope, score, features,
                                   audit, candidate)
            VALUES (?, '', 'create', '', 'other', 'global', ?, '{}', '{}', ?)
            """,
            (rng.randint(1, 2), score, to_json({"source_message_ids": sources})),
        )


def opened(versions: int = len(MIGRATIONS)) -> sqlite3.Connection:
    connection = connect(":memory:")
    migrate(connection, AT, MIGRATIONS[:versions])
    connection.execute("INSERT INTO conversations (session_id, session_key) VALUES ('s', 'a'), ('s', 'b')")
    return connection


@pytest.mark.parametrize("seed", range(5))
def test_scores_by_message_are_those_of_all_decisions(seed: int) -> None:
    rng, connection = random.Random(seed), opened(BEFORE_SCORES)
    decide(connection, rng, 25)
    migrate(connection, AT)

    def agree() -> dict[str, float]:
        asked = rng.sample(IDS, 12)
        found = admission_scores(connection, asked)
        assert found == of_all_decisions(connection, asked)
        assert out_of_step(connection) == []
        return found

    assert agree()
    decide(connection, rng, 25)
    assert agree()
    for change in (
        "UPDATE decisions SET score = CASE WHEN score IS NULL THEN .5 END WHERE decision_id % 3 = 0",
        "DELETE FROM decisions WHERE decision_id % 4 = 0",
        "DELETE FROM conversations WHERE conversation_id = 1",
        "DELETE FROM conversations",
    ):
        connection.execute(change)
        found = agree()
    assert found == {}
    assert connection.execute("SELECT count(*) FROM admission_scores").fetchone() == (0,)
    connection.close()


@pytest.mark.parametrize(
    "spoiled",
    [
        "DELETE FROM admission_scores WHERE decision_id = 2",
        "UPDATE admission_scores SET score = score + 1 WHERE decision_id = 2",
        "INSERT INTO admission_scores VALUES ('m99', 2, .5)",
    ],
)
def test_scores_that_are_out_of_step_are_told_and_made_anew(spoiled: str) -> None:
    connection = opened()
    decide(connection, random.Random(0), 3)
    connection.execute("UPDATE decisions SET score = .25")
    before = admission_scores(connection, IDS)
    connection.execute(spoiled)
    assert out_of_step(connection) == ["decision 2: its messages have another score"]
    rebuild_scores(connection)
    assert out_of_step(connection) == []
    assert admission_scores(connection, IDS) == before
    connection.close()
