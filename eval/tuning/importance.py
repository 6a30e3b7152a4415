"""How much each key of a search space decides whether a trial is good."""

import warnings
from collections.abc import Mapping

import optuna
from optuna.study import Study as OptunaStudy

from eval.tuning.study_report import SAME_AS

IMPORTANCE_FROM = 30
"""Different configurations: the best tenth, which is held against all, is then three trials at least."""


def importances(study: OptunaStudy, sign: int) -> Mapping[str, float]:
    """How much each key decides whether the first objective is good, by PED-ANOVA: shares that add up to 1.

    Args:
        sign: of the first objective; 1 = the larger, the better.
    Returns:
        Empty if fewer than `IMPORTANCE_FROM` trials are complete, or all are equally good.
    Source: Watanabe, Bansal and Hutter, "PED-ANOVA", IJCAI 2023.
    """
    complete = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    values = {trial.values[0] for trial in complete}
    if sum(SAME_AS not in trial.user_attrs for trial in complete) < IMPORTANCE_FROM or len(values) < 2:
        return {}
    with warnings.catch_warnings():
        # Of low values: so it is meant.
        warnings.filterwarnings("ignore", message="PedAnovaImportanceEvaluator computes|Some regimes for parameter")
        return optuna.importance.get_param_importances(study, target=lambda trial: -sign * trial.values[0])
