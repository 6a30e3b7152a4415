"""The columns that stages of evidence make, each named in the module of its stage."""

from lcm.retrieval.ranking.evidence import (
    form_evidence,
    further_vector_evidence,
    speaker_evidence,
    time_evidence,
    vector_evidence,
    word_evidence,
    word_likeness,
)

_STAGES = (
    form_evidence, further_vector_evidence, speaker_evidence, time_evidence, vector_evidence, word_evidence,
    word_likeness,
)  # fmt: skip
EVIDENCE_COLUMNS = frozenset(column for stage in _STAGES for column in stage.COLUMNS)
