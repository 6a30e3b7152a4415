"""lcm describe ID store=FILE [KEY=VALUE ...]

Tell what is known of a summary (sum_...), a large file (file_...) or a message (msg#..., or the id that it was recorded
with): words and calls of tools, time, what it was made of, and what expanding it would cost.

  lcm describe sum_972f60d23b50311a store=memory.db
  lcm describe 'msg#21' store=memory.db
  lcm describe file_0123456789abcdef content=true store=memory.db > whole.txt

  content=true           the whole text of a file or a message, and nothing else
  token_cap=4000         a longer message is clipped to it, with a mark; of a summary it marks what could be expanded
$RECALL"""

from collections.abc import Sequence
from dataclasses import asdict

from lcm.context.recall.reader import described_text
from pipelines.steps.recall import one_word, opened, read_arguments
from pipelines.views.terminal import say, tell_json


def main(arguments: Sequence[str]) -> int:
    """`lcm describe ID store=FILE [KEY=VALUE ...]`."""
    command = read_arguments(arguments, ("conversation", "agent", "content", "token_cap"))
    item_id = one_word(command, "id", "describe")
    content = command.flag("content")
    with opened(command) as (_, reader):
        described = reader.describe(
            item_id,
            conversation=reader.conversation(command.settings.get("conversation")),
            token_cap=command.number("token_cap"),
            content=content,
        )
    if command.flag("json"):
        tell_json(asdict(described))
    else:
        say(described_text(described, is_bare=content))
    return 0
