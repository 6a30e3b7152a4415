"""Write what the documentation says of every choice from its YAML and its class: nothing of it is told twice.

`python docs/reference.py` writes choices.md. The build of the site writes a page for each group as well, with formula,
settings, defaults, units and source of every choice, and the pages that tell what it is worth.
"""

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from pipelines.config import conf_folder  # noqa: E402 - of this checkout

CHOICES = DOCS / "choices.md"
COMPONENTS = "components"
_MARKUP = re.compile(r"[*<>\[\]|$#]|(?<!\w)_|_(?!\w)")
_HEAD = """# What can be chosen

<!-- Written by docs/reference.py from conf/ and docs/groups.yaml. -->

Each group is a folder of `conf/`, each choice a file there: `lcm evaluate GROUP=CHOICE`. **Bold** is what runs where
nothing is said. Every number is a key: `lcm evaluate --cfg job` prints them all, with their values;
`lcm evaluate --explain` tells which part reads each, and which nothing reads ([configuration](configuration.md)).
To add one of your own: [extending](extending.md).
"""


def choices_page() -> str:
    """Every group with every choice, and what each does by the first sentence of its file."""
    return "\n".join([_HEAD, *(line for group in conf_folder.groups() for line in _table(group))])


def component_page(group: str) -> str:
    """All choices of a group: what each computes, its settings as its file has them, its code, what docs tell."""
    about = _about(group).replace("](", "](../")
    lines = [f"# {group}", "", f"{about}.", ""]
    for choice in conf_folder.groups()[group]:
        lines += _section(group, choice)
    return "\n".join(lines)


def write_components(folder: Path) -> None:
    """A page for each group, and one that lists them."""
    folder.mkdir(exist_ok=True)
    groups = conf_folder.groups()
    for group in groups:
        _write(folder / f"{group}.md", component_page(group))
    listed = "\n".join(groups)
    head = "# Components\n\nA page for each group of `conf/`, made from its files and the classes that they name.\n"
    _write(folder / "index.md", f"{head}\n```{{toctree}}\n:maxdepth: 2\n\n{listed}\n```\n")


def _write(path: Path, text: str) -> None:
    """Only what has changed: the site is built anew for that alone."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _table(group: str) -> Iterator[str]:
    yield from (f"## `{group}`", "", f"{_about(group)}.", "", "| choice | |", "|---|---|")
    for choice in conf_folder.groups()[group]:
        name = f"**`{choice}`**" if choice == _defaults().get(group) else f"`{choice}`"
        yield f"| {name} | {_escaped(_first_sentence(group, choice))} |"
    yield ""


def _section(group: str, choice: str) -> Iterator[str]:
    """What a choice computes, its settings, its parts with what each does, and the pages that tell of it."""
    text = _yaml_text(group, choice)
    yield from (f"## {choice}", "")
    own, *parts = _classes(text, choice) or [None]
    if own is not None:
        yield from (*_paragraphs(inspect.getdoc(own) or ""), f"Code: `{_file(own)}`.", "")
    yield from (f"`conf/{group}/{choice}.yaml`:", "", "```yaml", text.rstrip("\n"), "```", "")
    for part in parts:
        does = _escaped((inspect.getdoc(part) or "").partition("\n\n")[0].replace("\n", " "))
        yield f"- `{part.__name__}` (`{_file(part)}`): {does}"
    if pages := ", ".join(f"[{title}](../{name})" for name, title in _pages_about(group, choice)):
        yield from ("", f"Told of, and measured, in {pages}.")
    yield ""


def _about(group: str) -> str:
    told = groups()[group]
    return f"{told[0].upper()}{told[1:]}"


@cache
def groups() -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load((DOCS / "groups.yaml").read_text())
    if difference := found.keys() ^ conf_folder.groups().keys():
        raise SystemExit(f"docs/groups.yaml and conf/ differ by {', '.join(sorted(difference))}")
    return found


@cache
def _defaults() -> dict[str, str | None]:
    """Group -> the choice of config.yaml, which other commands share."""
    found: dict[str, str | None] = {}
    for path in sorted(conf_folder.conf_dir().glob("*.yaml"), key=lambda path: path.stem != "config"):
        for entry in yaml.safe_load(path.read_text()).get("defaults", []):
            for group, choice in entry.items() if isinstance(entry, dict) else ():
                found.setdefault(group, choice)
    return found


def _yaml_text(group: str, choice: str) -> str:
    return (conf_folder.conf_dir() / group / f"{choice}.yaml").read_text()


def _first_sentence(group: str, choice: str) -> str:
    """Of the comment at the head of a file; the command with which some begin is left out."""
    lines = []
    for line in _yaml_text(group, choice).splitlines():
        if not line.startswith("#"):
            break
        lines += [] if "@package" in line else [line.lstrip("# ")]
    told = re.sub(r"^lcm evaluate [^:]*: ", "", " ".join(lines))
    sentence = re.match(r".*?[.;](?= [A-Z`]|$)", told)
    return (sentence[0] if sentence else told).rstrip(".;")


def _classes(text: str, choice: str) -> list[Any]:
    """What a file names as classes, each once, its own before its parts; none of a preset, which names choices."""
    tree = yaml.safe_load(text) or {}
    tree = tree.get(choice, tree)  # a measure stands below its name
    names = dict.fromkeys(_targets(tree)) if isinstance(tree, dict) and "_target_" in tree else ()
    return [getattr(importlib.import_module(module), name) for module, _, name in (n.rpartition(".") for n in names)]


def _targets(node: Any) -> Iterator[str]:
    """The classes of a node, its own before those within it."""
    if isinstance(node, dict):
        yield from (value for key, value in node.items() if key == "_target_")
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _targets(child)


def _file(made_by: Any) -> str:
    return f"{made_by.__module__.replace('.', '/')}.py"


def _paragraphs(docstring: str) -> Iterator[str]:
    """A docstring as Markdown: tables are tables, and a section such as Args keeps its lines."""
    for paragraph in docstring.split("\n\n"):
        if paragraph.startswith("|"):
            yield paragraph
        elif re.match(r"(?:Args|Returns|Raises|Attributes):\n", paragraph):
            yield from ("```text", paragraph, "```")
        else:
            yield _escaped(paragraph)
        yield ""


def _escaped(text: str) -> str:
    """Text that means what it says: outside of code nothing is markup."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if index % 2 else _MARKUP.sub(r"\\\g<0>", part) for index, part in enumerate(parts))


def _pages_about(group: str, choice: str) -> list[tuple[str, str]]:
    named = re.compile(rf"(?<![\w/]){group}=(?:[\w,]+,)?{choice}(?![\w.])")
    return [(name, title) for name, title, text in _pages() if named.search(text)]


@cache
def _pages() -> list[tuple[str, str, str]]:
    """Name, title and text of every page that somebody wrote."""
    paths = [path for path in sorted(DOCS.rglob("*.md")) if path != CHOICES and COMPONENTS not in path.parts]
    texts = [(path.relative_to(DOCS).as_posix(), path.read_text()) for path in paths]
    return [(name, text.partition("\n")[0].lstrip("# ").replace("`", ""), text) for name, text in texts]


if __name__ == "__main__":
    _write(CHOICES, choices_page())
