"""A memory with a configuration of its own, as memory-lancedb-pro names it: it searches by shared words, keeps what
scores enough, and drops what looks like noise. It honours what it is told to, and says what it ignores unless it is
silent.

python configured.py all|most|none|silent
"""

import json
import sys

DEFAULTS = {"hardMinScore": 1.0, "filterNoise": True}
IGNORES = {"all": [], "silent": [], "most": ["filterNoise"], "none": [*DEFAULTS]}


def search(said, settings, query, k, **_):
    words = set(query.lower().split())
    scored = [(len(words & set(one["content"].lower().split())) / len(words), one) for one in said]
    kept = [
        (score, one)
        for score, one in scored
        if score > settings["hardMinScore"]
        and not (settings["filterNoise"] and one["content"].startswith("I don't have any information"))
    ]
    kept.sort(key=lambda pair: -pair[0])
    return [{"text": one["content"], "score": score, "source_ids": [one["id"]]} for score, one in kept[:k]]


def main(behaviour):
    said, settings = [], dict(DEFAULTS)
    for line in sys.stdin:
        call = json.loads(line)
        number, name, reply = call.pop("id"), call.pop("call"), {}
        if name == "reset":
            said, retrieval = [], call.get("settings", {}).get("config", {}).get("retrieval", {})
            ignored = IGNORES[behaviour]
            settings = DEFAULTS | {key: retrieval[key] for key in DEFAULTS if key in retrieval and key not in ignored}
            reply = {"name": "configured", "version": "1"}
            if behaviour != "silent":
                reply["ignores"] = [f"retrieval.{key}" for key in ignored]
        elif name == "add":
            said += call["messages"]
        elif name == "search":
            reply = {"results": search(said, settings, **call)}
        print(json.dumps({"id": number, **reply}), flush=True)


main(sys.argv[1])
