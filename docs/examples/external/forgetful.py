"""bm25.py after an upgrade that went wrong, or one that changed no more than near ties: what a sentinel must tell apart.

python3 forgetful.py SHARE [SEED] [NOISE]: SHARE of what it is told is dropped without a word; scores move by NOISE.
"""

import json
import random
import runpy
import sys
from pathlib import Path

share, seed, noise = (*map(float, sys.argv[1:]), 0.0, 0.0)[:3]


def told(lines):
    for line in lines:
        call = json.loads(line)
        if call["call"] == "add":
            call["messages"] = [m for m in call["messages"] if random.Random(f"{seed} {m['id']}").random() >= share]
        yield json.dumps(call)


def reply(line, **_):
    answer = json.loads(line)
    if "results" in answer:
        for one in answer["results"]:
            one["score"] *= random.Random(f"{seed} {one['source_ids']}").gauss(1, noise)
        answer["results"].sort(key=lambda one: -one["score"])
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


sys.stdin = told(sys.stdin)
runpy.run_path(str(Path(__file__).with_name("bm25.py")), init_globals={"print": reply})
