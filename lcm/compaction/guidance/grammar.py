"""The rules of English clauses, as `clause_rules.yaml` has them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import yaml

from lcm.compaction.guidance.reading import Modality

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Rule(NamedTuple):
    """A pattern, what it says, and which cues it needs or cannot bear; modality None = no rule at all."""

    name: str
    modality: Modality | None
    pattern: re.Pattern[str]
    needs: tuple[str, ...]
    unless: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grammar:
    """The rules as read from `clause_rules.yaml`."""

    rules: tuple[Rule, ...]
    on_sentence: Mapping[str, re.Pattern[str]]
    on_segment: Mapping[str, re.Pattern[str]]
    leads: Mapping[str, re.Pattern[str]]
    label: Mapping[str, re.Pattern[str]]
    verbs: Mapping[str, frozenset[str]]
    words: Mapping[str, frozenset[str]]
    shapes: Mapping[str, re.Pattern[str]]


@cache
def grammar() -> Grammar:
    text = resources.files("lcm.compaction.guidance").joinpath("clause_rules.yaml").read_text("utf-8")
    given = yaml.load(text, _LOADER)  # noqa: S506 - either is a safe one
    verbs = {name: frozenset(words.split()) for name, words in given["verbs"].items()}
    parts = dict(given["parts"])
    parts |= {name: "|".join(sorted(words)) for name, words in verbs.items()}
    parts["verb"] = "(?:" + "|".join(sorted(verbs["conduct"] | verbs["work"])) + ")"

    def compiled(pattern: str) -> re.Pattern[str]:
        filled = pattern
        while (wider := re.sub(r"<(\w+)>", lambda found: parts[found[1]], filled)) != filled:
            filled = wider
        return re.compile(filled)

    cues = given["cues"]
    return Grammar(
        rules=tuple(
            Rule(
                rule["rule"],
                None if rule["modality"] == "none" else rule["modality"],
                compiled(rule["pattern"]),
                tuple(rule.get("needs", ())),
                tuple(rule.get("unless", ())),
            )
            for rule in given["rules"]
        ),
        on_sentence={name: compiled(cue["pattern"]) for name, cue in cues.items() if cue["where"] == "sentence"},
        on_segment={name: compiled(cue["pattern"]) for name, cue in cues.items() if cue["where"] == "segment"}
        | {name: compiled(pattern) for name, pattern in given["guards"].items()},
        leads={name: compiled(pattern) for name, pattern in given["leads"].items()},
        label={name: compiled(pattern) for name, pattern in given["label"].items()},
        verbs=verbs,
        words={name: frozenset(words.split()) for name, words in given["words"].items()},
        shapes={name: re.compile(pattern) for name, pattern in given["shapes"].items()},
    )
