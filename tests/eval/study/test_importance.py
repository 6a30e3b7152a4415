"""What decides an objective is told once enough different configurations are there."""

import optuna
import pytest

from eval.study.report import IMPORTANCE_FROM, SAME_AS, importances

optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.mark.parametrize(("direction", "sign"), [("maximize", 1), ("minimize", -1)])
def test_what_decides_the_objective_is_the_more_important(direction: str, sign: int) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0), direction=direction)
    study.optimize(
        lambda trial: sign * -abs(trial.suggest_float("x", 0, 1) - 0.5) + 0 * trial.suggest_float("y", 0, 1), 40
    )
    shares = importances(study, sign)
    assert shares["x"] > 0.9
    assert sum(shares.values()) == pytest.approx(1)


def test_nothing_is_important_where_too_little_is_known() -> None:
    study = optuna.create_study()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), IMPORTANCE_FROM - 1)
    repeated = study.trials[0]
    repeated.user_attrs = {SAME_AS: 0}
    study.add_trial(repeated)
    assert importances(study, 1) == {}
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), 1)
    assert importances(study, 1) == {"x": 1.0}
