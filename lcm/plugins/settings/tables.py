"""The tables of all plugins."""

from collections.abc import Mapping

from lcm.plugins.lancedb_pro import settings_table as lancedb_pro
from lcm.plugins.libravdb import settings_table as libravdb
from lcm.plugins.lossless_claw import settings_table as lossless_claw
from lcm.plugins.settings.table import Table

TABLES: Mapping[str, Table] = {table.name: table for table in (lancedb_pro.TABLE, lossless_claw.TABLE, libravdb.TABLE)}
