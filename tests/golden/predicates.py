"""The predicates and assertions that `deviations.yaml` names."""
