"""Vectors to neighbours: one module a choice."""
