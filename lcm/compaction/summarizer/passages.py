"""The source of a summary as what it is made of: who said what and when, and what each sentence is for."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from lcm.compaction.facts.done import BEFORE, FILES
from lcm.compaction.guidance.clauses import modalities
from lcm.compaction.summarizer.footer import FOOTER
from lcm.text import is_cjk, load_stop_words, sentences, words_in

Kind = Literal["rule", "instruction", "decision", "open question", "error", "change", "look", "plain", "filler"]

IMPORTANCE: dict[Kind, float] = {
    "rule": 4.0,
    "instruction": 0.6,
    "decision": 0.6,
    "open question": 0.8,
    "error": 0.6,
    "change": 0.5,
    "look": -0.3,
    "plain": 0.0,
    "filler": -1.0,
}
"""What a sentence gains by its kind; a rule more than all else together."""

TOOL = "tool"
"""Who speaks where a line says what a tool did."""

ERROR = re.compile(
    r"\b(?:error|exception|traceback|fatal|panic|failed|failure|cannot|could not|couldn't|not found|no such file|"
    r"denied|undefined|unexpected|refused|timed? ?out|aborted)\b|\w(?:Error|Exception)\b|^\s*(?:×|✗|✖|FAIL|E  )",
    re.IGNORECASE,
)
"""A line of a program's output that says that something went wrong."""

NO_ERROR = re.compile(r"\b(?:0|no) (?:errors?|failed|failures?)\b|\bNo fixes applied\b", re.IGNORECASE)
"""A line that names errors only to say that there were none."""

_USER = re.compile(r"(?:user|human)|.*\((?:user|human)\)", re.IGNORECASE)
_ASSISTANT = re.compile(r"(?:assistant|ai|gpt|model|agent)|.*\(assistant\)", re.IGNORECASE)
_DECISION = re.compile(
    r"\b(?:decided|decision|agreed|we(?:'ll| will) (?:go with|use|keep)|(?:let's|let us) (?:go with|use|keep|stick)|"
    r"going with|instead of|settled on|root cause|the (?:fix|problem|issue|cause|bug) (?:is|was)|turns out)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:open question|todo|to do:|fixme|unresolved|still (?:need|needs|open|failing|to)|not yet|remaining|"
    r"next steps?|blocked (?:by|on))\b",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"(?:(?:ok(?:ay)?|alright|sure|great|perfect|good (?:catch|point|thinking)|right|yes|no|done|thanks?|thank you|"
    r"got it|excellent|hi|hello)\b[\s,.!:;]*)+|"
    r"(?:(?:ok(?:ay)?|alright|sure|great|perfect|good|now|next|then|also|first|finally|and|so)\b[\s,]*)*"
    r"(?:let me|let's|i'll|i will|i need to|i'm going to|we can now|now)\s"
    r"(?!.*\b(?:because|instead|never|always)\b).*[:.]|"
    r"(?:now|next)\b.*:|\(no output\)|here(?:'s| is| are)\b.*:",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"(?:wrote|edited|deleted|renamed|moved|created) |ran `(?:cd \S+ && )?(?:git (?:commit|add|push|checkout|merge)|"
    r"rm|mv|cp) |"
    r"(?:update|cancel|book|send|create|delete|add|remove|modify|exchange|return|transfer|set|insert|submit)_"
)
_LOOKED = re.compile(
    r"(?:read|get|search|list|find|look|fetch|query|calculate|think|view|open|goto|scroll)(?:_|\b)|"
    r"ran `(?:cd \S+ && )?(?:ls|cat|head|tail|find|grep|rg|wc|pwd|tree|sed -n|git (?:status|log|diff|show))\b",
    re.IGNORECASE,
)
_FROM_NOW_ON = re.compile(r"\b(?:from (?:now|here) on|going forward)\b", re.IGNORECASE)
_MAY_RULE = re.compile(  # what follows is read clause by clause, which takes milliseconds
    r"\b(?:always|never|every|only|must|should|have to|has to|need to|needs to|make sure|ensure|avoid|prefer|stop|"
    r"do not|don'?t|no|whenever|remember|required?|allowed|forbidden|without|please|keep|use|reject|focus)\b",
    re.IGNORECASE,
)
_SHORT_CHARACTERS = 12  # "wow", "go on"; as many of CJK are a sentence
_FAILED = re.compile(r": (?:failed\b|exit code -?[1-9])")


def is_user(speaker: str) -> bool:
    """Say whether a speaker is the person whom an assistant serves."""
    return _USER.fullmatch(speaker) is not None


def is_assistant(speaker: str) -> bool:
    return _ASSISTANT.fullmatch(speaker) is not None


def kind_of(text: str, speaker: str) -> Kind:
    """Say what one sentence is for.

    A rule is what guidance reads as one in a user's words; a user's other sentences are instructions, as long as
    nobody says that they are pasted.

    Args:
        text: without its speaker.
        speaker: as the source names him; empty where it does not.
    """
    if speaker == TOOL:
        done: Kind = "change" if _CHANGED.match(text) else "look" if _LOOKED.match(text) else "plain"
        return "error" if _FAILED.search(text) else done
    if _FILLER.fullmatch(text) and (is_user(speaker) or is_assistant(speaker)):
        return "filler"
    if is_user(speaker):
        is_short = text.isascii() and len(text) < _SHORT_CHARACTERS and not text.endswith("?")
        return "rule" if is_rule(text) else "filler" if is_short else "instruction"
    if not is_assistant(speaker):
        return "plain"
    if text.endswith(":"):  # what it announces stands on further lines
        return "filler"
    return "open question" if _OPEN.search(text) else "decision" if _DECISION.search(text) else "plain"


def is_user_rule(text: str) -> bool:
    """Say whether a sentence of a user is for `kind_of` a rule."""
    return is_rule(text) and not _FILLER.fullmatch(text)


def may_hold_rule(text: str) -> bool:
    """Say whether a text holds a word that a rule has; no sentence of one without is a rule."""
    return bool(_MAY_RULE.search(text) or _FROM_NOW_ON.search(text))


def is_rule(text: str) -> bool:
    """Say whether a sentence of a user obliges or forbids from now on: as guidance reads it, or in these very words."""
    if _FROM_NOW_ON.search(text):
        return True
    return bool(_MAY_RULE.search(text)) and any(modality != "permitted" for modality in modalities(text))


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
_TREE_LINE = re.compile(r"[│├└]|^[ \t]*[|+`]--")
_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$")
_LISTED = re.compile(r"^[ \t]*[\w.@~+-]*[/.][\w./@~+-]+/?[ \t]*$")
_STATEMENT = re.compile(r"[;{}]\s*$|^\s*(?:const|let|var|return|if|for|while|import|from|#include)\b|\w\(.*\)$")
_MOST_NAMES = 5
_TELLING = 0.5  # of the lines


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
    if _are(_TREE_LINE, lines):
        return _with(f"tree, {count}", "", [re.sub(r"^[\s│├└─|+`-]+", "", line).split("  ")[0] for line in lines])
    if _are(_ROW, lines):
        return _with(f"table, {count}", "", [cell.strip(" *") for cell in lines[0].strip(" |").split("|")])
    if (keys := _json_keys(text)) is not None:
        return _with(f"JSON, {count}", "keys", keys)
    if known == "Markdown" or (not known and len(_HEADING.findall(text)) > 1):
        return _with(f"Markdown, {count}", "", [match["title"].rstrip() for match in _HEADING.finditer(text)])
    names = [match["name"] for match in _DEFINED.finditer(text)]
    if not names and _are(_LISTED, lines):
        return _with(f"list, {count}", "", [line.strip() for line in lines])
    is_code = bool(names) or _are(_STATEMENT, lines)
    return _with(f"{known or ('code' if is_code else 'output')}, {count}", "defines", names)


def language_of(path: str) -> str:
    """The ending of a file's name, if it names a language."""
    ending = path.rsplit(".", 1)[-1].casefold() if "." in path else ""
    return ending if ending in _LANGUAGES else ""


def _with(kind: str, verb: str, names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(name for name in names if name.strip()))
    shown = ", ".join(distinct[:_MOST_NAMES]) + (" …" if len(distinct) > _MOST_NAMES else "")
    return f"{kind}: {verb} {shown}".replace(":  ", ": ") if shown else kind


def _are(pattern: re.Pattern[str], lines: Sequence[str]) -> bool:
    """Whether so many lines are alike that they tell what a block is."""
    said = [line for line in lines if line.strip()]
    return bool(said) and sum(pattern.search(line) is not None for line in said) >= _TELLING * len(said)


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


FURTHER = "  "
"""What a summary writes before a further line of a turn."""

UNDATED = "undated"
"""What stands in place of a time that nobody knows."""

_TIME = re.compile(
    rf"[ \t]*\[(?P<from>(?:\d{{4}}-\d\d-\d\d|{UNDATED})[^\[\]\n]{{0,40}}?)(?P<to> - [^\[\]\n]{{1,40}})?\]:?[ \t]*"
)
_ROLE = r"(?: \((?:user|assistant|system|tool)\))?"
_LABEL = re.compile(rf"(#?\w[\w .'@-]{{0,30}}#?{_ROLE}):[ \t]+(?=\S)")
_SPEAKER = re.compile(r"(?:.{1,80} \()?(?:user|assistant|system|tool)\)?")
_HEADER = re.compile(rf"({_SPEAKER.pattern}):[ \t]*")
_LABELLED_SHARE = 0.5  # of the lines: fewer are the keys of code and lists
_CODE_INDENT = re.compile(r"\t|    ")
_CODE_MARK = re.compile(r"[{}\[\]<>;=|\\_]|\w\(")  # a bracket after a space is prose
_CODE_MARK_SHARE = 0.04
_CODE_ENDS = ("{", "}", "(", "[", "]", ";", "=")
_HOUR_LENGTH = len("2026-01-01 00")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)(?P<language>[\w+-]*)[^`]*")
_FURTHER = re.compile(rf"{FURTHER}(?=\S)")
_MARKER = re.compile(r"(?:[-*+•>]|#{1,6})[ \t]+(?=\S)")
_TREE = re.compile(r"[│├└]")
_NUMBERED = re.compile(r"\d+[:|](?!\d)")  # a line of a file, as viewers number them
_BARE_PATH = re.compile(r"[^\s/\\]*[/\\]\S*|[0-9a-fA-F]{16,}")
_COMMENT = re.compile(r"#(?!#)|//|/\*|\*(?=\s)|--(?=\s)|<!--")
_LEAST_FENCED = 4  # lines; a shorter block is quoted
_LEAST_RUN = 4
_MOST_ERRORS = 3  # lines of a block that are told beside its name
_PASTED_LINES = 12  # of a user's message: from so many on only its ends are instructions
_ENDS = 3
_TIMES = re.compile(r" ×(\d+)$")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a source."""

    text: str
    """Without its speaker, and without white space at its ends."""
    turn: int
    """Which line it stands in; of a source that names speakers above their words, which message."""
    place: int
    """How many lines with words stand before its own, in the source or, where summaries are condensed, in its own."""
    is_prose: bool = True
    """Looks like nothing that a program reads or prints."""
    speaker: str = ""
    time: str = ""
    """As the source writes it; of a range its beginning."""
    kind: Kind = "plain"

    @property
    def hour(self) -> str:
        """What two times of one hour share."""
        return self.time[:_HOUR_LENGTH]

    @property
    def label(self) -> str:
        """What stands before the words of its speaker."""
        return f"{self.speaker}: " if self.speaker else ""

    @property
    def hint(self) -> str:
        """What says when it was said."""
        return f"[{self.time}] " if self.time else ""


@dataclass(frozen=True, slots=True)
class Passages:
    """Sentences to choose from, and what earlier summaries said that they left out."""

    sentences: tuple[Sentence, ...]
    footers: tuple[str, ...]
    """What stands behind `Expand for details about: `, in order."""

    @property
    def rules(self) -> list[str]:
        """The sentences in which a user obliges or forbids, in order."""
        return [sentence.text for sentence in self.sentences if sentence.kind == "rule"]


class _Message(NamedTuple):
    """The lines of what somebody said, or of one step of a tool, as sentences that nobody has parted yet."""

    lines: list[Sentence]
    """Indented as they were."""
    is_begun: bool
    """Its first line is the first of somebody's words."""

    @property
    def is_step(self) -> bool:
        return self.lines[0].speaker == TOOL


def read_source(text: str, previous: Sequence[Sentence] = ()) -> Passages:
    """Read a source.

    A time is `[2026-01-01 00:05 UTC]` or `[undated]`, or a range of two, at the beginning of a line: it holds until the
    next. A speaker is what stands before a colon at the beginning of a line: a role behind a time, alone, for all lines
    up to the next time; else anybody for his line, if he stands behind a time, or if half of all lines have such a
    beginning that others share, or as a role where one stands behind a time; and for lines indented by two blanks below
    it. The lines of an earlier summary on files and on what it left out are no sentences.

    Lines of code, tables, trees and output are one sentence that names them, from four on, beside those of their lines
    that tell of errors. Of what a tool did several times, the last outcome counts; it is told with the one that the
    previous summary told, where that was another. Code is told from prose by
    indentation, by what a line ends with, and by more than one bracket or operator in 25 characters (round brackets
    count behind a word alone).

    Args:
        text: of messages or summaries.
        previous: the sentences of the summary before it.
    """
    messages, footers = _messages(text)
    found = [sentence for message in messages for sentence in _parted(message)]
    told = (_action(sentence.text) for sentence in previous if sentence.speaker == TOOL)
    earlier = {action: outcome.split(BEFORE)[0] for action, outcome, _ in told if outcome}
    return Passages(tuple(_last_outcomes(found, earlier)), tuple(footers))


def _messages(text: str) -> tuple[list[_Message], list[str]]:
    """Who says what, and what the summaries among it left out."""
    lines = text.splitlines()
    times = [_TIME.match(line) for line in lines]
    rests = [line[time.end() :] if time else line for line, time in zip(lines, times, strict=True)]
    labels = [_LABEL.match(rest) for rest in rests]
    uses = Counter(label[1] for label in labels if label)
    shared = sum(count for count in uses.values() if count > 1)
    is_dialogue = shared >= _LABELLED_SHARE * sum(1 for rest in rests if rest.strip() and not _FURTHER.match(rest))
    is_session = any(t and label and _SPEAKER.fullmatch(label[1]) for t, label in zip(times, labels, strict=True))
    found: list[_Message] = []
    footers: list[str] = []
    now, owner, last, place, turn, is_first = "", "", "", 0, 0, False
    for rest, time, label in zip(rests, times, labels, strict=True):
        bare = rest.strip()
        is_further = bool(last) and not time and _FURTHER.match(rest) is not None
        turn += 0 if is_further or (owner and owner != TOOL and not time) else 1
        if time:
            now = time["from"]
            place = 0 if time["to"] else place
            header = _HEADER.fullmatch(bare)
            owner, is_first = (header[1] if header else ""), True
            if header:
                continue
        if bare.startswith(FOOTER):
            footers.append(bare.removeprefix(FOOTER))
        elif bare and not bare.startswith(FILES):
            is_known = label is not None and (
                is_first or (is_dialogue and uses[label[1]] > 1) or (is_session and _SPEAKER.fullmatch(label[1]))
            )
            is_named = is_known and not owner and not is_further
            own = label[1] if label and is_named else ""
            words = rest[label.end() :] if label and own else bare if owner == TOOL or is_first else rest
            speaker = own or owner or (last if is_further else "")
            if not found or own or is_first or speaker == TOOL:
                found.append(_Message([], bool(own) or is_first))
            found[-1].lines.append(Sentence(words, turn, place, speaker=speaker, time=now))
            is_first, last = False, speaker if own or is_further else ""
            place += 1
    return found, footers


def _parted(message: _Message) -> Iterator[Sentence]:
    """The sentences of a message; lines of code as one that names them."""
    parts = list(_blocks(message))
    pasted = in_code([line.text for line, _ in parts])
    is_output = len(parts) > 1 and _is_code(message.lines[0].text) and not message.is_step
    is_output |= bool(parts) and parts[0][1] is not None
    for number, (line, block) in enumerate(parts):
        if block is not None:
            yield from _named(line, *block)
            continue
        speaker = "" if is_output and is_user(line.speaker) else line.speaker
        is_within = len(message.lines) >= _PASTED_LINES and _ENDS <= number < len(parts) - _ENDS
        is_first = line is message.lines[0]
        is_step = is_first and message.is_step
        is_indented = not (is_first and message.is_begun) and _CODE_INDENT.match(line.text) is not None
        bare = line.text.strip()
        if not is_step and (marker := _MARKER.match(bare)):
            bare = bare[marker.end() :]
        for piece in [bare] if is_step else map(str.strip, sentences(bare)):
            kind = kind_of(piece, speaker)
            if (is_within and kind == "instruction") or pasted[number]:
                kind = "plain"
            yield replace(line, text=piece, is_prose=is_step or (not is_indented and _is_prose(piece)), kind=kind)


def _blocks(message: _Message) -> Iterator[tuple[Sentence, tuple[list[str], str] | None]]:
    """Each line by itself, or the first of a block with all lines of the block and its language."""
    lines = message.lines
    place = 0
    while place < len(lines):
        line = lines[place]
        is_own = place == 0 and (message.is_begun or message.is_step)
        fence = None if place == 0 and message.is_step else _FENCE.fullmatch(line.text)
        if fence:
            stop = next((i for i in range(place + 1, len(lines)) if _FENCE.fullmatch(lines[i].text)), len(lines))
            inner = lines[place + 1 : stop]
            if len(inner) >= _LEAST_FENCED:
                yield inner[0], ([each.text for each in inner], fence["language"])
            else:
                yield from ((each, None) for each in inner)
            place = stop + 1
            continue
        stop = place
        while not is_own and stop < len(lines) and _is_code(lines[stop].text):
            stop += 1
        if stop - place >= _LEAST_RUN:
            yield line, ([each.text for each in lines[place:stop]], "")
            place = stop
        else:
            yield line, None
            place += 1


def _named(line: Sentence, block: list[str], language: str) -> Iterator[Sentence]:
    """A block's name, and the lines of it that tell of errors."""
    told = replace(line, text=f"({named_block(block, language)})", is_prose=False)
    yield told
    if not language:
        errors = [each.strip() for each in block if ERROR.search(each) and not NO_ERROR.search(each)]
        for error in list(dict.fromkeys(errors))[-_MOST_ERRORS:]:
            yield replace(told, text=error, is_prose=True, kind="error")


def _last_outcomes(found: Sequence[Sentence], earlier: Mapping[str, str]) -> Iterator[Sentence]:
    """The sentences, of equal actions of tools only the last, with how often there were and what came of it before.

    Args:
        found: all, in order.
        earlier: action to outcome, as the previous summary told them.
    """
    actions = {place: _action(sentence.text) for place, sentence in enumerate(found) if sentence.speaker == TOOL}
    last = {action: place for place, (action, _, _) in actions.items()}
    counts: Counter[str] = Counter()
    outcomes: dict[str, list[str]] = {}
    for action, outcome, count in actions.values():
        counts[action] += count
        outcomes.setdefault(action, []).append(outcome)
    for place, sentence in enumerate(found):
        if place not in actions:
            yield sentence
        elif last[action := actions[place][0]] == place:
            *before, now = outcomes[action]
            failed = next((one for one in reversed(before) if one and one != now and ERROR.search(one)), "")
            was = earlier.get(action, "") if now and BEFORE not in now else ""
            changed = failed if failed and not ERROR.search(now) else was if was != now else ""
            text = f"{action}: {now}" if now else action
            text += f"{BEFORE}{changed.split(';')[0]})" if changed else ""
            kind = "change" if changed and sentence.kind in ("plain", "look") else sentence.kind
            yield replace(sentence, text=f"{text} ×{counts[action]}" if counts[action] > 1 else text, kind=kind)


def _action(step: str) -> tuple[str, str, int]:
    """What was done, what came of it, and how often."""
    times = _TIMES.search(step)
    bare = step[: times.start()] if times else step
    start = bare.rfind("`: ") + 1 if bare.startswith("ran `") else bare.find(": ")
    action, outcome = (bare[:start], bare[start + 2 :]) if start > 0 else (bare, "")
    return action, outcome, int(times[1]) if times else 1


def in_code(lines: Sequence[str]) -> list[bool]:
    """Of each line of what somebody said, whether it is code, or a comment, beside code: it lays down no rule, whatever
    it says. Code that stands alone, between prose, is a quotation within a sentence."""
    said = [place for place, line in enumerate(lines) if line.strip()]
    is_code = [not _is_prose(lines[place].strip()) for place in said]
    found = [False] * len(lines)
    for number, place in enumerate(said):
        is_beside = any(is_code[other] for other in (number - 1, number + 1) if 0 <= other < len(said))
        found[place] = is_beside and (is_code[number] or _COMMENT.match(lines[place].strip()) is not None)
    return found


def _is_code(line: str) -> bool:
    bare = line.strip()
    is_listed = _TREE.search(line) or _BARE_PATH.fullmatch(bare) or _NUMBERED.match(bare)
    return _CODE_INDENT.match(line) is not None or not _is_prose(bare) or is_listed is not None


def _is_prose(sentence: str) -> bool:
    is_marked = len(_CODE_MARK.findall(sentence)) > _CODE_MARK_SHARE * len(sentence)
    return not is_marked and not sentence.endswith(_CODE_ENDS)


def content_words(text: str) -> tuple[int, list[str]]:
    """Count the words of a text, and give the distinct ones that are no English stop words and no single letters.

    Neighbouring CJK characters count as a word two by two.
    """
    stop_words = load_stop_words("english")
    found = words_in(text)
    told = [word for word in found if is_cjk(word) or (len(word) > 1 and word not in stop_words)]
    return len(found), list(dict.fromkeys(told))
