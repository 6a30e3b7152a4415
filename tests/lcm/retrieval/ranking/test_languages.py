"""`system=unified` over one talk in six languages, `docs/examples/languages`: most of what is asked for is found."""

import polars as pl
import pytest

from pipelines.config import building, composition
from pipelines.steps.point import experiment_of
from tests.conftest import ROOT

LANGUAGES = ROOT / "docs" / "examples" / "languages"
LEAST = {"en": 9, "de": 7, "es": 9, "zh": 10, "ja": 6, "ru": 8}
"""Of 12 questions of each language, how many are answered in the first five documents without any model."""


@pytest.fixture(scope="module")
def found() -> pl.DataFrame:
    """Rows category, measure, value: of every question."""
    config = composition.composed(
        [
            "dataset=own",
            f"dataset.paths=['{LANGUAGES / 'sessions'}']",
            f"dataset.questions='{LANGUAGES / 'questions.jsonl'}'",
            *("dataset.workspace=file", "system=unified", "embedder=hashing"),
            *("arms=none", "tracking=none", "measures=retrieval", "cache=false"),
        ]
    )
    language = {query.query_id: query.category for query in building.build(config, "dataset").load().queries}
    values = experiment_of(config).run(lambda *_: None).values
    return values.with_columns(category=pl.col("query_id").replace_strict(language))


def test_planted_facts_are_found_in_every_language(found: pl.DataFrame) -> None:
    of_language = found.filter(measure="recall@5").group_by("category").agg(pl.len(), pl.col("value").sum())
    recalled = {name: answered for name, asked, answered in of_language.iter_rows() if asked == 12}
    assert recalled.keys() == LEAST.keys()
    assert {name: answered for name, answered in recalled.items() if answered < LEAST[name]} == {}
