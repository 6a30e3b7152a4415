"""Documents that somebody wrote for the agent: none, or Markdown files, and the nodes that their blocks make.

Source: libravdb memory 1.4.4.
"""

import glob
import logging
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn

from lcm.checks import check_choice, check_range
from lcm.compaction.guidance.protected import PhraseRules
from lcm.errors import LcmError
from lcm.files import is_below
from lcm.given import opened_as_is
from lcm.protocols.contract import Contract
from lcm.records.document import AuthoredNode, AuthoredTier
from lcm.records.rules import Rules
from lcm.token_estimator import CodePoints

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


@dataclass(frozen=True, slots=True)
class NothingAuthored:
    """There are no authored documents."""

    contract = Contract(idle_because="authored=none")

    def nodes(self, *, incidents: Counter[str]) -> list[AuthoredNode]:
        return []


_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_OPENING = "---"
_CLOSING = ("---", "...")
_KEY = "hop_targets:"
_COMMENT = re.compile(r"(?:^|\s)#.*")
_QUOTES = "\"'"

_TAG_KEYS = ("tags:", "tag:", "openclaw:", "memory:")
_FENCES = ("```", "~~~")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_TAG = re.compile(r"(?:^|\s)#[^\W\d_]")
BlockKind = Literal["ListItem", "Blockquote", "Paragraph", "Heading", "CodeBlock", "HTMLBlock"]

_MOST_NESTED = 100
"""What lies deeper the parser leaves out without a word, so it is refused."""
_LEAVES: dict[str, BlockKind] = {
    "paragraph_open": "Paragraph",
    "heading_open": "Heading",
    "fence": "CodeBlock",
    "code_block": "CodeBlock",
    "html_block": "HTMLBlock",
}
_AS_WRITTEN = ("CodeBlock", "HTMLBlock")
"""Kinds that keep their lines."""
_LISTS = ("bullet_list_open", "ordered_list_open")
_TOKENS = CodePoints(rounding="up", empty_tokens=1)
_EXTENSIONS = (".md", ".markdown")
_ALWAYS = "memory.md"
Adapter = Literal["generic", "obsidian"]

_log = logging.getLogger(__name__)


class Line(NamedTuple):
    """One line of an authored file, with its place."""

    text: str
    """Without its end."""
    end: str
    """What ends it; empty at the end of the file."""
    position: int
    """Of its first byte in the UTF-8 file."""


def lines_of(text: str, position: int = 0) -> list[Line]:
    """Cut a text where Markdown ends lines: at LF, CR LF and CR alone.

    Args:
        text: what is cut; joined again, the texts and ends of its lines are it.
        position: of its first byte in the file.
    """
    lines = []
    for match in _LINE.finditer(text):
        if match[0]:
            lines.append(Line(match[1], match[2], position))
            position += len(match[0].encode())
    return lines


class FrontMatter(NamedTuple):
    """The head of a file."""

    lines: tuple[str, ...]
    """Between the marks."""
    length: int
    """In lines, with both marks."""

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()

    @property
    def hop_targets(self) -> tuple[str, ...]:
        """The ids under the key `hop_targets`, each once: one, some between brackets, or a list in the lines below.

        The original leaves one of the quotes in a bracketed list whose end is quoted, so that its target names
        nothing; here every id is taken out of its own quotes.
        """
        found: list[str] = []
        is_listing = False
        for line in self.lines:
            if line.startswith(_KEY):
                value = _COMMENT.sub("", line.removeprefix(_KEY)).strip()
                is_listing = not value
                found += value.removeprefix("[").removesuffix("]").split(",")
            elif is_listing and line.strip():
                is_listing = line.strip().startswith("- ")
                found += [_COMMENT.sub("", line.strip()[1:])] if is_listing else []
        targets = (target.strip().strip(_QUOTES).strip() for target in found)
        return tuple(dict.fromkeys(filter(None, targets)))


def front_matter(lines: Sequence[Line], rules: Rules) -> FrontMatter | None:
    """The front matter of a file, if it has any.

    Args:
        lines: of the whole file.
        rules: `original` sees a mark only where LF ends it: in a file with CR LF, or one that ends right behind the
            second mark, there is no front matter, and Markdown takes it for headings and rules. `corrected` sees it
            there too, and with blanks behind a mark.
    """
    if not lines or not _is_mark(lines[0], (_OPENING,), rules):
        return None
    for number, line in enumerate(lines[1:], 1):
        if _is_mark(line, _CLOSING, rules):
            return FrontMatter(tuple(inner.text for inner in lines[1:number]), number + 1)
    return None


def _is_mark(line: Line, marks: Sequence[str], rules: Rules) -> bool:
    if rules == "original":
        return line.text in marks and line.end == "\n"
    return line.text.rstrip(" \t") in marks


def is_tagged(text: str) -> bool:
    """Say whether a note is tagged: its front matter names tags or the memory, or a `#tag` stands in its words.

    What stands between fences or in a heading is no tag, nor what starts with another character than a letter.
    """
    lines = lines_of(text.removeprefix("\ufeff"))
    head = front_matter(lines, "corrected")
    if head is not None and any(line.startswith(_TAG_KEYS) for line in head.lines):
        return True
    is_fenced = False
    for line in lines[head.length if head else 0 :]:
        if line.text.lstrip().startswith(_FENCES):
            is_fenced = not is_fenced
        elif not is_fenced and not _HEADING.match(line.text) and _TAG.search(line.text):
            return True
    return False


class Block(NamedTuple):
    """One block at the top of a document, or one item of a list there."""

    kind: BlockKind
    text: str
    """Its plain words; never empty."""
    position: int
    """Byte offset of the first of them in the file."""


def blocks(lines: Sequence[Line], rules: Rules) -> Iterator[Block]:
    """The blocks of a document in order, by CommonMark without tables; rules and what has no words yield nothing.

    Words come without their emphasis; of links the words remain, of images those that stand for them, of tags all;
    the space between words is one blank. Code and HTML stay as they are, without the space around them.

    Args:
        lines: of the document, front matter left out.
        rules: between the paragraphs, nested items and other blocks within one item or quote stands a blank; by those
            of the original nothing, so that the last word of one and the first of the next become a word.

    Raises:
        LcmError: if blocks are nested so deeply that words would be lost.
    """
    tokens = _parser().parse("".join(line.text + line.end for line in lines))
    if any(token.level >= _MOST_NESTED - 1 for token in tokens):
        raise LcmError(f"blocks are nested {_MOST_NESTED} deep")
    for kind, inner in _top_blocks(tokens):
        leaves = list(_leaves(inner, lines))
        text = ("" if rules == "original" else " ").join(words for words, _ in leaves)
        text = text.strip() if kind in _AS_WRITTEN else " ".join(text.split())
        if text:
            yield Block(kind, text, next(position for words, position in leaves if words.strip()))


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # a memory without such files need not wait for it

    return MarkdownIt("commonmark", {"maxNesting": _MOST_NESTED})


def _top_blocks(tokens: "Sequence[Token]") -> "Iterator[tuple[BlockKind, Sequence[Token]]]":
    """The blocks at the top, lists as their items, with the tokens of each."""
    start = 0
    for number, token in enumerate(tokens):
        if token.level == 0 and token.nesting >= 0:
            start = number
        if token.level != 0 or token.nesting > 0:
            continue
        opening, inner = tokens[start], tokens[start : number + 1]
        if opening.type in _LISTS:
            starts = [at for at, one in enumerate(inner) if one.type == "list_item_open" and one.level == 1]
            yield from (("ListItem", inner[at:end]) for at, end in pairwise([*starts, len(inner)]))
        elif opening.type == "blockquote_open":
            yield "Blockquote", inner
        elif kind := _LEAVES.get(opening.type):
            yield kind, inner


def _leaves(tokens: "Sequence[Token]", lines: Sequence[Line]) -> Iterator[tuple[str, int]]:
    """The texts that hold words, each with its position."""
    for before, token in zip([*tokens[:1], *tokens], tokens, strict=False):
        if token.type == "inline":
            text, opening = _words(token.children or ()), before
        elif token.type in ("fence", "code_block", "html_block"):
            text, opening = token.content, token
        else:
            continue
        yield text, _position(token, opening, lines) if text.strip() else 0


def _position(token: "Token", opening: "Token", lines: Sequence[Line]) -> int:
    """Where the words of a leaf start: behind the marks of what it lies in, and behind its own."""
    assert token.map is not None
    content = token.content.split("\n")
    blank = next(number for number, line in enumerate(content) if line.strip())
    line = lines[token.map[0] + blank + (token.type == "fence")]
    if opening.type == "heading_open" and opening.markup.startswith("#"):
        behind = line.text[line.text.index("#") + len(opening.markup) :]
        length = len(behind.lstrip())
    else:
        # The words are the end of their line.
        length = len(content[blank].strip()) + len(line.text) - len(line.text.rstrip())
    return line.position + len(line.text[: len(line.text) - length].encode())


def _words(tokens: "Sequence[Token]") -> str:
    return "".join(
        " " if token.type in ("softbreak", "hardbreak") else _words(token.children) if token.children else token.content
        for token in tokens
    )


def nodes_of(source: str, text: str, frame: PhraseRules, *, rules: Rules, authority: float = 1.0) -> list[AuthoredNode]:
    """The nodes of one file, in order.

    Front matter and every item of a list are hard; quotes, and paragraphs that the frame takes for guidance, are soft;
    other paragraphs, headings, code and HTML are variants. Variants alone carry the hop targets of the front matter.

    Args:
        source: the name of the file: the node ids start with it.
        text: of the whole file; a byte order mark is not part of its first line.
        frame: says which paragraphs are guidance.
        rules: as `blocks` and `front_matter` take them.
        authority: of every node, in [0, 1].

    Source: libravdb memory 1.4.4.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    lines = lines_of(text.removeprefix(mark), len(mark.encode()))
    head = front_matter(lines, rules)
    targets = head.hop_targets if head else ()
    placed: list[tuple[str, str, int, AuthoredTier, int]] = []
    if head is not None:
        placed.append(("YAMLFrontmatter", head.text, 0, "hard", 0))
    for block in blocks(lines[head.length if head else 0 :], rules):
        mask = frame.read(block.text).mask if block.kind == "Paragraph" else 0
        tier: AuthoredTier = "soft" if block.kind == "Blockquote" or mask else "variant"
        placed.append((*block, "hard" if block.kind == "ListItem" else tier, mask))
    counted = _TOKENS.count([words for _, words, *_ in placed])
    return [
        AuthoredNode(
            node_id=f"{source}#{ordinal:06d}",
            source=source,
            tier=tier,
            kind=kind,
            text=words,
            position=position,
            ordinal=ordinal,
            tokens=tokens,
            authority=authority,
            modality_mask=mask,
            hop_targets=targets if tier == "variant" else (),
        )
        for ordinal, ((kind, words, position, tier, mask), tokens) in enumerate(zip(placed, counted, strict=True))
    ]


def in_authored_order(nodes: Sequence[AuthoredNode]) -> list[AuthoredNode]:
    """By source, position, ordinal and id."""
    return sorted(nodes, key=lambda node: (node.source, node.position, node.ordinal, node.node_id))


def dangling_hops(nodes: Sequence[AuthoredNode]) -> list[tuple[str, str]]:
    """The (source, target) of every hop that leads to no variant: nothing can be found by it."""
    variants = {node.node_id for node in nodes if node.tier == "variant"}
    hops = dict.fromkeys((node.source, target) for node in nodes for target in node.hop_targets)
    return [(source, target) for source, target in hops if target not in variants]


@dataclass(frozen=True, slots=True)
class SelectedFile:
    """An authored file that is to be read, with the name of its document."""

    path: Path
    name: str
    """Below the folder that was named, with `/`; of a file that was named itself, its own name."""
    is_wanted: bool
    """Somebody chose it: named it, or wrote a pattern that it matches; or it is `memory.md`."""


def selected_files(paths: Sequence[str], include: Sequence[str], exclude: Sequence[str]) -> list[SelectedFile]:
    """The files that paths name, each once, by names that differ.

    Files of one name are told apart by the folders that they lie in, as many as it takes: `a/AGENTS.md`, `b/AGENTS.md`.
    The original names a file by its own name alone, so that the blocks of one take the ids of the other's.

    Args:
        paths: files, folders, and globs of both (`**` = folders below). Of folders Markdown files are taken, but no
            links that lead out of them, devices and pipes.
        include: patterns of names in folders, where `*` matches anything, `/` too; empty = all.
        exclude: patterns of what to leave out there. `memory.md`, however it is written, is never left out.

    Raises:
        LcmError: if a path names nothing, or a folder cannot be read.
    """
    found: dict[Path, SelectedFile] = {}
    for given in paths:
        for path in _named(given):
            files = _in_folder(path, include, exclude) if path.is_dir() else [SelectedFile(path, path.name, True)]
            for file in files:
                found.setdefault(file.path.resolve(), file)
    return _told_apart(found)


def _named(given: str) -> list[Path]:
    path = Path(given).expanduser()
    if path.is_file() or path.is_dir():
        return [path]
    if path.exists():
        raise LcmError(f"authored.paths names {given!r}, which is neither a file nor a folder: take it out")
    matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207 (absolute too)
    matches = [match for match in matches if match.is_dir() or _is_markdown(match.name)]
    if not matches:
        raise LcmError(f"authored.paths names {given!r}, where there is no file: mend the path, or take it out")
    return matches


def _in_folder(folder: Path, include: Sequence[str], exclude: Sequence[str]) -> Iterator[SelectedFile]:
    for parent, folders, files in os.walk(folder, onerror=_refuse):
        folders.sort()
        for file in sorted(filter(_is_markdown, files)):
            path = Path(parent, file)
            if path.exists() and not (path.is_file() and is_below(path.resolve(), [folder.resolve()])):
                _log.warning("%s is no file below %s and is not read: name it in authored.paths", path, folder)
                continue
            name = path.relative_to(folder).as_posix()
            if file.lower() == _ALWAYS:
                yield SelectedFile(path, name, True)
            elif _matches(name, include or "*") and not _matches(name, exclude):
                yield SelectedFile(path, name, bool(include))


def _refuse(error: OSError) -> NoReturn:
    raise LcmError(
        f"authored.paths names the folder {error.filename!r}, which cannot be read ({error.strerror}): "
        "mend that, or take it out"
    ) from error


def _told_apart(found: dict[Path, SelectedFile]) -> list[SelectedFile]:
    names = {path: file.name for path, file in found.items()}
    while (counts := Counter(names.values())) and max(counts.values()) > 1:
        for path, name in names.items():
            if counts[name] > 1:
                names[path] = "/".join(path.parts[-1 - len(name.split("/")) :])
    return [SelectedFile(file.path, names[path], file.is_wanted) for path, file in found.items()]


def _is_markdown(name: str) -> bool:
    return name.lower().endswith(_EXTENSIONS)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class AuthoredFiles:
    """Markdown files, read when they are asked for: `nodes_of` says what becomes of their blocks.

    Source: libravdb memory 1.4.4.
    """

    frame: PhraseRules
    """Says which paragraphs are guidance."""
    paths: Sequence[str] = ()
    """Files, folders, and globs of both; relative ones lie below the folder that the process runs in."""
    adapter: Adapter = "generic"
    """`generic` takes every file; `obsidian`, of a folder, notes that are tagged, or that `include` names."""
    include: Sequence[str] = ()
    """Patterns of file names below a folder, `*` = anything, `/` too; empty = all."""
    exclude: Sequence[str] = ()
    """Patterns of what to leave out there; `memory.md` never is."""
    rules: Rules = "corrected"
    """`original`: nothing stands between the blocks within one list item or quote, and front matter is seen only where
    LF ends its marks."""
    authority: float = 1.0
    """How far the memory trusts what is authored, in [0, 1]: 1 of its core documents, 0 of others."""
    max_file_bytes: int = 1_048_576
    max_hard_tokens: int | None = None
    """More hard text is refused when it is read; None = the assembly alone decides."""

    def __post_init__(self) -> None:
        for name in ("paths", "include", "exclude"):
            if isinstance(getattr(self, name), str) or not all(isinstance(one, str) for one in getattr(self, name)):
                raise ValueError(f"{name} must be a list of texts, got {getattr(self, name)!r}")
        check_choice(self, adapter=Adapter, rules=Rules)
        check_range(self, "authority", ge=0, le=1)
        check_range(self, "max_file_bytes", gt=0)
        check_range(self, "max_hard_tokens", ge=0, or_null=True)

    @property
    def contract(self) -> Contract:
        return Contract(idle_because=None if self.paths else "authored.paths names no file")

    def nodes(self, *, incidents: Counter[str]) -> list[AuthoredNode]:
        found: list[AuthoredNode] = []
        for file in selected_files(self.paths, self.include, self.exclude):
            text = self._text(file)
            if file.is_wanted or self.adapter == "generic" or is_tagged(text):
                found += self._nodes(file, text)
        if self.max_hard_tokens is not None:
            check_hard_budget(found, self.max_hard_tokens)
        for source, target in dangling_hops(found):
            _log.warning(
                "hop_targets of %r names %r, which is no variant block: hard and soft ones are shown, not found",
                source,
                target,
            )
            incidents["hop targets that lead nowhere"] += 1
        return in_authored_order(found)

    def _text(self, file: SelectedFile) -> str:
        try:
            with opened_as_is(file.path) as stream:
                raw = stream.read(self.max_file_bytes + 1)
        except OSError as error:
            raise _refused(file, f"which cannot be read ({error.strerror}): mend that") from error
        if len(raw) > self.max_file_bytes:
            raise _refused(file, f"which is larger than {self.max_file_bytes} bytes: raise authored.max_file_bytes")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _refused(file, f"which is not UTF-8 at byte {error.start}: save it as UTF-8") from error

    def _nodes(self, file: SelectedFile, text: str) -> list[AuthoredNode]:
        try:
            return nodes_of(file.name, text, self.frame, rules=self.rules, authority=self.authority)
        except LcmError as error:
            raise _refused(file, f"whose {error}: make it plainer") from error


def _refused(file: SelectedFile, why: str) -> LcmError:
    return LcmError(f"authored.paths leads to {str(file.path)!r}, {why}, or keep it out by authored.exclude")


def check_hard_budget(nodes: Sequence[AuthoredNode], budget_tokens: float) -> None:
    """Refuse hard nodes that take more than their budget.

    Args:
        nodes: all that is authored; those of other tiers do not count.
        budget_tokens: of all hard nodes together. As a share of a prompt's: tokens of the prompt x share of it that
            memory may take x share of that for hard text.

    Raises:
        LcmError: with what they take, the budget, and where most of it stands.

    Source: libravdb memory 1.4.4.
    """
    taken: dict[str, int] = {}
    for node in nodes:
        if node.tier == "hard":
            taken[node.source] = taken.get(node.source, 0) + node.tokens
    total = sum(taken.values())
    if total <= budget_tokens + 1e-9:
        return
    most = max(taken, key=lambda source: taken[source])
    raise LcmError(
        f"the hard authored text takes {total} tokens ({taken[most]} of them in {most!r}), its budget is "
        f"{budget_tokens:g}, and it is never cut: make list items paragraphs or quotes, shorten front matter, "
        "or raise authored.max_hard_tokens"
    )
