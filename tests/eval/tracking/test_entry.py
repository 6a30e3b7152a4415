"""What a summary says, as MLflow takes it: names from outside are metrics, and none stands in another's place."""

from hypothesis import given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric_name

from eval.tracking.entry import metrics

names = st.sampled_from(["a", "a/b", "a_b", "a+b", "../x", "/x", "", ".", "..", "x//y", "é", "è", "x" * 300])


@given(st.sets(names | st.text(max_size=20), max_size=6))
def test_measures_of_any_names_are_metrics_of_their_own(measures: set[str]) -> None:
    told = {name: {"value": n, "low": n, "high": n} for n, name in enumerate(measures)}
    found = list(metrics({"outside": told, "measures": {}}))
    for name, _ in found:
        _validate_metric_name(name)
    ours = {name: value for name, value in found if name.startswith("outside/")}
    assert set(ours.values()) == set(range(len(measures)))
