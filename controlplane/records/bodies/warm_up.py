"""Imports and prepares what a first conversion does, once for all children of the fork server.

Arrow imports pandas with the first list that becomes an array, which takes a second. No thread may
start here: a fork has none of them.
"""

from controlplane.records.bodies import Format, conform
from controlplane.wire.schema import ColumnSpec, StreamSchema

conform(b'[{"v": "0.5"}]', Format.JSON, StreamSchema((ColumnSpec("v", "decimal(2, 1)"),)))
