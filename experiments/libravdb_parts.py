"""What every part of libravdb memory is worth: the preset, and one swap at a time.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/libravdb_parts.py [FOLDER] [DATASET ...]

Runs `lcm evaluate` once a swap and dataset (locomo, beam), kept in FOLDER (runs/libravdb_parts); what is there already
is not run again. Prints tables in Markdown: the mean recall of the preset, and for every swap the difference to it,
query by query, with its 95 % percentile bootstrap interval.
"""

import sys
from pathlib import Path

from system_parts import Swaps, tables

DEEP = (
    "source=by_scope", "fusion.k1=200", "fusion.k2=20",
)  # fmt: skip
"""As many candidates as the other systems have."""
EVERYTHING = ("admission.promotion=always", "admission.roles=[user,assistant]")
SWAPS: Swaps = {
    "promotion": {
        "every turn of a user is durable (as 1.4.4)": ["admission.promotion=always"],
        "every turn is durable": [*EVERYTHING],
        "corrected patterns": ["admission=gating"],
        "admission=none": ["admission=none"],
    },
    "score": {
        "fusion=hybrid_score decay=exponential": ["fusion=hybrid_score", "decay=exponential"],
        "decay=none": ["decay=none"],
        "decay=weibull": ["decay=weibull"],
        "words of any script": ["fusion=two_pass"],
        "summaries lose nothing": ["fusion.summary_delta=0"],
    },
    "score, every turn durable, deep pools": {
        "two passes": [*EVERYTHING, *DEEP],
        "two passes, decay=none": [*EVERYTHING, *DEEP, "decay=none"],
        "two passes, decay=none, kappa 1": [*EVERYTHING, *DEEP, "decay=none", "fusion.kappa=1"],
        "hybrid score, its three rates": [*EVERYTHING, "source=by_scope", "fusion=hybrid_score", "decay=exponential"],
        "hybrid score, decay=none": [*EVERYTHING, "source=by_scope", "fusion=hybrid_score", "decay=none"],
    },
    "summaries": {
        "compaction=none": ["compaction=none", "summary_documents=none"],
        "no summary is found": ["summary_documents=none"],
        "summaries in the place of their turns": ["summary_documents=replacing"],
    },
    "rest": {
        "recovery=none": ["recovery=none"],
        "vector_index=exact": ["vector_index=exact"],
        "guidance=corrected": ["guidance=corrected"],
    },
}  # fmt: skip


if __name__ == "__main__":
    kept = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/libravdb_parts")
    quiet = ["measures.retention.budgets=[]"]
    tables("libravdb", SWAPS, kept.resolve(), sys.argv[2:] or ["locomo", "beam"], quiet)
