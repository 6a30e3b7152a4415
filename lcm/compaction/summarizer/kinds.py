"""What a sentence of a session is for: which sentences a summary is not to lose, and which say nothing."""

import re
from typing import Literal

from lcm.compaction.guidance.clauses import modalities

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
_ALONE = {
    "always", "never", "every", "only", "must", "should", "ensure", "avoid", "prefer", "stop", "dont", "no", "whenever",
    "remember", "require", "required", "allowed", "forbidden", "without", "please", "keep", "use", "reject", "focus",
}  # fmt: skip
"""The words of `_MAY_RULE` that say it alone."""
_BEGINNINGS = {"have", "has", "need", "needs", "make", "do", "don", "from", "going"}
"""The first words of its phrases, and of `_FROM_NOW_ON`."""
_BLANKED = str.maketrans({chr(code): " " for code in range(128) if not (chr(code).isalnum() or chr(code) == "_")})
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
        return _kind_of_step(text)
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


def _kind_of_step(text: str) -> Kind:
    if _FAILED.search(text):
        return "error"
    return "change" if _CHANGED.match(text) else "look" if _LOOKED.match(text) else "plain"


def is_user_rule(text: str) -> bool:
    """Say whether a sentence of a user is for `kind_of` a rule: what most are not is told without reading clauses."""
    return may_hold_rule(text) and is_rule(text) and not _FILLER.fullmatch(text)


def may_hold_rule(text: str) -> bool:
    """Say whether a text holds a word that a rule has; no sentence of one without is a rule."""
    if text.isascii():  # words are told at a tenth of what the patterns cost
        words = set(text.lower().translate(_BLANKED).split())
        if not words.isdisjoint(_ALONE):
            return True
        if words.isdisjoint(_BEGINNINGS):
            return False
    return bool(_MAY_RULE.search(text) or _FROM_NOW_ON.search(text))


def is_rule(text: str) -> bool:
    """Say whether a sentence of a user obliges or forbids from now on: as guidance reads it, or in these very words."""
    if _FROM_NOW_ON.search(text):
        return True
    if not _MAY_RULE.search(text):
        return False
    return any(modality != "permitted" for modality in modalities(text))
