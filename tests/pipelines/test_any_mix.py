"""Any component beside any other: every pair of choices of two groups stands in one of these evaluations.

Each runs, or is refused in one line before any work. The models are tiny and the servers are on this machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import pytest
from allpairspy import AllPairs

from eval.dataset.dataset import Dataset
from eval.dataset.sample import Sample
from lcm.errors import LcmError
from lcm.retrieval.embedder.hashing import Hashing
from pipelines.config import composition, conf_folder, contracts
from pipelines.steps.point import evaluated
from tests.lcm.retrieval.reranker.loopback import Answer, Asked
from tests.lcm.retrieval.reranker.test_cross_encoder import build_cross_encoder
from tests.pipelines.conftest import QUICK, Lcm
from tests.support.embedding_server import EmbeddingServer
from tests.support.local_server import said, served
from tests.support.models import BuildModel, TinyT5, describe, linked
from tests.support.weekly import of_this_week

CONF = conf_folder.conf_dir()
APART = {
    "answerer": "of another command's table of contents",
    "recall": "likewise",
    "executor": "where work is done: it changes no number",
    "arms": "beside the system, not of it",
    "dataset": "the sample: others lie in folders that not every machine has",
    "experiment": "presets of everything",
    "external": "a memory of others, which ranking=external asks: tests/eval/external",
    "kinds": "which questions are made, of another command",
    "measures": "one choice",
    "space": "what a study may turn, of another command",
    "sweep": "presets of whole sweeps",
    "system": "presets of the groups that are mixed here",
    "tracking": "where the numbers go",
}
"""Groups that are not mixed, and why."""

GROUPS = {
    folder.name: sorted(path.stem for path in folder.glob("*.yaml") if path.stem != "external")
    for folder in sorted(CONF.iterdir())
    if folder.is_dir() and folder.name not in APART and len(list(folder.glob("*.yaml"))) > 1
}
MIXES: list[dict[str, str]] = [dict(zip(GROUPS, row, strict=True)) for row in AllPairs(list(GROUPS.values()))]
OF_EXPORTED_MODELS = {"t5", "minilm", "chain", "routed"}
IN_CI = of_this_week(range(len(MIXES)), 12)
NUMBERS = [pytest.param(i, marks=pytest.mark.slow if i in IN_CI else pytest.mark.full) for i in range(len(MIXES))]


def test_every_pair_of_choices_is_mixed() -> None:
    wanted = {
        ((one, a), (other, b)) for one, other in combinations(GROUPS, 2) for a in GROUPS[one] for b in GROUPS[other]
    }
    mixed = {pair for mix in MIXES for pair in combinations(mix.items(), 2)}
    assert wanted == mixed


def test_a_group_that_is_not_mixed_is_named() -> None:
    alone = {
        folder.name for folder in CONF.iterdir() if folder.is_dir() and len(list(folder.glob("*.yaml"))) == 1
    } - set(APART)
    assert set(GROUPS) | set(APART) | alone == {folder.name for folder in CONF.iterdir() if folder.is_dir()}


@pytest.fixture(scope="module")
def exported(built_t5: TinyT5, exported_minilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds the models that other tests have exported."""
    cache = tmp_path_factory.mktemp("exported")
    for made in (built_t5.cache, exported_minilm):
        linked(made, cache)
    return cache


@pytest.fixture(scope="module")
def talk() -> Dataset:
    """Two of the sample's four conversations, the short ones: models read every message."""
    return Sample().load().part(["ryokou", "zhongwen"])


@pytest.fixture(scope="module")
def server() -> Iterator[None]:
    with served(_answer):
        yield


def _answer(asked: Asked) -> Answer:
    """What a reranker and a chat model say; whoever asks a model for JSON has to live with prose."""
    if asked.path.endswith("embeddings"):
        return EmbeddingServer(Hashing(dim=96))(asked)
    if asked.path.endswith("rerank"):
        return Answer({"results": [{"index": i, "relevance_score": 1 / (i + 1)} for i in range(3)]})
    return said("They talked about a ferry and a garden.")


def tiny(mix: Mapping[str, str], place: Path, t5: TinyT5 | None, build: BuildModel) -> Sequence[str]:
    """Where the models and servers of a mix are."""
    found = [
        "language_model.model.base_url=${oc.env:LCM_TEST_SERVER}/v1"
        if mix["language_model"] == "openai_compatible"
        else "",
        "reranker.endpoint=${oc.env:LCM_TEST_SERVER}/rerank" if mix["reranker"] == "remote" else "",
        "" if t5 is None else f"summarizer.model={t5.trained}",
    ]
    if mix["embedder"] == "openai_compatible":
        own = {"base_url": "${oc.env:LCM_TEST_SERVER}/v1", "dimensions": 96, "api_key_env": "null"}
        found += [f"embedder.{key}={value}" for key, value in own.items()]
    if mix["embedder"] in ("hub", "onnx", "nomic"):
        directory = build(width=96)
        describe(directory, pooling="cls_token", max_seq_length=128)
        found += [f"embedder.directory={directory}", "embedder.file=model.onnx"]
    if mix["reranker"] == "cross_encoder":
        build_cross_encoder(place / "cross")
        found.append(f"reranker.directory={place / 'cross'}")
    return [one for one in found if one]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_mix_runs_or_is_refused_in_one_line(
    number: int,
    tmp_path: Path,
    server: None,
    talk: Dataset,
    request: pytest.FixtureRequest,
    build_model: BuildModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mix = MIXES[number]
    needs_models = not OF_EXPORTED_MODELS.isdisjoint(mix.values())
    monkeypatch.setenv(
        "LCM_CACHE_DIR", str(request.getfixturevalue("exported") if needs_models else tmp_path / "cache")
    )
    monkeypatch.delenv("LCM_DATASETS_DIR", raising=False)
    chosen = [f"{group}={choice}" for group, choice in mix.items()]
    ours = [argument for argument in QUICK if not argument.startswith("embedder=")]
    t5 = request.getfixturevalue("built_t5") if mix["summarizer"] == "t5" else None
    overrides = [*chosen, *tiny(mix, tmp_path, t5, build_model), *ours, "measures.retention.budgets=[1000]"]
    folder = tmp_path / "run"
    config = composition.composed(overrides)
    try:
        contracts.refuse_unused(config, overrides)
        summary = evaluated(config, folder, lambda *_: None, talk)
    except (LcmError, ValueError) as error:  # what `lcm` tells in its one line
        assert "\n" not in str(error)
        assert not (folder / "summary.json").exists()
    else:
        assert summary["counts"]["judged_queries"] == talk.qrels["query_id"].n_unique()


def test_the_three_systems_lend_each_other_their_parts(lcm: Lcm) -> None:
    finished = lcm(
        "evaluate", "system=lancedb_pro", "vector_index=hnsw_tiers", "compaction=clustering", "assembly=continuity",
        *QUICK, "measures.retention.budgets=[1000]",
    )  # fmt: skip
    assert finished.code == 0, finished.stderr
