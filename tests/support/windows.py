"""Windows of queries as the pipeline writes them, for whoever reads results."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from controlplane.connections import redis_client
from controlplane.models import Query
from controlplane.selectors.computations import computation_of_query
from controlplane.wire.forms import PLACE, named, names_of
from controlplane.wire.layout import layout_of
from controlplane.wire.results import Changes, write


def write_windows(query: Query, batch: int, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of slots in a batch: `pane` (ms), the key as k0, k1, ..., the slots s0, s1, ...

    What a row does not name is 0.
    """
    name, _, _ = names_of(layout_of(computation_of_query(query)))
    form = named(name)
    zeros = dict.fromkeys(PLACE, 0) | {"query": query.pk}
    table = pa.Table.from_pylist([zeros | dict(row) for row in rows], form.schema)
    write(redis_client(), query.cluster.slug, batch, Changes([(name, table)]))
