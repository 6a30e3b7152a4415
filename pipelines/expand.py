"""lcm expand ID ... store=FILE [KEY=VALUE ...]

Read what summaries were made of, down to the messages with their calls of tools; or a message (msg#...) itself, or
the one that holds a large file (file_...).

  lcm expand sum_972f60d23b50311a store=memory.db
  lcm expand sum_972f60d23b50311a sum_aee0293518474c82 depth=5 messages=false token_cap=20000

  depth=3                steps downwards; the messages of a leaf are one
  token_cap=4000         of all that is read; the message that does not fit is clipped, with a mark
  messages=true          the messages of leaves too; false: summaries alone
$RECALL"""

from collections.abc import Sequence
from dataclasses import asdict

from lcm.context.recall.expansion import distilled_text
from lcm.errors import LcmError
from pipelines.steps.recall import opened, read_arguments
from pipelines.views.terminal import say, tell_json


def main(arguments: Sequence[str]) -> int:
    """`lcm expand ID ... store=FILE [KEY=VALUE ...]`."""
    command = read_arguments(arguments, ("conversation", "agent", "depth", "token_cap", "messages"))
    if not command.words:
        raise LcmError("name the summaries to expand; `lcm expand --help` tells more")
    has_messages = command.flag("messages", default=True)
    with opened(command) as (recall, reader):
        found = reader.expand(
            command.words,
            depth=command.number("depth"),
            token_cap=command.number("token_cap"),
            has_messages=has_messages,
            conversation=reader.conversation(command.settings.get("conversation")),
        )
    if command.flag("json"):
        tell_json({**asdict(found), "cited_ids": found.cited_ids})
    else:
        say(distilled_text(found, recall.rules))
        if not has_messages and not any(root.children for root in found.roots):
            say("No summary lies beneath, only messages: messages=true shows them")
    return 0
