"""Invalid configurations are refused with the path and the rule, in one line."""

import copy
from typing import Any

import pytest

from lcm.errors import LcmError
from lcm.plugins.settings.tables import TABLES, check, put
from lcm.plugins.settings.translation import read
from tests.lcm.plugins.settings.conftest import MINIMAL

INVALID = [
    ("lancedb_pro", "retrieval.vectorWeight", 1.4, "1.4 is greater than the maximum of 1"),
    ("lancedb_pro", "retrieval.recencyWeight", -0.1, "-0.1 is less than the minimum of 0"),
    ("lancedb_pro", "retrieval.candidatePoolSize", 20.5, "20.5 is not of type 'integer'"),
    ("lancedb_pro", "retrieval.filterNoise", "yes", "'yes' is not of type 'boolean'"),
    ("lancedb_pro", "retrieval.rerank", "cosine", "'cosine' is not one of ['cross-encoder', 'lightweight', 'none']"),
    ("lancedb_pro", "retrieval.vektorWeight", 0.5, "no such setting: is vectorWeight meant?"),
    ("lancedb_pro", "admissionControl", "balanced", "'balanced' is not of type 'object'"),
    ("lossless_claw", "contextThreshold", "0.5", "'0.5' is not of type 'number'"),
    ("lossless_claw", "largeFileTokenThreshold", 30000, "no such setting: is largeFileThresholdTokens meant?"),
    ("lossless_claw", "circuitBreakerThreshold", 5, "no such setting"),
    ("lossless_claw", "ignoreSessionPatterns", "agent:*", "'agent:*' is not of type 'array'"),
    ("lossless_claw", "skipStatelessSessions", 1, "1 is not of type 'boolean'"),
    ("libravdb", "gatingWeights.w4c", 0.1, "no such setting: is w3c meant?"),
    ("libravdb", "markdownIngestionRoots", ["/notes", 7], "7 is not of type 'string'"),
    ("libravdb", "gatingTechNorm", 0, "0 is less than or equal to the minimum of 0"),
]


@pytest.mark.parametrize(("name", "path", "value", "rule"), INVALID, ids=lambda part: str(part)[:40])
def test_what_is_wrong_is_told_with_its_path(name: str, path: str, value: Any, rule: str) -> None:
    document = copy.deepcopy(dict(MINIMAL[name]))
    put(document, path, value)
    with pytest.raises(LcmError) as refused:
        read(TABLES[name], document)
    told = str(refused.value)
    where = f"{path}.1" if isinstance(value, list) and path.endswith("Roots") else path
    assert told.startswith(f"{TABLES[name].plugin}: {where}: {rule}")
    assert "\n" not in told


@pytest.mark.parametrize(
    ("document", "rule"),
    [
        ({}, "'embedding' is a required property"),
        ({"embedding": {"model": "m"}}, "embedding: 'apiKey' is a required property"),
        ({"embedding": {"apiKey": "k"}, "retrival": {}}, "retrival: no such setting: is retrieval meant?"),
    ],
)
def test_a_configuration_needs_the_key_of_its_embedder(document: dict[str, Any], rule: str) -> None:
    with pytest.raises(LcmError, match=rf"^memory-lancedb-pro: {rule.replace('?', '[?]')}$"):
        check(document, TABLES["lancedb_pro"].schema(), "memory-lancedb-pro")


@pytest.mark.parametrize("keys", ["", ["sk-secret", 3], ["sk-secret", ""]])
def test_a_key_that_is_not_valid_is_not_shown(keys: Any) -> None:
    with pytest.raises(LcmError, match=r"^memory-lancedb-pro: embedding\.apiKey(\.1)?: \*\*\* is not valid") as refused:
        check({"embedding": {"apiKey": keys}}, TABLES["lancedb_pro"].schema(), "memory-lancedb-pro")
    assert "sk-secret" not in str(refused.value)


def test_nothing_but_an_object_is_a_configuration() -> None:
    with pytest.raises(LcmError, match=r"\[\] is not of type 'object'"):
        check([], TABLES["libravdb"].schema(), "libravdb-memory")
