"""Changed windows from a node to the sink: tables of rows by schema, as bytes."""

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from controlplane.wire.aggregates.state_schema import to_bytes
from controlplane.wire.results import Changes
from controlplane.wire.results.table_codec import unpacked


def unpack_changes(data: bytes) -> Changes:
    """Return the changed windows that `pack` wrote."""
    return Changes(list(unpacked(data)))


def rows_by_query(changes: Changes, wanted: Collection[int]) -> dict[int, dict[str, list[bytes]]]:
    """Return the changed windows of each wanted query: the bytes of its rows, by state schema."""
    result: dict[int, dict[str, list[bytes]]] = {}
    for name, rows in changes.tables:
        query = np.asarray(rows["query"])
        for item in sorted({*np.unique(query).tolist()}.intersection(wanted)):
            data = to_bytes(rows.filter(pa.array(query == item)))
            result.setdefault(item, {}).setdefault(name, []).append(data)
    return result


def without_queries(changes: Changes, queries: Collection[int]) -> Changes:
    """Return the changed windows of all other queries."""
    if not queries:
        return changes
    ended = np.array(sorted(queries))
    return Changes(
        [
            (name, rows.filter(pa.array(~np.isin(np.asarray(rows["query"]), ended))))
            for name, rows in changes.tables
        ]
    )


def changed_queries(changes: Changes) -> list[int]:
    """Return the queries that have changed windows."""
    result = {
        item for _, rows in changes.tables for item in np.unique(np.asarray(rows["query"])).tolist()
    }
    return sorted(result)
