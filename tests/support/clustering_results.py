"""What compaction makes of a talk with rules, payloads and bundles, by a summarizer that is sometimes far from what was
said and sometimes too long: each setting of compaction by clusters must show here."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache

from omegaconf import DictConfig

from lcm.compaction.window import StoredWindow
from lcm.compaction.work import run
from lcm.protocols.compaction import Compaction
from lcm.records.conversation import Message
from lcm.records.summary import SummaryRequest, SummaryResult
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from pipelines.config import building
from tests.lcm.compaction.contexts import BEGIN, CONVERSATION
from tests.support.context_results import digest, reports_of, state

BASE64 = "QuokkaZanzibarWxyz" * 4
SAID = (
    "The kettle in the kitchen broke again, and nobody minded at all.",
    "You must quote the file and the line in every review.",
    "Fine. " + "😀" * 60,
    f"See this:\n```\n{'x = harbour(1)' * 12}\n```\nand so it is",
    "Numbers:\n```\n1\n2\n3\n4\n5\n```\nthat is all",
    "A picture:\ndata:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAA\nof the harbour",
    f"The key:\n{BASE64}abcdefghijklm\nis lost",  # 85 characters, all of them one run
    f"It came as {BASE64[:60]} and with many other words around it, so that the line is long",
    "A digest 0123456789abcdef0123456789abcdef01234567 of the file that we moved, with its pictures, to a folder",
    "The goats escaped near the river, and Ada painted the kitchen wall yellow on the same Thursday evening. " * 3,
    "The migration of the database failed with a timeout, twice, and we do not know why it did.",
)
"""Each payload is about as long as what is left out."""
TURNS = 150
TOKENS = Utf16Units()


class Scored(StoredWindow):
    """Only what users say has an admission score."""

    def admission_scores(self, message_ids: Sequence[str]) -> dict[str, float]:
        said = {one.message_id for one in self.messages(message_ids) if one.role == "user"}
        return {one: int(digest(one), 16) % 10 / 10 for one in message_ids if one in said}


class Squeezing:
    """Names all that it was asked; its answers copy a turn, speak of something else, or are too long."""

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        return [_squeezed(request) for request in requests]


def _squeezed(request: SummaryRequest) -> SummaryResult:
    told = f"{request.target_tokens} {request.density} {digest((request.text, request.previous, request.technicality))}"
    if request.is_extractive:
        words = " ".join(turn.splitlines()[0] for turn in request.turns if turn)[: 4 * request.target_tokens]
        return SummaryResult(f"{words} {told}", 0.7, "extractive", "hashing")
    kind = int(digest(request.text), 16) % 5
    size = len(request.text)
    copied = request.turns[0].splitlines()[0] if request.turns and request.turns[0] else "nothing"
    words = {
        0: copied,
        1: "quite another matter",
        2: request.text if not request.is_aggressive else copied,
        3: (request.text * 2)[: int(size * (1 + int(digest(request.text), 16) // 5 % 20 / 20))],
        4: request.text[: size // 3],
    }[kind]
    counted = 10_000 if kind == 0 else 0  # by the model's own tokens one is too long that is not
    return SummaryResult(f"{words} {told}", 0.4 + kind / 10, "squeezing", "model", tokens=counted)


def clustered(config: DictConfig) -> object:
    """Reports, and the store afterwards, of a talk that is lived through, of all at once, and as far as a target."""
    compaction: Compaction = building.build(config, "compaction")
    return _lived(compaction), _at_once(compaction, None), _at_once(compaction, 1500)


def _lived(compaction: Compaction) -> object:
    """Five messages a turn."""
    with Store(opened_at=BEGIN) as store:
        view, reports = None, []
        for start in range(0, TURNS, 5):
            store.append(CONVERSATION, talk()[start : start + 5], TOKENS)
            view = view or Scored(store, CONVERSATION)
            view.follow()
            work = compaction.after_turn(view, _instant(start + 5), incidents=Counter())
            reports.append(run(work, Squeezing(), incidents=Counter()))
        return reports_of(reports), state(store)


def _at_once(compaction: Compaction, target_tokens: int | None) -> object:
    with Store(opened_at=BEGIN) as store:
        store.append(CONVERSATION, talk(), TOKENS)
        window, how = Scored(store, CONVERSATION), {"is_forced": True, "target_tokens": target_tokens}
        work = compaction.compact(window, _instant(TURNS), **how, incidents=Counter())
        return reports_of([run(work, Squeezing(), incidents=Counter())]), state(store)


@cache
def talk() -> list[Message]:
    """Two people, mostly in turn; some of what they say names a bundle."""
    return [
        Message(
            f"m{i}",
            "assistant" if i % 5 in (1, 3) else "user",
            f"{SAID[i % len(SAID)]} {i}" if i % len(SAID) not in (2, 6) else SAID[i % len(SAID)],
            "s",
            _instant(i),
            envelope={"metadata": {"continuity_bundle_id": f"b{i // 9}"}} if i % 9 < 4 else {},
        )
        for i in range(TURNS)
    ]


def _instant(number: int) -> datetime:
    return BEGIN + timedelta(minutes=7 * number)
