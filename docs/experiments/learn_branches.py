"""What further branches are worth where their weights are learnt, and those weights.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python docs/experiments/learn_branches.py

Over LoCoMo, `source=branches` with a second embedder and a second text index, `ranking=neighbours`: the columns
NAME_score, by the loss of `learn_fusion.py`, one conversation held out. Prints recall at 5 and 10 with 95 % percentile
bootstrap intervals over questions, the paired gain over dense and lexical alone, its sign-flip test with 9,999 draws,
Holm over the rows, and the weights that all conversations together give.
"""

import numpy as np
from learn_fusion import collected, fitted, held_out, recalls, told
from scipy.stats import permutation_test

SYSTEM = (
    "source=branches", "ranking=neighbours", "fusion=learnt",
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
    overrides = ["dataset=locomo", "dataset.categories=[1,2,3,4]"]
    questions = collected(overrides, {"original": []}, SYSTEM, columns, ("dense_score", "lexical_score"))
    everything = [(questions, np.ones(len(questions.conversations), bool), 1.0)]
    found, tests = [], []
    for names in SETS:
        places = [BRANCHES.index(name) for name in names]
        scores = held_out(questions, "original", places, [])
        at_5, at_10 = (recalls(questions, scores, "original", k) for k in (5, 10))
        found.append((names, at_5, at_10, fitted(everything, "original", places)))
    base = found[0][2]
    is_judged = ~np.isnan(base)
    for _, _, at_10, _ in found[1:]:
        gain = (at_10 - base)[is_judged]
        test = permutation_test((gain,), np.mean, permutation_type="samples", n_resamples=9999, vectorized=True, rng=0)
        tests.append(float(test.pvalue))
    order, corrected, highest = np.argsort(tests, kind="stable"), [0.0] * len(tests), 0.0
    for position, i in enumerate(order):
        highest = corrected[i] = min(1.0, max(highest, tests[i] * (len(tests) - position)))
    print(
        "| branches | recall@5 | recall@10 | gain at 10 | p (Holm) | weights, fitted to all |\n|---|---|---|---|---|---|"
    )
    for i, (names, at_5, at_10, weights) in enumerate(found):
        beside = ("", "") if i == 0 else (told(at_10 - base), f"{corrected[i - 1]:.4f}")
        learnt = ", ".join(f"{name} {weight:.3g}" for name, weight in zip(names, weights, strict=True))
        cells = (", ".join(names), told(at_5), told(at_10), *beside, learnt)
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
