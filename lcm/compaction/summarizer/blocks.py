"""What a program wrote or reads, named in a few words instead of quoted."""

import json
import re
from collections.abc import Sequence

_LANGUAGES = {
    "py": "Python", "python": "Python", "ts": "TypeScript", "tsx": "TypeScript", "typescript": "TypeScript",
    "js": "JavaScript", "jsx": "JavaScript", "mjs": "JavaScript", "javascript": "JavaScript", "rs": "Rust",
    "rust": "Rust", "go": "Go", "java": "Java", "kt": "Kotlin", "c": "C", "h": "C", "cpp": "C++", "cc": "C++",
    "cs": "C#", "rb": "Ruby", "ruby": "Ruby", "php": "PHP", "swift": "Swift", "sh": "shell", "bash": "shell",
    "shell": "shell", "zsh": "shell", "console": "shell", "sql": "SQL", "html": "HTML", "css": "CSS", "json": "JSON",
    "jsonl": "JSON", "yaml": "YAML", "yml": "YAML", "toml": "TOML", "md": "Markdown", "markdown": "Markdown",
    "xml": "XML", "diff": "diff", "patch": "diff", "txt": "text",
}  # fmt: skip
_DEFINED = re.compile(
    r"^[ \t]*(?:\d+[:|][ \t]*)?(?:(?:export|default|pub(?:lic)?(?:\([a-z]+\))?|abstract|async|declare|static|private)"
    r"[ \t]+)*(?:def|class|function|interface|type|enum|struct|trait|impl|fn|func|module|"
    r"const(?=[ \t]+\w+[ \t]*=[ \t]*(?:async\b|\()))[ \t*]+(?P<name>[A-Za-z_$][\w$]*)",
    re.MULTILINE,
)
_HEADING = re.compile(r"^#{1,3}[ \t]+(?P<title>\S[^\n]{0,60})", re.MULTILINE)
_DIFFED = re.compile(r"^(?:\+\+\+ (?:b/)?|diff --git a/\S+ b/)(?P<path>[^\s\n]+)", re.MULTILINE)
_TREE = re.compile(r"[│├└]|^[ \t]*[|+`]--")
_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$")
_LISTED = re.compile(r"^[ \t]*[\w.@~+-]*[/.][\w./@~+-]+/?[ \t]*$")
_STATEMENT = re.compile(r"[;{}]\s*$|^\s*(?:const|let|var|return|if|for|while|import|from|#include)\b|\w\(.*\)$")
_MOST_NAMES = 5
_TELLING = 0.5  # of the lines: so many alike tell what a block is


def named_block(lines: Sequence[str], language: str = "") -> str:
    """A block of lines in a few words: `Python, 120 lines: defines X, Y`.

    Args:
        lines: at least one.
        language: as a fence or the ending of a file's name tells it; may be empty.
    """
    text = "\n".join(lines)
    count = f"{len(lines)} line{'s' if len(lines) > 1 else ''}"
    known = _LANGUAGES.get(language.casefold().lstrip("."), "")
    if known == "diff" or text.startswith("diff --git") or "\n@@ " in text:
        return _with(f"diff, {count}", "", [match["path"] for match in _DIFFED.finditer(text)])
    if _share(_TREE, lines) >= _TELLING:
        return _with(f"tree, {count}", "", [re.sub(r"^[\s│├└─|+`-]+", "", line).split("  ")[0] for line in lines])
    if _share(_ROW, lines) >= _TELLING:
        return _with(f"table, {count}", "", [cell.strip(" *") for cell in lines[0].strip(" |").split("|")])
    if (keys := _json_keys(text)) is not None:
        return _with(f"JSON, {count}", "keys", keys)
    if known == "Markdown" or (not known and len(_HEADING.findall(text)) > 1):
        return _with(f"Markdown, {count}", "", [match["title"].rstrip() for match in _HEADING.finditer(text)])
    names = [match["name"] for match in _DEFINED.finditer(text)]
    if not names and _share(_LISTED, lines) >= _TELLING:
        return _with(f"list, {count}", "", [line.strip() for line in lines])
    is_code = bool(names) or _share(_STATEMENT, lines) >= _TELLING
    return _with(f"{known or ('code' if is_code else 'output')}, {count}", "defines", names)


def language_of(path: str) -> str:
    """The ending of a file's name, if it names a language."""
    ending = path.rsplit(".", 1)[-1].casefold() if "." in path else ""
    return ending if ending in _LANGUAGES else ""


def _with(kind: str, verb: str, names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(name for name in names if name.strip()))
    shown = ", ".join(distinct[:_MOST_NAMES]) + (" …" if len(distinct) > _MOST_NAMES else "")
    return f"{kind}: {verb} {shown}".replace(":  ", ": ") if shown else kind


def _share(pattern: re.Pattern[str], lines: Sequence[str]) -> float:
    said = [line for line in lines if line.strip()]
    return sum(pattern.search(line) is not None for line in said) / len(said) if said else 0.0


def _json_keys(text: str) -> list[str] | None:
    bare = text.strip()
    if bare[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(bare)
    except (RecursionError, ValueError):
        return None
    while isinstance(value, list) and value:
        value = value[0]
    return list(value) if isinstance(value, dict) else []
