"""Finds what was said in the very words of a query, unless it is told what to reply, letter by letter.

python verbatim.py '{"search": "what stands in the reply"}'
"""

import json
import sys

said, replies = [], json.loads(sys.argv[1])
for line in sys.stdin:
    call = json.loads(line)
    said += call.get("messages", [])
    asked = call.get("query")
    found = [{"text": one["content"], "source_ids": [one["id"]]} for one in said if one["content"] == asked]
    inside = replies.get(call["call"], f'"results": {json.dumps(found)}')
    print(f'{{"id": {call["id"]}, {inside}}}', flush=True)
