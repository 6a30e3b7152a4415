"""What is refused of a summary, by its key; the laws of shapes."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.shape import FLAG, NUMBER, TEXT, check_summary, each, keys, list_of, or_null, read_json
from lcm.errors import LcmError

RUN: dict[str, Any] = {
    "dataset": {"name": "toy", "digest": "a", "protocol": "as is"},
    "measures": {"recall@10": {"value": 0.5, "n": 2, "low": None, "high": None}},
    "timing": {"latency_ms": {"query": {"p50_ms": 1.5}}, "seconds": {"total": 2.0}},
    "mine": {"anything": [1]},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"kind": 5}, "kind must be text, got 5"),
        ({"dataset": {"name": "toy"}}, "dataset.digest is missing"),
        ({"measures": {"MRR": {"value": True, "n": 1, "low": 0, "high": 1}}}, "measures.MRR.value must be a finite"),
        ({"timing": {"latency_ms": {"query": 5}}}, "timing.latency_ms.query must be a map, got 5"),
        ({"flags": "words"}, "flags must be a list, got 'words'"),
        ({"kind": "sweep", "name": "s", "points": [{"folder": "a", "error": None}]}, r"points\[0\].label is missing"),
        ({"kind": "study", "name": "s", "metrics": {}, "params": {}, "tags": {}}, "params.dataset is missing"),
        ({"counts": {"a\nb": "c\nd"}}, r"'counts.a\\nb' must be a finite number, got 'c\\nd'$"),
        ({"commit": "a" * 99, "config_hash": [0] * 99}, r"config_hash must be text, got \[0, .*…$"),
    ],
)
def test_a_summary_is_refused_by_its_key(changed: dict[str, Any], reason: str) -> None:
    check_summary(RUN)
    with pytest.raises(ValueError, match=f"^{reason}"):
        check_summary(RUN | changed)


@given(value=JSON)
def test_a_shape_takes_a_value_or_says_in_a_line_why_not(value: Any) -> None:
    shape = keys({"a": each(list_of(NUMBER))}, {"b": or_null(TEXT)}, others=FLAG)
    for one in (value, {"a": value}, {"a": {}, "b": value}, {"a": {}, "c": value}, {"a": {"x": [value]}}):
        try:
            shape("", one)
        except ValueError as error:
            assert len(str(error).splitlines()) == 1
        else:
            assert isinstance(one["a"], dict)
            assert all(isinstance(number, (int, float)) for numbers in one["a"].values() for number in numbers)


def test_a_file_of_another_shape_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "told.json"
    for text in ("{", "[]", "5", '{"a": "x"}', "[" * 200_000, '{"a": 1e400}', "{}"):
        path.write_text(text)
        with pytest.raises(LcmError, match=r"told\.json is damaged \(.*\); make it again$") as caught:
            read_json(path, keys({"a": NUMBER}), "make it again")
        assert "\n" not in str(caught.value)
    path.write_text('{"a": 1}')
    assert read_json(path, keys({"a": NUMBER}), "make it again") == {"a": 1}
