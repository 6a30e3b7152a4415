"""A measure of each subject is asked alike: what it reads, its values, its file, its section and its notes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from eval.measures.measure import Measure, MemoryReading, RunReading, SystemReading
from eval.replay.per_turn import turns
from lcm.memory.memory import Memory
from tests.eval.experiment.test_experiment import dataset, system
from tests.eval.measures.test_survival import folding
from tests.support.experiments import outcome


@dataclass(frozen=True, slots=True)
class Ranked(Measure):
    """How many documents an arm ranked; which tells no note where it ranked some."""

    subject = "rankings"
    of_arms = True

    def value_names(self) -> list[str]:
        return ["ranked"]

    def rows(self, reading: RunReading) -> pl.DataFrame:
        counts = reading.run.group_by("query_id", maintain_order=True).len("value")
        return counts.select("query_id", pl.lit("ranked").alias("measure"), pl.col("value").cast(pl.Float64))

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> Sequence[str]:
        return [f"{len(reading.documents)} documents, arms {', '.join(rows['arm'].unique().sort())}"]


@dataclass(frozen=True, slots=True)
class Answered(Measure):
    """How many documents were answered, and the first of them in words."""

    subject = "answers"

    def value_names(self) -> list[str]:
        return ["answered_with"]

    def rows(self, reading: MemoryReading) -> pl.DataFrame:
        said = [one.text for one in reading.queries]
        return pl.DataFrame(
            {
                "query_id": [one.query_id for one in reading.queries],
                "measure": "answered_with",
                "value": [float(reading.ranked.filter(query_id=one.query_id).height) for one in reading.queries],
                "asked": said,
            }
        )


@dataclass(frozen=True, slots=True)
class Sized(Measure):
    """How many messages each conversation has."""

    subject = "memory"

    def rows(self, reading: MemoryReading) -> pl.DataFrame:
        store = reading.memory.store
        rows = [
            (reading.arm, key, "size", float(len(store.message_frame(key))))
            for key in store.conversations()["conversation_id"]
        ]
        return pl.DataFrame(rows, schema=["arm", "conversation_id", "measure", "value"], orient="row")


@dataclass(frozen=True, slots=True)
class Named(Measure):
    """What the embedder is called; nothing of it is averaged."""

    subject = "system"
    asked: list[str] = field(default_factory=list)

    def rows(self, reading: SystemReading) -> pl.DataFrame:
        self.asked.append(reading.system.embedder.name)
        reading.incidents["named"] += 1
        return pl.DataFrame({"name": self.asked})

    def section(self, rows: pl.DataFrame, means: object) -> dict[str, object] | None:
        return {"name": rows["name"].item()}


def test_a_measure_of_each_subject_gives_values_a_file_a_section_and_notes() -> None:
    named = Named()
    measures = {"ranked": Ranked(), "answered": Answered(), "sized": Sized(), "named": named}
    found = outcome(dataset(), system(), measures, {"same": system().ranking})
    values = found.values.pivot(["arm", "measure"], index="query_id", values="value", maintain_order=True)
    assert set(values["query_id"]) == {query.query_id for query in dataset().queries}
    assert values.columns[1:] == ['{"system","ranked"}', '{"system","answered_with"}', '{"same","ranked"}']
    assert values['{"system","ranked"}'].equals(values['{"same","ranked"}'], null_equal=False)
    assert list(found.frames) == ["answered", "sized", "named"]
    assert found.frames["answered"].columns == ["arm", "query_id", "asked"]
    assert set(found.frames["answered"]["asked"]) == {query.text for query in dataset().queries}
    messages = [len(transcript.messages) for transcript in dataset().transcripts]
    assert found.frames["sized"]["value"].to_list() == messages
    assert list(found.sections) == ["sized", "named"]
    assert found.sections["sized"]["system"]["size"]["value"] == sum(messages) / len(messages)
    assert found.sections["named"] == {"name": system().embedder.name}
    assert (named.asked, found.incidents["named"]) == ([system().embedder.name], 1)
    assert f"{len(found.documents)} documents, arms same, system" in found.flags


def test_what_says_nothing_of_itself_has_no_effect_but_its_rows() -> None:
    one = Sized()
    assert (one.value_names(), one.direction("size"), one.depends_on(system())) == ((), "higher", None)
    assert not one.is_measured(system(), dataset())
    assert one.timed_queries() == 0


def test_a_measure_without_rows_cannot_be_made() -> None:
    class Nothing(Measure):
        subject = "memory"

    with pytest.raises(TypeError, match="abstract method"):
        Nothing()  # type: ignore[abstract]


def test_the_measure_of_the_page_on_extending_measures(root: Path) -> None:
    page = (root / "docs" / "extending.md").read_text(encoding="utf-8")
    (block,) = [one for one in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "class Refolded" in one]
    names: dict[str, Any] = {"dataclass": dataclass, "pl": pl, "Measure": Measure, "MemoryReading": MemoryReading}
    exec(block, names)
    with Memory.open(folding(), "") as memory:
        for turn in turns(dataset().transcripts[0].messages):
            memory.take_turn("talk", turn)
        memory.compact(["talk"], is_forced=True)
        reading = MemoryReading(memory, [], pl.DataFrame(), {}, dataset())
        shares = [names["Refolded"](least=least).rows(reading).rows() for least in (0, 9)]
    assert shares == [[("system", "talk", "refolded", 1.0)], [("system", "talk", "refolded", 0.0)]]
