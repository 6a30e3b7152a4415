"""Help: what `lcm PIPELINE --help` prints is the docstring of the pipeline's module, read without importing it."""

import ast
from pathlib import Path
from textwrap import fill

from pipelines.config.conf_folder import groups, table_of_contents

_WIDTH = 120
"""Letters of a line, as every docstring keeps them."""
_RECALL = """
  store=FILE             the store; else what $LCM_DATABASE_PATH names
  conversation=KEY       one conversation, archived ones of that id too; else all
  agent=ID               what that agent may read, by scopes.agent_access; else all
  json=true              everything as JSON

Choices: recall=default,lossless_claw answerer=extractive,llm language_model=..., and their keys: recall.limit=10."""


def help_of(module: str) -> str:
    """The help of a pipeline by the name of its module, with what several have in common filled in."""
    source = Path(__file__).parents[1] / f"{module}.py"
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    if "$GROUPS" in text:
        named = ((group, groups()[group]) for group in sorted(table_of_contents(module)))
        lines = (f"{group}: {', '.join(names)}" for group, names in named if names)
        choices = "\n".join(fill(line, _WIDTH, subsequent_indent="  ", break_on_hyphens=False) for line in lines)
        text = text.replace("$GROUPS", f"{choices}\n")
    return text.replace("\n$RECALL", _RECALL)
