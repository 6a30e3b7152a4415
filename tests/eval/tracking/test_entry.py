"""What a summary says, as MLflow takes it: words of data are names of metrics, and none stands in another's place."""

from hypothesis import given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric_name

from eval.tracking.entry import metrics

categories = st.sampled_from(["a", "a/b", "a_b", "a+b", "../x", "/x", "", ".", "..", "x//y", "é", "è", "x" * 300])


@given(st.sets(categories | st.text(max_size=20), max_size=6))
def test_categories_of_any_words_are_metrics_of_their_own(categories: set[str]) -> None:
    told = {category: {"recall@10": {"value": n, "low": n, "high": n}} for n, category in enumerate(categories)}
    found = list(metrics({"categories": told}))
    for name, _ in found:
        _validate_metric_name(name)
    assert len({name for name, _ in found}) == 3 * len(categories)
    assert {value for _, value in found} == set(range(len(categories)))


def test_plain_names_stay() -> None:
    told = {"single-hop": {"nDCG@10": {"value": 1, "low": None, "high": None}}, "a (b)": {"n": 3}}
    assert dict(metrics({"categories": told})) == {"category/single-hop/nDCG_at_10": 1, "category/a _b_/n": 3}
