"""The truth: one SQLite file for each workspace. Indexes and vectors are caches of it."""
