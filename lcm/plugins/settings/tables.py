"""The tables of all plugins."""

from collections.abc import Mapping

from lcm.errors import LcmError
from lcm.plugins.lancedb_pro import settings_table as lancedb_pro
from lcm.plugins.libravdb import settings_table as libravdb
from lcm.plugins.lossless_claw import settings_table as lossless_claw
from lcm.plugins.settings.table import Table

VERSIONS: Mapping[str, Mapping[str, Table]] = {
    "lancedb_pro": lancedb_pro.VERSIONS,
    "lossless_claw": lossless_claw.VERSIONS,
    "libravdb": libravdb.VERSIONS,
}
"""Plugin, by our name of it -> the versions of its manifest that are known, and their tables."""

TABLES: Mapping[str, Table] = {name: next(iter(known.values())) for name, known in VERSIONS.items()}
"""The tables of the versions whose code is rebuilt here."""


def named_table(named: str) -> Table:
    """The table that `NAME` or `NAME@VERSION` names; a version may be cut short where that leaves one.

    Raises:
        LcmError: if there is no such plugin, or no such version of it, naming those that are known.
    """
    name, has_version, version = named.partition("@")
    if name not in VERSIONS:
        raise LcmError(f"no such plugin: {name!r}; choose from: {', '.join(VERSIONS)}")
    if not has_version:
        return TABLES[name]
    known = VERSIONS[name]
    found = [table for one, table in known.items() if one == version or one.startswith(f"{version}.")]
    if len(found) != 1 or not version:
        raise LcmError(f"{TABLES[name].plugin} {version}: no manifest of it is known; choose of: {', '.join(known)}")
    return found[0]
