"""lcm describe ID store=FILE [KEY=VALUE ...]

Tell what is known of a summary (sum_...), a large file (file_...) or a message (msg#...): words, time, what it was made
of, and what expanding it would cost.

  lcm describe sum_972f60d23b50311a store=memory.db
  lcm describe file_0123456789abcdef content=true store=memory.db > whole.txt

  content=true           the whole text of a file, and nothing else
  token_cap=4000         marks what could be expanded within so many tokens
$RECALL"""

import re
from collections.abc import Sequence
from dataclasses import asdict

from lcm.context.recall.describe import DescribedSummary, file_description, summary_text
from pipelines.steps.recall import one_word, opened, read_arguments, tell_json
from pipelines.views.terminal import say

_MESSAGE = re.compile(r"msg#(\d+)")


def main(arguments: Sequence[str]) -> int:
    """`lcm describe ID store=FILE [KEY=VALUE ...]`."""
    command = read_arguments(arguments, ("conversation", "content", "token_cap"))
    item_id = one_word(command, "id", "describe")
    content = command.flag("content")
    with opened(command) as (_, reader):
        if found := _MESSAGE.fullmatch(item_id):
            (said,) = reader.messages([int(found[1])])
            if command.flag("json"):
                tell_json(said._asdict())
            else:
                say(f"msg#{said.number} ({said.role}, {said.tokens} tokens) id {said.message_id}\n{said.content}")
            return 0
        described = reader.describe(
            item_id,
            conversation=command.settings.get("conversation"),
            token_cap=command.number("token_cap"),
            content=content,
        )
    if command.flag("json"):
        tell_json(asdict(described))
    elif isinstance(described, DescribedSummary):
        say(summary_text(described))
    else:
        say(file_description(described) if described.text is None else described.text)
    return 0
