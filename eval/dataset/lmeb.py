"""LMEB: tasks of a retrieval benchmark over dialogues, each query with the candidates of its scene."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

from eval.dataset.card import Card, folder, read_card
from eval.dataset.dataset import Dataset, Draft, opaque_id, text_message
from eval.dataset.files import Published, Record, json_lines, text_lines, whole_number
from lcm.clock import EPOCH
from lcm.errors import DatasetError
from lcm.given import is_given
from lcm.records.conversation import Transcript
from lcm.records.query import Query

ASKED_AT = EPOCH + timedelta(days=1)
"""No document has a time, so documents date from the epoch; every query is asked the day after."""
_QUERIES, _QRELS, _CORPUS, _CANDIDATES = "queries.jsonl", "qrels.tsv", "corpus.jsonl", "candidates.jsonl"
_TURN = re.compile(r"_turn_\d+$")
_WHOLE = "corpus"  # the scene of a task without candidates


@dataclass(frozen=True, slots=True)
class _Subset:
    """A kind of queries of a task, with the documents that they are asked of."""

    name: str
    queries: Path
    qrels: Path
    corpus: Path
    candidates: Path | None
    prefix: str
    """Before its scenes where they are not those of the task."""

    def files(self) -> list[Path]:
        return [self.queries, self.qrels, self.corpus, *([self.candidates] if self.candidates else [])]

    def scene(self, query_id: str) -> str:
        """The first two parts of the query's id: `scene_0` of `scene_0_q_0`."""
        return self.prefix + ("_".join(query_id.split("_")[:2]) if self.candidates is not None else _WHOLE)


@dataclass(frozen=True, slots=True)
class Lmeb(Published):
    """One task: each scene is a workspace, and its candidates are what is searched.

    Times: none recorded. Judged unit: the document, which is a turn in LoCoMo.
    """

    task: str = "LoCoMo"
    """The name of the task's folder."""
    subsets: Sequence[str] | None = None
    """The kinds of queries that are taken, by folder; None: all."""

    card: ClassVar[Card] = read_card("lmeb")

    def __post_init__(self) -> None:
        Published.__post_init__(self)
        if self.subsets is not None and not self.subsets:
            raise ValueError("subsets must be null or a list of folders, got []")

    def load(self) -> Dataset:
        subsets = self._subsets()
        paths = list(dict.fromkeys(path for subset in subsets for path in subset.files()))
        found = [self.identified(path) for path in paths]
        queries = [query for subset in subsets for query in _queries(subset)]
        self.check_part(list(dict.fromkeys(query.workspace_id for query in queries)), f"task {self.task}")
        queries = [query for query in queries if self.takes(query.workspace_id)]
        asked = {query.workspace_id for query in queries}
        transcripts: dict[str, Transcript] = {}
        for corpus, candidates, prefix in dict.fromkeys((s.corpus, s.candidates, s.prefix) for s in subsets):
            documents = _documents(corpus)
            for scene, document_ids in _candidates(candidates, documents, prefix):
                if scene in transcripts:
                    raise DatasetError(f"{candidates}: scene {scene!r} stands twice")
                if scene in asked:
                    transcripts[scene] = _transcript(self.task, scene, document_ids, documents)
        if missing := sorted(asked - transcripts.keys()):
            asked_about = f"names no scene {missing[0]!r}, and queries ask about it"
            raise DatasetError(f"task {self.task}: {_CANDIDATES} {asked_about}")
        draft = Draft(list(transcripts.values()), queries)
        workspace = {query.query_id: query.workspace_id for query in queries}
        held = {name: {m.message_id for m in one.messages} for name, one in transcripts.items()}
        unknown = "judgements name no candidate of their scene and are left out"
        for query_id, document_id in dict.fromkeys(pair for subset in subsets for pair in _qrels(subset)):
            if query_id in workspace:
                message_id = _message_id(self.task, document_id)
                is_held = message_id in held[workspace[query_id]]
                draft.judge(query_id, [message_id] if is_held else [])
                draft.counts[unknown] += not is_held
        of_task = f"task={self.task} subsets={','.join(subset.name for subset in subsets)}"
        return self.dataset(draft, f"{of_task} unit=document", found)

    def _subsets(self) -> list[_Subset]:
        place = folder(self.card, self.directory)
        homes = {path.parent.parent for path in place.rglob(_QUERIES) if path.parent != place and is_given(path, place)}
        found = sorted(home for home in homes if home.name == self.task)
        if not found and place.name == self.task:
            found = [place]
        if len(found) != 1:
            others = ", ".join(sorted(home.name for home in homes)) or f"no folder with <subset>/{_QUERIES}"
            raise DatasetError(f"{place} holds {len(found)} folders of task {self.task!r}; there is {others}")
        (home,) = found
        names = sorted(path.parent.name for path in home.glob(f"*/{_QUERIES}") if is_given(path, place))
        unknown = [name for name in self.subsets or () if name not in names]
        if unknown or not names:
            named = f"no subset {unknown[0]!r}" if unknown else f"no <subset>/{_QUERIES}"
            raise DatasetError(f"{home} holds {named}; choose from: {', '.join(names)}")
        return [_subset(place, home, name) for name in names if self.subsets is None or name in self.subsets]


def _subset(place: Path, home: Path, name: str) -> _Subset:
    """Documents and candidates lie beside the queries of a subset, or above for all subsets."""
    own = home / name
    around, prefix = (own, f"{name}/") if is_given(own / _CORPUS, place) else (home, "")
    candidates = around / _CANDIDATES if is_given(around / _CANDIDATES, place) else None
    subset = _Subset(name, own / _QUERIES, own / _QRELS, around / _CORPUS, candidates, prefix)
    if missing := [path for path in subset.files() if not is_given(path, place)]:
        raise DatasetError(f"{missing[0]} is missing; get the task's folder whole")
    return subset


def _queries(subset: _Subset) -> Iterator[Query]:
    known = set[str]()
    for record in json_lines(subset.queries, f"{subset.name}/{_QUERIES}"):
        query_id = record.get("id", str)
        if query_id in known:
            raise record.wrong("id", f"{query_id!r} stands twice")
        known.add(query_id)
        scene = subset.scene(query_id)
        yield Query(f"{subset.name}/{query_id}", record.get("text", str), ASKED_AT, scene, subset.name)


def _documents(corpus: Path) -> dict[str, Record]:
    documents: dict[str, Record] = {}
    for record in json_lines(corpus, f"{corpus.parent.name}/{_CORPUS}"):
        if documents.setdefault(record.get("id", str), record) is not record:
            raise record.wrong("id", f"{record.fields['id']!r} stands twice")
    return documents


def _candidates(path: Path | None, documents: Mapping[str, Record], prefix: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Scene and its documents, in order; without candidates all documents are one scene."""
    if path is None:
        yield prefix + _WHOLE, list(documents)
        return
    for record in json_lines(path, f"{path.parent.name}/{_CANDIDATES}"):
        names = list(dict.fromkeys(record.texts("candidate_doc_ids")))
        if unknown := [name for name in names if name not in documents]:
            raise record.wrong("candidate_doc_ids", f"names {unknown[0]!r}, which is no document")
        yield prefix + record.get("scene_id", str), names


def _qrels(subset: _Subset) -> Iterator[tuple[str, str]]:
    """Query id and document id of each relevant document: three columns with tabs between, without a header."""
    for number, line in enumerate(text_lines(subset.qrels), start=1):
        match line.rstrip("\r\n").split("\t"):
            case [query_id, document_id, score] if (relevance := whole_number(score.strip())) is not None:
                if relevance > 0:
                    yield f"{subset.name}/{query_id}", document_id
            case [""]:
                continue
            case found:
                raise DatasetError(
                    f"{subset.name}/{_QRELS}: line {number}: must be query, document and a whole number with tabs "
                    f"between, got {found!r:.80}"
                )


def _message_id(task: str, document_id: str) -> str:
    return opaque_id("lmeb", task, document_id)


def _transcript(task: str, scene: str, document_ids: Sequence[str], documents: Mapping[str, Record]) -> Transcript:
    """The candidates in order; those whose ids differ in `_turn_<n>` alone are of one session."""
    messages = []
    for document_id in document_ids:
        record = documents[document_id]
        text = f"{record.find('title', str) or ''} {record.get('text', str)}".strip()
        session_id = opaque_id("lmeb", task, scene, "session", _TURN.sub("", document_id))
        messages.append(text_message(_message_id(task, document_id), session_id, text, record.fields))
    return Transcript(opaque_id("lmeb", task, scene), tuple(messages), workspace_id=scene)
