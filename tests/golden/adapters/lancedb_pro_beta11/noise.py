"""What memory-lancedb-pro 1.1.0-beta.11 passes over: noise and envelopes."""

from dataclasses import replace
from typing import Any

import polars as pl

from lcm.retrieval.ranking.stages.selection import NoiseFilter
from lcm.writing.extraction.llm import strip_envelope as stripped
from tests.golden.components import component, documents_batch
from tests.lcm.retrieval.decay.frames import rows


def noise_filter(case: dict[str, Any]) -> bool:
    stage: NoiseFilter = component("system=lancedb_pro_beta11", "ranking").stages["noise_filter"]
    stage = replace(stage, **{key.removeprefix("filter_"): value for key, value in case["options"].items()})
    said = pl.DataFrame({"document_id": ["d"], "text": [case["text"]]})
    return stage(rows(document_id=["d"], score=[1.0]), replace(documents_batch([]), documents=said)).is_empty()


def strip_envelope(case: dict[str, Any]) -> str:
    return stripped(case["text"], is_careful=True)
