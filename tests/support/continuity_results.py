"""What assemblies make of authored text, coupled turns and recalled documents: each setting of a tail and of the shares
of a budget must show here."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from omegaconf import DictConfig

from lcm.errors import LcmError
from lcm.protocols.context import Assembly, ContextRequest
from lcm.records.conversation import Message
from lcm.records.document import AuthoredNode
from lcm.records.query import Recalled
from pipelines.config import building
from tests.lcm.context.assembly.recorded import NOW, assistant, call, result, user
from tests.lcm.context.assembly.remembered import node, recalled

BUDGETS = (0, 60, 200, 300, 400, 500, 650, 1000, 2500, 10_000)
PROMPTS = ("where is the kettle?", "did I dream of the kettle?")
AUTHORED: tuple[Sequence[AuthoredNode], ...] = (
    (),
    [node("soft", f"{i}. The kettle stands in the kitchen, and goats may not.", f"soft {i}") for i in range(30)],
    [
        *(node("hard", f"Rule {i}: always quote the file.", f"hard {i}", 9) for i in range(8)),
        *(node("soft", "The kettle whistles. " * 6, f"soft {i}", 30) for i in range(8)),
    ],
)


def continued(config: DictConfig) -> object:
    """A context of each budget and prompt beside nothing authored, much that is soft, and much that is hard."""
    assembly: Assembly = building.build(config, "assembly")
    answer = _answer()
    asks = [ContextRequest(budget, prompt, answer, NOW) for budget in BUDGETS for prompt in PROMPTS]
    return [_shown(assembly, items, ask, nodes) for items in _talks() for nodes in AUTHORED for ask in asks]


def _shown(assembly: Assembly, items: Sequence[Message], ask: ContextRequest, nodes: Sequence[AuthoredNode]) -> object:
    try:
        (context,) = assembly.assemble(items, [ask], nodes)
    except LcmError as error:
        return str(error)
    shown = [(item.item_id, item.tokens, item.context_tier) for item in context.items]
    return shown, context.tokens, context.evicted, context.is_degraded, context.notes, len(context.messages)


@cache
def _talks() -> tuple[Sequence[Message], ...]:
    """Two people in turns; one alone; calls and results, and bundles that the messages name themselves."""
    words = "the kettle broke again and nobody minded at all"
    in_turns = [(assistant if i % 2 else user)(f"{i} {words}", f"turn {i}") for i in range(60)]
    alone = [user(f"{i} {words}", f"alone {i}") for i in range(60)]
    called: list[Message] = []
    for i in range(15):
        called += [
            user(f"{i} {words}", f"asked {i}"),
            call(f"call {i}", message_id=f"called {i}"),
            result(f"call {i}", f"{i} {words}" * 2, message_id=f"result {i}"),
        ]
    bundled = [
        replace(one, envelope={**one.envelope, "metadata": {"continuity_bundle_id": f"bundle {i // 6}"}})
        for i, one in enumerate(alone)
    ]
    return in_turns, alone, called, bundled


def _answer() -> list[Recalled]:
    kinds = ("guidance", "message", "guidance", "summary", "authored", "message", "dream")
    return [
        recalled(f"{kinds[i % 7]} {i}", f"{i}: the kettle stood in the kitchen for a while", kinds[i % 7])
        for i in range(70)
    ]
