"""What a node gives out, as rows of each query: blocks are taken apart."""

from typing import Any

import numpy as np
import pyarrow as pa

from controlplane.wire.aggregates.state_schema import StateSchema
from workers.pipeline.engine.partial_aggregation import BatchChanges


def changed_rows(changed: BatchChanges) -> list[tuple[str, StateSchema, Any]]:
    """Return the changed windows and those in blocks, by form."""
    found = list(changed.windows)
    for block in changed.blocks:
        for query, incarnation in block.recipients:
            for name, form, rows in block.tables:
                for column, value in (("query", query), ("run", incarnation)):
                    at = rows.schema.get_field_index(column)
                    same = pa.array(np.full(len(rows), value, np.int64))
                    rows = rows.set_column(at, column, same)  # noqa: PLW2901 - one column after the other
                found.append((name, form, rows))
    return found
