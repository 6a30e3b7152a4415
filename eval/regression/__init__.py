"""A candidate against a baseline, query by query: has anything become worse?"""
