"""memory-lancedb-pro's vectors of extraction and temporal classification onto our components."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

from lcm.clock import EPOCH
from lcm.records.conversation import Message
from lcm.records.document import Candidate
from lcm.writing.extraction.llm import strip_envelope as stripped
from tests.golden.components import component, fields_of, instant, milliseconds
from tests.support.language_models import Replying


def temporal_classifier(case: dict[str, Any]) -> dict[str, Any]:
    annotation = component("annotation=rules", "annotation")
    candidate = Candidate(case["text"], source_message_ids=("m",))
    (rated,) = annotation.annotate([candidate], [instant(case["now_ms"])])
    return {"temporal_type": rated.temporal_type, "expiry_ms": rated.valid_until and milliseconds(rated.valid_until)}


def extract_candidates(case: dict[str, Any]) -> list[dict[str, str]]:
    extraction = component("extraction=llm", "extraction")
    # These vectors end before the cap on the number of memories.
    extraction = replace(extraction, language_model=Replying(json.dumps(case["reply"])), max_memories=100)
    talk = [Message(f"m{i}", "user", "words", session_id="s", created_at=EPOCH) for i in range(4)]
    found = extraction.extract(talk, incidents=Counter())
    return [fields_of(candidate, "category abstract=text overview content") for candidate in found]


def strip_envelope(case: dict[str, Any]) -> str:
    return stripped(case["text"])
