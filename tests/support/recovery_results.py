"""What recovery says and orders over answers and turns made so that every setting can matter."""

import random
from collections.abc import Sequence
from functools import cache

from omegaconf import DictConfig

from lcm.protocols.contract import contract_of
from lcm.protocols.retrieval import Recovery, Signals
from lcm.records.query import Recalled
from pipelines.config import building
from tests.lcm.retrieval.recovery.turns import NOW, summary, turn

PROMPTS = (
    "Where is my old red bicycle helmet from the harbour market shop of Ada?",
    "Is it up to me or to Bo?",
    "東京の会議はどこですか",
    "How many days, harbour festival and kitchen repair?",
    "How long, harbour festival and kitchen repair?",
    "Harbour festival before kitchen repair?",
    "Since harbour festival, kitchen repair?",
    "How many days between the harbour festival with painted boats and the kitchen repair?",
    "How many days of harbour festival, painted boats, lanterns, music: dances.",
    "Which came first, the harbour festival or the kitchen repair?",
    "Which came first, the harbour lantern festival or the kitchen pipe repair?",
    "Which came first, the kitchen repair with copper pipes under floors or the ferry trip?",
    "Which came first, the ferry trip, the solo concert, the harbour festival or the kitchen visit?",
    "When did harbour festival and kitchen repair come first?",
)
"""Not of time; without long terms; of another script; each pattern of time alone; long clauses; comparisons."""
FAILED = Signals(True, True, False, False)
BUDGETS = (0, 10, 50, 200, 1000, 5000)

_EVENTS = (
    *("harbour festival", "kitchen repair", "ferry trip", "solo concert", "kitchen visit", "painted boats"),
    *("harbour", "kitchen", "trip", "solo", "festival with the harbour and the kitchen repair", "東京の会議", "came"),
    *("kitchen repair copper pipes", "copper pipes under floors"),
    *("the old red bicycle helmet", "from the harbour market shop of Ada", "red bicycle", "up to Bo"),
)
_DATES = ("on 2025-03-14", "yesterday", "last week", "at 10:30", "on Monday", "in 2024")
_PLANS = ("I am planning it", "I want to go", "I was there", "I've been looking", "I'm hoping to go to it, I think")
_OTHER = ("bread tasted fine", "ducks swam far away", "nobody minded", "clouds")


def recovered(config: DictConfig) -> object:
    """Signals of answers, reserves, and orders of turns under small and large reserves."""
    recovery: Recovery = building.build(config, "recovery")
    said = [
        recovery.signals(answer, has_session)
        for answer in answers(config.embedder.dim)
        for has_session in (True, False)
    ]
    reserves = [
        recovery.reserve_tokens(prompt, signals, budget)
        for prompt in PROMPTS
        for signals in (FAILED, Signals(False, True, False, False), Signals(False, False, False, True))
        for budget in BUDGETS
    ]
    turns, tokens = lost_turns()
    orders = [
        recovery.order(prompt, turns[start : start + size], tokens[start : start + size], reserve, NOW)
        for prompt in PROMPTS
        for reserve in (30, 400)
        for size in (6, len(turns))
        for start in range(0, min(len(turns), 10 * size), size)
    ]
    return contract_of(recovery).is_off, said, reserves, orders


def answers(dim: int) -> list[list[Recalled]]:
    vague = [summary(0.9, 0.3, f"s{i}") for i in range(5)]
    return [
        [],
        [turn(score=0.1, index_tier=dim)],
        [turn(score=0.2, index_tier=dim)],
        [turn(score=0.1, index_tier=dim // 2)],
        [turn(score=0.9, scope_class="session")],
        vague,
        vague[:3],
        [summary(0.9, 0.1), *vague[:2], turn()],
    ]


@cache
def lost_turns() -> tuple[Sequence[Recalled], Sequence[int]]:
    """Turns of every length, nearness, age and session, and what each costs."""
    rng = random.Random(0)
    found = []
    for number in range(240):
        pieces = [
            *rng.sample(_EVENTS, rng.choice((0, 1, 1, 2, 3))),
            *rng.sample(_DATES, rng.choice((0, 0, 1, 2, 3))),
            *rng.sample(_PLANS, rng.choice((0, 0, 1, 2))),
            *rng.sample(_OTHER, rng.choice((0, 1, 2))),
        ]
        rng.shuffle(pieces)
        found.append(
            turn(
                ", ".join(pieces),
                f"t{number}",
                score=rng.random() ** 2,
                age_s=rng.choice((60.0, 3600.0, 86400.0, 600_000.0)) * rng.random(),
                scope_class=rng.choice(("session", "durable", "durable", "global")),
            )
        )
    return found, [rng.randrange(3, 60) for _ in found]
