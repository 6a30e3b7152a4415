"""A language model makes one record of two.

Source: memory-lancedb-pro, smart-extractor; the prompt is ours.
"""

import logging
from dataclasses import dataclass
from importlib import resources

from lcm.javascript import trim
from lcm.language_model.replies import asked
from lcm.protocols.models import LanguageModel
from lcm.protocols.writing import Merged
from lcm.records.document import Candidate, Document
from lcm.writing.new_document import shown_words

_SYSTEM = resources.files("lcm.writing.deduplication").joinpath("merge_prompt.txt").read_text("utf-8")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelMerge:
    """The model's record; None where it gives none."""

    language_model: LanguageModel

    def merge(self, document: Document, candidate: Candidate) -> Merged | None:
        shown = {"category": candidate.category, "existing": shown_words(document), "new": shown_words(candidate)}
        otherwise = f"not merged into {document.document_id}"
        found, reply, _ = asked(self.language_model, _SYSTEM, shown, "abstract", otherwise=otherwise)
        if found is None:
            return None
        text, overview, content = (_text(found.get(key)) for key in ("abstract", "overview", "content"))
        if not text:
            _log.warning("%s: no abstract in the reply %.200r", otherwise, reply)
            return None
        return Merged(text, overview, content)


def _text(value: object) -> str:
    return trim(value) if isinstance(value, str) else ""
