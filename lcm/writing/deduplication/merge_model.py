"""A language model makes one record of two.

Source: memory-lancedb-pro, smart-extractor; the prompt is ours.
"""

import json
import logging
from dataclasses import dataclass
from importlib import resources

from lcm.encoding import well_formed
from lcm.errors import LcmError, UnrecordedReplyError
from lcm.javascript import trim
from lcm.language_model.json_reply import names, object_in
from lcm.protocols.models import LanguageModel
from lcm.protocols.writing import Merged
from lcm.records.document import Candidate, Document

_SYSTEM = resources.files("lcm.writing.deduplication").joinpath("merge_prompt.txt").read_text("utf-8")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelMerge:
    """The model's record; None where it gives none."""

    language_model: LanguageModel

    def merge(self, document: Document, candidate: Candidate) -> Merged | None:
        try:
            reply = self.language_model.reply(_SYSTEM, _prompt(document, candidate), names("abstract"))
        except UnrecordedReplyError:
            raise
        except LcmError as error:
            _log.warning("not merged into %s: %s", document.document_id, error)
            return None
        found = object_in(reply, "abstract") or {}
        text, overview, content = (_text(found.get(key)) for key in ("abstract", "overview", "content"))
        if not text:
            _log.warning("not merged into %s: no abstract in the reply %.200r", document.document_id, reply)
            return None
        return Merged(text, overview, content)


def _text(value: object) -> str:
    return trim(value) if isinstance(value, str) else ""


def _prompt(document: Document, candidate: Candidate) -> str:
    shown = {
        "category": candidate.category,
        "existing": _record(document),
        "new": _record(candidate),
    }
    return json.dumps(shown, ensure_ascii=False, indent=1)


def _record(record: Document | Candidate) -> dict[str, str]:
    return {
        "abstract": well_formed(record.text),
        "overview": well_formed(record.overview),
        "content": well_formed(record.content),
    }
