"""lcm expand-query PROMPT store=FILE [query=WORDS] [ids=ID,ID] [KEY=VALUE ...]

Have a question answered from what summaries were made of. Reading begins at what is named (summaries, messages, files),
and at the summaries that hold all words of the query, or whose messages do.

  lcm expand-query "Why did the migration fail?" query="migration failed" store=memory.db
  lcm expand-query "Which port?" ids=sum_972f60d23b50311a token_cap=8000
  lcm expand-query "Which port?" query=port answerer=llm language_model=openai_compatible language_model.base_url=...

  max_tokens=2000        of the answer
  token_cap=4000         of all that is read for it
$RECALL"""

from collections.abc import Sequence
from dataclasses import asdict

from lcm.errors import LcmError
from pipelines.steps.recall import now, one_word, opened, read_arguments
from pipelines.views.terminal import say, tell_json


def main(arguments: Sequence[str]) -> int:
    """`lcm expand-query PROMPT store=FILE [KEY=VALUE ...]`."""
    command = read_arguments(arguments, ("conversation", "agent", "query", "ids", "max_tokens", "token_cap"))
    prompt = one_word(command, "question", "expand-query")
    ids = [one for part in command.settings.get("ids", "").split(",") if (one := part.strip())]
    query = command.settings.get("query", "")
    if not ids and not query.strip():
        raise LcmError("query=WORDS or ids=ID,ID must say where to begin to read; `lcm grep` finds ids")
    with opened(command) as (recall, reader):
        answered = recall.expand_query(
            reader,
            prompt,
            now,
            summary_ids=ids,
            query=query,
            conversation=reader.conversation(command.settings.get("conversation")),
            max_tokens=command.number("max_tokens"),
            token_cap=command.number("token_cap"),
        )
    if command.flag("json"):
        tell_json({**asdict(answered.answer), "route": asdict(answered.route), "conversations": answered.conversations})
    else:
        say(answered.text)
    return 0
