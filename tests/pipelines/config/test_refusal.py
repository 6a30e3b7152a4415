"""Everything that is wrong with a command line is told in one error, as far as it can be known."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest

from lcm.errors import LcmError
from pipelines import cli
from pipelines.config.command_line import command, multirun, read
from pipelines.config.composition import CompositionCache, composed
from pipelines.steps.point import parts_of
from pipelines.steps.sweep import checked_points


def refusal(*parts: Sequence[str]) -> str:
    """As `lcm evaluate` tells it."""
    overrides = list(chain(*parts))
    with pytest.raises(LcmError) as refused:
        if "-m" in overrides:
            checked_points(multirun(command(overrides)).points, CompositionCache())
        else:
            parts_of(read(overrides).config, overrides)
    told = str(refused.value)
    assert "\n" not in told
    return told


def missing(told: str, reasons: Sequence[str]) -> list[str]:
    return [reason for reason in reasons if reason not in told]


def test_unknown_choices_and_keys_and_values_and_idle_settings_are_told_together() -> None:
    told = refusal(
        ["fusion=recip", "means.resampels=3", "decay.foo=1", "means.confidence=7"],
        ["source.dense_pool_size=x", "y==", "extraction=llm"],
    )
    assert not missing(
        told,
        [
            "fusion=recip: no such choice; choose one of: hybrid_score",
            "means.resampels: no such key; did you mean means.resamples?",
            "decay.foo: no such key; the decay that is chosen has none. Choose another with decay=CHOICE",
            "means.confidence must be in (0, 1), got 7",
            "source.dense_pool_size must be a whole number, got 'x'",
            "'y==' is not an override: write KEY=VALUE",
            "extraction asks a language model and there is none: choose language_model=openai_compatible",
        ],
    ), told


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("fusion.dense_weight=0.5", "the fusion that is chosen (unified) has none; fusion=weighted_sum or"),
        ("fusion.dense_weight=0.5", "has it (system=hybrid, system=lancedb_pro, system=lancedb_pro_tuned)"),
        ("decay.floor_working=0.5", "the decay that is chosen (none) has none; decay=weibull or"),
        ("ranking.stages.lexical_score.scale=3", "the ranking that is chosen (unified) has none; ranking=hybrid or"),
        ("fusion.dense_wieght=0.5", "fusion.dense_wieght: no such key; did you mean fusion.weights?"),
    ],
)
def test_a_key_that_other_choices_have_is_told_with_them(override: str, told: str) -> None:
    assert told in refusal([override])


def test_what_cannot_work_together_is_told_beside_bad_values() -> None:
    told = refusal(
        ["fusion=reciprocal_rank", "fusion.dense_weight=0", "fusion.lexical_weight=0", "means.confidence=7"],
        ["executor=local", "measures.latency.queries=3", "cache=maybe", "deduplication=model"],
    )
    assert not missing(
        told,
        [
            "fusion.dense_weight and fusion.lexical_weight must not both be 0",
            "means.confidence must be in (0, 1), got 7",
            "measures.latency.queries=3: queries cannot be timed while workers share the machine",
            "cache must be true or false, got 'maybe'",
            "deduplication asks a language model and there is none",
        ],
    ), told


def test_a_key_is_not_called_unknown_where_the_choice_that_may_have_it_is() -> None:
    told = refusal(["fusion=recip", "fusion.k=3", "embedder=hashing"])
    assert told.startswith("fusion=recip: no such choice;")
    assert "fusion.k" not in told
    told = refusal(["system=unifed", "fusion.k=3", "decay=weibul", "means.resampels=3", "means.resamples=0"])
    assert "fusion.k" not in told
    reasons = ["system=unifed: no", "decay=weibul: no", "means.resampels: no", "means.resamples must be >= 1, got 0"]
    assert not missing(told, reasons), told


def test_what_is_missed_for_want_of_a_refused_choice_is_not_told() -> None:
    told = refusal(["extraction=llm", "language_model=openai", "means.confidence=7"])
    assert told.startswith("language_model=openai: no such choice;")
    assert "there is none" not in told
    assert "means.confidence must be in (0, 1)" in told


def test_every_point_of_a_multirun_tells_all_that_is_wrong_with_it() -> None:
    told = refusal(["-m", "fusion=recip,weighted_sum", "means.resampels=3", "means.confidence=7"])
    assert not missing(told, ["fusion=recip: no such choice", "means.resampels: no", "means.confidence must be"]), told
    told = refusal(["-m", "fusion=recip", "means.confidence=.9,7"])
    assert not missing(told, ["fusion=recip: no such choice", "means.confidence must be in (0, 1), got 7"]), told


def test_one_wrong_override_among_many_is_told_alone() -> None:
    overrides = ["system=unified", "fusion.dense_wieght=1", "means.seed=3", "measures.latency.queries=0"]
    with pytest.raises(LcmError) as refused:
        composed(overrides)
    assert str(refused.value).startswith("fusion.dense_wieght: no such key; ")
    assert "; " not in str(refused.value).partition("; ")[2]


def test_settings_of_a_path_or_an_order_that_no_query_takes_are_refused() -> None:
    told = refusal(
        ["ranking=lancedb_pro", "ranking.vector.source.pool_size=3", "ranking.hybrid.orders.code=[]"],
        ["ranking.tag.source.pool_size=3", "ranking.hybrid.orders.description=[fusion,limit]"],
    )
    assert not missing(
        told,
        [
            "ranking.vector.source.pool_size=3 has no effect: no query takes the path vector while ranking.mode=hybrid",
            "ranking.hybrid.orders.code=[] has no effect: ranking.order=description takes another order",
        ],
    ), told
    assert "tag" not in told
    assert "orders.description=" not in told


def test_choices_of_a_searched_folder_are_known_wherever_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "decay").mkdir()
    (tmp_path / "decay" / "mine.yaml").write_text("_target_: lcm.retrieval.decay.none.NoDecay\n")
    told = refusal(["decay=mine", "means.foo=1", f"hydra.searchpath=[file://{tmp_path}]"])
    assert told.startswith("means.foo: no such key")
    assert "decay" not in told


@pytest.mark.parametrize(
    ("group", "text", "told"),
    [
        ("fusion", "- a\n- b\n", "is a list: write _target_: CLASS and its settings there"),
        ("decay", "", "sets nothing: write _target_: CLASS"),
        ("decay", "rate: 3\n", "is no component: write _target_: CLASS"),
        ("arms", "- a\n", "is a list: write NAME: and its settings"),
        ("experiment", "fusion: {k: 3}\n", "is without effect: write KEY: VALUE there, below a first line # @package"),
    ],
)
def test_a_choice_that_is_none_is_told_with_its_file(group: str, text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / group).mkdir()
    (tmp_path / group / "mine.yaml").write_text(text)
    with pytest.raises(LcmError) as caught:
        composed([f"{group}=mine", f"hydra.searchpath=[file://{tmp_path}]"])
    assert str(caught.value).startswith(f"{group}=mine: {tmp_path / group / 'mine.yaml'} {told}")


def test_a_folder_to_search_that_is_not_there_is_refused_without_a_warning_of_hydra(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    with pytest.raises(
        LcmError, match=r"^hydra.searchpath: no such folder '.*/none'; name one .*; decay=mine: no such"
    ):
        composed([f"hydra.searchpath=[file://{tmp_path}/none]", "decay=mine"])
    assert not recwarn.list


def test_a_key_below_one_that_is_null_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["evaluate", "++hydra.sweeper.params.decay.k=1", "embedder=hashing"]) == cli.BAD_INPUT
    said = capsys.readouterr().err
    assert said == (
        "lcm: ++hydra.sweeper.params.decay.k=1: what stands above that key holds no settings: set it first, or leave "
        "this out\n"
    )
