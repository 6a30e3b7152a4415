"""Which question, message or document a person names: by its id or its words, as far as they name one alone."""

from collections.abc import Collection

from rapidfuzz import fuzz, process

from eval.dataset.dataset import Dataset
from lcm.errors import LcmError
from lcm.records.query import Query

_NEAR, _NEAR_ID = 60.0, 80.0
"""Likeness, of 100, from which words or an id are offered as meant."""
_OFFERED = 3
_SHOWN = 60


def named_question(dataset: Dataset, named: str) -> Query:
    """The question of that id, of those words, or the one alone that begins so.

    Raises:
        LcmError: naming those that are like it, where none or several are meant.
    """
    wanted = _plain(named)
    by_id = [query for query in dataset.queries if query.query_id == named]
    by_text = [query for query in dataset.queries if _plain(query.text) == wanted]
    begins = [query for query in dataset.queries if wanted and _begins(query, named, wanted)]
    meant = by_id or by_text or begins
    if len(meant) == 1:
        return meant[0]
    if meant:
        told, offered = f"names {len(meant)} questions", meant[:_OFFERED]
    else:
        told, offered = "names no question", _like(dataset, wanted)
    options = "; ".join(f"{query.query_id} ({query.text[:_SHOWN]!r})" for query in offered)
    remedy = f"did you mean {options}?" if options else f"name one of its {len(dataset.queries):,} by id or words"
    raise LcmError(f"{named!r} {told} of {dataset.name}: {remedy}")


def named_id(named: str, ids: Collection[str], what: str) -> str:
    """The id, or the one alone that begins so.

    Args:
        what: they are ids of.
    Raises:
        LcmError: naming those that are like it, where none or several are meant.
    """
    meant = [named] if named in ids else [one for one in ids if named and one.startswith(named)]
    if len(meant) == 1:
        return meant[0]
    found = process.extract(named, ids, scorer=fuzz.ratio, limit=_OFFERED, score_cutoff=_NEAR)
    offered = meant[:_OFFERED] or [one for one, _, _ in found]
    told = f"names {len(meant)}" if meant else "names none"
    remedy = f"did you mean {', '.join(offered)}?" if offered else "name an id as the dataset has it"
    raise LcmError(f"expect={named} {told} of {what}: {remedy}")


def _begins(query: Query, named: str, wanted: str) -> bool:
    return query.query_id.startswith(named) or _plain(query.text).startswith(wanted)


def _like(dataset: Dataset, wanted: str) -> list[Query]:
    """Those whose ids are like it, then those whose words are."""
    ids = {i: query.query_id.casefold() for i, query in enumerate(dataset.queries)}
    texts = {i: _plain(query.text) for i, query in enumerate(dataset.queries)}
    found = process.extract(wanted, ids, scorer=fuzz.ratio, limit=_OFFERED, score_cutoff=_NEAR_ID)
    found += process.extract(wanted, texts, scorer=fuzz.WRatio, limit=_OFFERED, score_cutoff=_NEAR)
    return [dataset.queries[i] for i in dict.fromkeys(i for _, _, i in found)][:_OFFERED]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
