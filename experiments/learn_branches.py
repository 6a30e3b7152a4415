"""What further branches are worth where their weights are learnt, and those weights.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/learn_branches.py

Over LoCoMo, `source=branches` with a second embedder and a second text index, `ranking=neighbours`: the columns
NAME_score, by the loss of `evidence_fit.py`, one conversation held out. Prints recall at 5 and 10 with 95 % percentile
bootstrap intervals over questions, the paired gain over dense and lexical alone, its sign-flip test with 9,999 draws,
Holm over the rows, and the weights that all conversations together give.
"""

from pathlib import Path

import numpy as np
from evidence_fit import Bounds, fitted, scored
from evidence_rows import collected
from scipy.stats import permutation_test
from system_parts import shown
from talk_kinds import PUBLISHED

SYSTEM = (
    "system=hybrid", "source=branches", "ranking=neighbours", "fusion=learnt",
    "+source@source.branches.hashed=dense", "+embedder@source.branches.hashed.embedder=hashing",
    "+source@source.branches.lucene=lexical", "+text_index@source.branches.lucene.text_index=bm25s",
)  # fmt: skip
BRANCHES = ("dense", "lexical", "session", "speaker", "hashed", "lucene")
SETS = (
    ("dense", "lexical"),
    ("dense", "lexical", "session"),
    ("dense", "lexical", "speaker"),
    ("dense", "lexical", "hashed"),
    ("dense", "lexical", "lucene"),
    ("dense", "lexical", "session", "speaker"),
    BRANCHES,
)


def main() -> None:
    columns = [f"{name}_score" for name in BRANCHES]
    questions = collected(
        "locomo", PUBLISHED["locomo"], Path("runs/learn_branches"), SYSTEM, columns, ("dense_score", "lexical_score")
    )
    everything = np.ones(len(questions), dtype=bool)
    found, tests = [], []
    for names in SETS:
        bounds: dict[str, Bounds] = {f"{name}_score": (None, None) for name in names}
        scores = np.zeros(len(questions.questions))
        for conversation in np.unique(questions.conversations):
            is_away = questions.conversations == conversation
            rows = is_away[questions.questions]
            scores[rows] = scored(questions, fitted([(questions, ~is_away, 1.0)], bounds))[rows]
        at_5, at_10 = questions.recalls(scores, 5, 10).values()
        found.append((names, at_5, at_10, fitted([(questions, everything, 1.0)], bounds)))
    base = found[0][2]
    for _, _, at_10, _ in found[1:]:
        gain = at_10 - base
        test = permutation_test((gain,), np.mean, permutation_type="samples", n_resamples=9999, vectorized=True, rng=0)
        tests.append(float(test.pvalue))
    order, corrected, highest = np.argsort(tests, kind="stable"), [0.0] * len(tests), 0.0
    for position, i in enumerate(order):
        highest = corrected[i] = min(1.0, max(highest, tests[i] * (len(tests) - position)))
    print("| branches | recall@5 | recall@10 | gain at 10 | p (Holm) | weights, fitted to all |\n" + "|---" * 6 + "|")
    for i, (names, at_5, at_10, weights) in enumerate(found):
        beside = ("", "") if i == 0 else (shown(at_10 - base), f"{corrected[i - 1]:.4f}")
        learnt = ", ".join(f"{name} {weights[f'{name}_score']:.3g}" for name in names)
        cells = (", ".join(names), shown(at_5), shown(at_10), *beside, learnt)
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
