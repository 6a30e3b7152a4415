"""A memory of a test's own: it answers with the messages that share most words with the query, and misbehaves as told.

python stand_in.py BEHAVIOUR
"""

import json
import os
import sys
import time

ALL = []
"""What was ever added, which no reset empties: for the one that tells what another workspace said."""


def found(behaviour, said, query, k):
    words = set(query.lower().split())
    ranked = sorted(said, key=lambda one: -len(words & set(one["content"].lower().split())))
    results = [
        {"text": one["content"], "score": 1 / (i + 1), "source_ids": [one["id"]]} for i, one in enumerate(ranked)
    ]
    match behaviour:
        case "ignores k":
            return results
        case "repeats":
            return [results[0]] * k
        case "another workspace":
            here = {one["id"] for one in said}
            others = [one for one in ALL if one["id"] not in here]
            return [{"text": one["content"], "source_ids": [one["id"]]} for one in others[:k]]
        case "loses ids":
            return [{"text": one["text"], "source_ids": []} for one in results[:k]]
        case "unknown ids":
            return [{"text": one["text"], "source_ids": ["nobody"]} for one in results[:k]]
        case "names none":
            return [{"text": one["text"]} for one in results[:k]]
        case "edits":
            return [{"text": one["text"].replace("a", "e", 1) + "!"} for one in results[:k]]
        case "invents":
            return [{"text": f"Some invented words, number {i}, that nobody has said."} for i in range(k)]
        case "one text":
            return results[:1]
        case "surroundings":
            return [{"text": " ".join(sorted({"LCM_MARK"} & set(os.environ))) or "none"}]
        case "names everything":
            return [{"text": "yes", "source_ids": [one["id"] for one in said]}]
    return results[:k]


def main(behaviour):
    said, asked = [], 0
    for line in sys.stdin:
        call = json.loads(line)
        reply = {"id": call["id"]}
        match call["call"]:
            case "reset":
                if behaviour == "does not start":
                    sys.exit("no such database")
                said, most = [], call.get("settings", {}).get("most")
                reply |= {"name": "stand-in", "version": "1"}
                if behaviour in ("contexts", "large contexts", "retold contexts"):
                    reply["offers"] = ["context", "compact"]
            case "add":
                if behaviour == "refuses to add":
                    reply["error"] = "the disk is full"
                said += call["messages"]
                ALL.extend(call["messages"])
            case "search":
                asked += 1
                if behaviour == "hangs" and asked == 2:
                    time.sleep(60)
                if behaviour == "crashes" and asked == 2:
                    sys.exit("out of memory")
                if behaviour == "garbage":
                    print("%&$ no JSON", flush=True)
                    continue
                if behaviour == "forgets ids":
                    del reply["id"]
                if behaviour == "chatters":
                    print("loading the model ...", flush=True)
                if behaviour == "much":
                    reply["padding"] = "x" * (1 << 20)
                if behaviour == "errs" and asked == 2:
                    reply["error"] = "no such collection"
                elif behaviour == "wrong shape" and asked == 2:
                    reply["results"] = [["text", 1.0]]
                else:
                    reply["results"] = found(behaviour, said, call["query"], call["k"])[:most]
            case "context":
                text = "\n".join(one["content"] for one in said[-3:])
                if behaviour == "retold contexts":
                    text = "They spoke of this and that, and came to an understanding about most of it."
                reply["results"] = [{"text": text * (100 if behaviour == "large contexts" else 1)}]
        print(json.dumps(reply), flush=True)


main(sys.argv[1])
