"""What summarizers, compaction and assembly give over inputs made so that every setting can matter."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, replace
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import count
from typing import Any

from omegaconf import DictConfig

from lcm.compaction.work import run
from lcm.errors import AuthError
from lcm.protocols.compaction import Compaction
from lcm.protocols.context import ContextRequest
from lcm.records.conversation import Message
from lcm.records.summary import CompactionReport, Summary, SummaryRequest, SummaryResult
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from lcm.transcript.message_tokens import message_tokens
from lcm.transcript.rendering import rendered
from pipelines.config import building
from tests.lcm.compaction.contexts import BEGIN, CONVERSATION, NOW, lay_out, window
from tests.lcm.context.assembly.recorded import assistant, call, message, result, summary, user
from tests.lcm.retrieval.reranker.loopback import Answer, Asked
from tests.support.local_server import said, served

TOKENS = Utf16Units()
_UNITS_PER_TOKEN = 4


def digest(value: object) -> str:
    """Stands for a long value in a result."""
    return hashlib.sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()[:16]


TOPICS = ("harbour", "parser", "invoice", "goats", "kettle", "migration")
TURNS = (
    "The {0} broke on Monday. We decided that Ada repairs the {0} before the {1} closes.",
    "I moved src/{0}.py to lib/{0}.py and deleted {1}.txt. Fine.",
    "    return {0}({1}, goats[0]);\nNobody knows why the {1} of the {0} is slow.",
    "Yes. No. Buy a new {0}!",
    "The {0} and the {1} were counted twice, and the cranes with them, by a crew that had never seen a {0}. So it is.",
    "Did the {1} break? The {0} did not break on Monday.",
    "Ada likes the {0}.",
)
SPEAKERS = ("Ada (user)", "Bo (assistant)", "tool", "Ada (user)", "Bo (assistant)", "Ada (user)", "Carla (user)")
SOURCE = "\n\n".join(
    f"[2026-03-0{1 + i // 8} {9 + i % 8:02}:{7 * i % 60:02} UTC] {SPEAKERS[i * i % 7]}:\n"
    f"{TURNS[i % 7].format(TOPICS[i % 6], TOPICS[i * 5 // 3 % 6])}"
    for i in range(40)
)
"""Speakers, hours, code, files that are moved and deleted, short sentences and long ones that share words."""
PREVIOUS = "The harbour broke on Monday. Ada repairs the parser before the harbour closes."
JAPANESE = "来週の火曜日に東京で会議があります。やかんが壊れました。エイダは緑茶が好きです。" * 12
TASK = "the weather was fine again. decision: maria tests the parser tomorrow. is the game better than the music? "
"""What the small T5 of the tests was trained for."""
SHORT = (
    SummaryRequest(TASK, 40),
    SummaryRequest(TASK * 3, 40),
    SummaryRequest("Ada likes goats, Bo the old kettle.", 10),
    SummaryRequest("…", 40),
)
_OF_TURNS = SummaryRequest(SOURCE, 64, previous=PREVIOUS, turns=tuple(SOURCE.split("\n\n")))
REQUESTS = (
    SummaryRequest(SOURCE, 160),
    SummaryRequest(SOURCE, 140, depth=1, previous=SOURCE[:600]),
    SummaryRequest(SOURCE, 120, depth=2, is_aggressive=True),
    SummaryRequest(SOURCE, 300, depth=3),
    SummaryRequest(SOURCE, 600, depth=3),
    SummaryRequest(JAPANESE, 60),
    *SHORT,
    *(
        replace(_OF_TURNS, target_tokens=64 + number, technicality=technicality)
        for number, technicality in enumerate((0.1, 0.45, 0.9))
    ),
    replace(_OF_TURNS, target_tokens=70, technicality=0.9, is_extractive=True),
    SummaryRequest("empty words " * 50, 20),
)


def summarized(config: DictConfig) -> object:
    """Results, and what a language model was asked for them; it has no words for the last request."""
    if config.summarizer._target_.endswith(".T5"):  # its export lies in the cache; and letters are tokens to it
        return repr(building.build(config, "summarizer").summarize(SHORT, incidents=Counter()))
    with served(_shortening) as asked:
        results = building.build(config, "summarizer").summarize(REQUESTS, incidents=Counter())
    return repr(results), sorted(map(repr, asked))


def _shortening(request: Asked) -> Answer:
    words = request.body["messages"][-1]["content"]
    return said("" if "empty words" in words else f"{len(words)} units, {digest(words)}")


class Pressing:
    """Its answers name all that they were asked, and are too long for some texts, empty for one."""

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        return [SummaryResult(_pressed(request), 0.5, "pressing", "model") for request in requests]


def _pressed(request: SummaryRequest) -> str:
    kind = int(digest(request.text), 16) % 8
    (size,) = TOKENS.count([request.text])
    if kind == 0:
        return ""
    target = request.target_tokens
    tokens = {1: size, 2: target if request.is_aggressive else size, 3: 2 * target, 4: 4 * target}.get(kind, target)
    told = f"{target} {request.depth} {request.is_aggressive} {digest(request.previous)} {digest(request.text)} "
    return told.ljust(_UNITS_PER_TOKEN * tokens, "x")


class Refusing:
    """Has the wrong key."""

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        return [SummaryResult("", 0.0, "refusing", failure=AuthError("key refused")) for _ in requests]


def compacted(config: DictConfig) -> Iterator[object]:
    """Reports, and the store afterwards, of contexts that are lived through, swept, pressed, refused and late."""
    compaction: Compaction = building.build(config, "compaction")
    for scene in (_lived, _turned, _swept, _gapped, _refused, _late):
        yield scene(compaction)


def _lived(compaction: Compaction) -> object:
    """Ten messages a turn."""
    with Store(opened_at=NOW) as store:
        messages = spoken()
        store.append(CONVERSATION, messages[:60], TOKENS)
        view, reports = window(store), []
        for start in range(60, len(messages), 10):
            store.append(CONVERSATION, messages[start : start + 10], TOKENS)
            view.follow()
            reports.append(run(compaction.after_turn(view, NOW, incidents=Counter()), Pressing(), incidents=Counter()))
        return reports_of(reports), state(store)


def _turned(compaction: Compaction) -> object:
    """Leaves behind two summaries of depth 1, after a turn and in a sweep."""
    found = []
    for is_sweep in (False, True):
        with Store(opened_at=NOW) as store:
            made = _Items()
            items = [
                *(made.folded(1, 1000) for _ in range(2)),
                *(made.folded(0, 1000) for _ in range(8)),
                *(made.heard(10_000) for _ in range(3)),
                *(made.heard(50) for _ in range(64)),
            ]
            made.lay_out(store, items)
            if is_sweep:
                report = _compact(compaction, store, is_forced=True)
            else:
                work = compaction.after_turn(window(store), NOW, incidents=Counter())
                report = run(work, Pressing(), incidents=Counter())
            found.append((reports_of([report]), state(store)))
    return found


def _compact(
    compaction: Compaction,
    store: Store,
    at: datetime = NOW,
    summarizer: Any = None,
    clock: Any = None,
    **how: Any,
) -> CompactionReport:
    work = compaction.compact(window(store), at, **how, incidents=Counter())
    return run(work, summarizer or Pressing(), clock, incidents=Counter())


def _swept(compaction: Compaction) -> object:
    """All at once: as far as the threshold, then to the end."""
    with Store(opened_at=NOW) as store:
        store.append(CONVERSATION, spoken(), TOKENS)
        first, between = _compact(compaction, store), state(store)
        last = _compact(compaction, store, is_forced=True)
        return reports_of([first, last]), between, state(store)


def _gapped(compaction: Compaction) -> object:
    """To the end, and as far as a target."""
    found = []
    for how in ({"is_forced": True}, {"target_tokens": 100}):
        with Store(opened_at=NOW) as store:
            _lay_out_gaps(store)
            found.append((reports_of([_compact(compaction, store, **how)]), state(store)))
    return found


def _refused(compaction: Compaction) -> object:
    """Again and again, five minutes apart."""
    with Store(opened_at=NOW) as store:
        store.append(CONVERSATION, spoken()[:80], TOKENS)
        times = (NOW + timedelta(minutes=5 * n) for n in range(14))
        reports = [_compact(compaction, store, at, Refusing(), is_forced=True) for at in times]
        return reports_of(reports), state(store)


def _late(compaction: Compaction) -> object:
    """A summary takes 30 seconds, or 70."""
    found = []
    for seconds, target in ((30, None), (70, 100)):
        with Store(opened_at=NOW) as store:
            store.append(CONVERSATION, spoken(), TOKENS)
            clock = partial(next, count(0, seconds))
            report = _compact(compaction, store, clock=clock, is_forced=True, target_tokens=target)
            found.append((reports_of([report]), state(store)))
    return found


@cache
def spoken(number: int = 330) -> list[Message]:
    """Some 800 tokens each: words, calls with their results, pictures; every sixtieth comes back to one file, and holds
    what a host recalled."""
    found = []
    for i in range(number):
        words = f"{i} the {TOPICS[i % 6]} " * (60 + 37 * i % 240) + (
            "" if i % 60 else "in src/app.py <recalled>news</recalled>"
        )
        kinds: tuple[Callable[[], Message], ...] = (
            lambda words=words: user(words),
            lambda words=words: assistant(words),
            lambda i=i: call(f"call {i}"),
            lambda words=words, i=i: result(f"call {i - 1}", words),
            lambda words=words: _picture(words),
            lambda words=words: assistant(words),
        )
        found.append(_dated(kinds[i % 6](), i))
    return found


def _dated(said_: Message, number: int) -> Message:
    return replace(said_, message_id=f"m{number}", created_at=BEGIN + timedelta(minutes=7 * number))


def _picture(words: str) -> Message:
    blocks = [{"type": "text", "text": words}, {"type": "image", "source": {"data": "iVBORw0KGgo="}}]
    return message({"role": "user", "content": blocks})


class _Items:
    """Makes context items, each of its own number, hour and tokens."""

    def __init__(self) -> None:
        self._numbers = count()

    def folded(self, depth: int, tokens: int) -> Summary:
        n = next(self._numbers)
        at = BEGIN + timedelta(hours=n)
        words = f"{n} depth {depth} ".ljust(_UNITS_PER_TOKEN * tokens, "s")
        return replace(summary(words, f"sum_{n}", depth, earliest_at=at, latest_at=at), token_count=tokens)

    def heard(self, tokens: int) -> Message:
        n = next(self._numbers)
        return _dated(user(f"{n} said ".ljust(_UNITS_PER_TOKEN * tokens, "w")), n)

    @staticmethod
    def lay_out(store: Store, items: Sequence[Message | Summary]) -> None:
        contents = TOKENS.count([item.content for item in items])
        lay_out(store, items, contents)


def _lay_out_gaps(store: Store) -> None:
    """Summaries of depths 0 to 2 in runs of one to nine, with messages between them, and a tail."""
    made = _Items()
    made.lay_out(
        store,
        [
            *(made.folded(0, 1200) for _ in range(2)),
            made.heard(1500),
            made.heard(19_500),
            made.folded(1, 900),
            *(made.folded(0, 1500) for _ in range(9)),
            made.heard(10),
            made.folded(2, 700),
            made.heard(40),
            made.folded(2, 700),
            *(made.folded(1, 1000) for _ in range(3)),
            made.heard(2600),
            made.folded(1, 1000),
            *(made.folded(2, 1200) for _ in range(2)),
            *(made.folded(0, 500) for _ in range(5)),
            made.heard(30),
            made.folded(1, 1000),
            *(made.heard(700) for _ in range(2)),
            *(made.heard(50) for _ in range(64)),
        ],
    )


def reports_of(reports: Sequence[CompactionReport]) -> object:
    return [astuple(report) for report in reports]


def state(store: Store) -> object:
    """Context, summaries, and what compaction noted."""
    summaries = [(one.summary_id, one.level, one.token_count, digest(one)) for one in store.summaries()]
    return digest(store.context(CONVERSATION)), digest(summaries), digest(store.compactions().rows())


PROMPTS = ("", "the invoice of the harbour", "東京の会議", "text of the type toolCall")


def assembled(config: DictConfig) -> object:
    """Contexts of several budgets and prompts."""
    assembly = building.build(config, "assembly")
    asks = [ContextRequest(budget, prompt) for budget in (0, 500, 6_000, 9_000, 90_000) for prompt in PROMPTS]
    items = _shown()
    contexts = assembly.assemble(items, asks)
    return [
        (ask, context.tokens, context.budget_tokens, context.evicted, digest(context))
        for ask, context in zip(asks, contexts, strict=True)
    ], assembly.reads_prompts


@cache
def _shown() -> list[Message | Summary]:
    """Long old messages, summaries, calls far from their results on either side, results in another order, twice."""
    old: list[Message | Summary] = [
        user(f"{i} about the {TOPICS[i % 6]} " * (150 + 90 * (i % 5)), f"old{i}") for i in range(60)
    ]
    old[3] = call("far", message_id="far call")
    old[5] = result("early", "before its call", message_id="early result")
    old[10] = user("来週の火曜日に東京で会議があります", "tokyo")
    old[20] = summary("of the harbour", "sum_1", 1, source_ids=("sum_0",))
    old[30] = summary("of the invoice", "sum_2", 2, latest_at=NOW + timedelta(hours=20))
    old[40] = user("an invoice", "short")
    recent: list[Message | Summary] = [user(f"{i} and the {TOPICS[i % 6]} ".ljust(320), f"new{i}") for i in range(70)]
    recent[55] = call("one", "two", message_id="two calls")
    recent[56] = result("two", message_id="second")
    recent[57] = result("one", message_id="first")
    recent[58] = result("one", "again", message_id="twice")
    recent[62] = result("far", message_id="far result")
    recent[64] = call("early", message_id="late call")
    return [*old, *recent]


def counted(config: DictConfig) -> Any:
    """Tokens of texts of several scripts, of a message with an image, and of one whose usage is recorded."""
    texts = [
        "plain words",
        "東京で会議",
        "😀😀 kettle",
        "𠮷野家",
        "é" * 31,
        "😀" * 4,
        "",
        "встреча завтра в три",
        "ㄅㄆㄇ",
    ]
    estimator = building.build(config, "token_estimator")
    pictured = message({"role": "user", "content": [{"type": "image", "data": "AAAA"}]})
    billed = message({"role": "assistant", "content": "東京", "usage": {"output_tokens": 500}})
    return [*estimator.count(texts), *message_tokens([pictured, billed], rendered, estimator)]
