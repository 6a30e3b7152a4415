"""A memory that speaks the contract of docs/external.md over standard input and output: BM25, in plain Python."""

import json
import math
import re
import sys
from collections import Counter

texts, ids, counts = [], [], []


def search(query, k, **_):
    mean = sum(map(Counter.total, counts)) / max(1, len(counts))
    scores = [0.0] * len(texts)
    for word in set(re.findall(r"\w+", query.lower())):
        holding = sum(word in one for one in counts)
        weight = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        for place, one in enumerate(counts):
            if n := one[word]:
                scores[place] += weight * n * 2.2 / (n + 1.2 * (0.25 + 0.75 * one.total() / mean))
    best = sorted(range(len(texts)), key=lambda place: -scores[place])[:k]
    return {"results": [{"text": texts[i], "score": scores[i], "source_ids": [ids[i]]} for i in best if scores[i]]}


for line in sys.stdin:
    call = json.loads(line)
    number, name, reply = call.pop("id"), call.pop("call"), {}
    if name == "reset":
        texts, ids, counts = [], [], []
        reply = {"name": "bm25", "version": "1"}
    elif name == "add":
        texts += [message["content"] for message in call["messages"]]
        ids += [message["id"] for message in call["messages"]]
        counts = [Counter(re.findall(r"\w+", text.lower())) for text in texts]
    elif name == "search":
        reply = search(**call)
    print(json.dumps({"id": number, **reply}), flush=True)
