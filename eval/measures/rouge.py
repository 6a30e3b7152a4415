"""ROUGE of summaries against reference summaries, by the library `rouge_score`.

- `rouge1`, `rouge2`: F1 over words and over pairs of neighbouring words.
- `rougeL`: F1 over the longest common subsequence of words, the whole text as one sentence.
- `rouge1_recall` and so on: the share of the reference alone, whatever the length of the summary.

Of several references each measure takes the one of best F1, and the recall against that one (`score_multi` of the
library): the maximum, not the jackknife of ROUGE-1.5.5. No stemming, no stop words left out.
"""

import re
from collections.abc import Sequence

import polars as pl

ROUGE = ("rouge1", "rouge2", "rougeL")
ROUGE_MEASURES = (*ROUGE, *(f"{name}_recall" for name in ROUGE))

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_CJK}]|(?:(?![{_CJK}])[^\W_])+")


class _EveryScript:
    """The library's words on ASCII text; beyond it words of any script, and each CJK character as a word.

    The library's own tokenizer drops every character that is not ASCII.
    """

    def tokenize(self, text: str) -> list[str]:
        return _WORD.findall(text.lower())


def rouge(texts: Sequence[str], references: Sequence[Sequence[str]]) -> pl.DataFrame:
    """Score each text against its references.

    Args:
        references: row i holds those of texts[i], at least one.
    Returns:
        One row a text, in order; columns `ROUGE_MEASURES`, each in [0, 1]. 0 where text or reference has no words.
    Raises:
        ValueError: if a text has no reference, or there are more of the ones than of the others.
    """
    if len(texts) != len(references):
        raise ValueError(f"every text needs its references, got {len(texts)} texts and {len(references)} rows of them")
    if empty := [i for i, those in enumerate(references) if isinstance(those, str) or not those]:
        raise ValueError(f"references must be lists of at least one text, got none for the texts {empty[:5]}")
    from rouge_score.rouge_scorer import RougeScorer  # here, because importing it takes over a second

    scorer = RougeScorer(list(ROUGE), tokenizer=_EveryScript())
    rows = []
    for text, those in zip(texts, references, strict=True):
        scores = scorer.score_multi(list(those), text)
        rows.append([*(scores[name].fmeasure for name in ROUGE), *(scores[name].recall for name in ROUGE)])
    return pl.DataFrame(rows, schema=dict.fromkeys(ROUGE_MEASURES, pl.Float64), orient="row")
