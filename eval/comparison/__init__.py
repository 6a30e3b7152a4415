"""Runs held against a baseline, query by query: what `lcm compare`, `lcm regress` and the end of a sweep share."""
