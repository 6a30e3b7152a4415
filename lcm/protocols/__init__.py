"""Every contract, with its laws. A component satisfies one by shape; nothing inherits from here.

Contracts take batches: one is a batch of one. Time (`now`, `asked_at`) and randomness arrive as arguments, and so does
`incidents`: whoever falls back counts there what failed, by name and times, and logs a warning; a ranking's steps find
it in their batch. Components hold no counters, so memories of one system never mix theirs.
Conformance tests run each law over every YAML choice of the group.
"""
