"""Why MLflow did not take something, on one line."""

import sqlite3
from pathlib import Path

from mlflow.exceptions import MlflowException
from sqlalchemy.exc import OperationalError

from eval.tracking.place import reason_of


def refused_by_a_read_only(database: Path) -> sqlite3.Error:
    sqlite3.connect(database).close()
    opened = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        opened.execute("CREATE TABLE runs (x)")
    except sqlite3.Error as error:
        return error
    finally:
        opened.close()
    raise AssertionError("it was written")


def test_a_database_that_cannot_be_written_is_told_with_its_path_and_a_remedy_however_it_is_wrapped(
    tmp_path: Path,
) -> None:
    database = tmp_path / "mlflow.db"
    wrapped = MlflowException("(sqlite3.OperationalError) [SQL: INSERT INTO experiments ...]")
    wrapped.__cause__ = OperationalError("INSERT", {}, refused_by_a_read_only(database))
    assert reason_of(wrapped, database) == (
        f"{database}: it cannot be written (attempt to write a readonly database); "
        "name a file that can, in a folder that can"
    )


def test_another_refusal_is_told_as_mlflow_has_it() -> None:
    assert reason_of(MlflowException("No\n such  experiment")) == "No such experiment"
