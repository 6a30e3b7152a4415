"""The tables of all plugins."""

from collections.abc import Mapping

from eval.preset import lancedb_pro, libravdb, lossless_claw
from eval.preset.table import Table

TABLES: Mapping[str, Table] = {table.name: table for table in (lancedb_pro.TABLE, lossless_claw.TABLE, libravdb.TABLE)}
