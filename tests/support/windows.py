"""Windows of queries as the pipeline writes them, for whoever reads results."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from django.db import connections, transaction

from controlplane.catalog.computations import computation_of_query
from controlplane.models import Query
from controlplane.results.database import RESULTS, is_postgres
from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.sampling import sample_cells
from controlplane.wire.aggregates.sketches import float_codes
from controlplane.wire.aggregates.state_schema import PLACE, schema_named, schema_names
from controlplane.wire.results.finalized import ResultQuery
from controlplane.wire.results.writer import WindowWriter

T = TypeVar("T")


class DjangoDatabase:
    """The database of results through Django's connection, within the test's transaction."""

    @property
    def is_postgres(self) -> bool:
        return is_postgres()

    def run(self, work: Callable[[Any], T]) -> T:
        with transaction.atomic(RESULTS), connections[RESULTS].cursor() as cursor:
            return work(cursor)


def write_windows(query: Query, batch: int, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of slots in a batch: `pane` (ms), the key as k0, k1, ..., the slots s0, s1, ...

    What a row does not name is 0. A float may stand for the code in which its largest is kept.
    `kept`: the chance at which each record of the row (s0) was kept, if rules dropped others.
    """
    name, cells, _ = schema_names(layout_of(computation_of_query(query)))
    form = schema_named(name)
    zeros = dict.fromkeys(PLACE, 0) | {"query": query.pk}
    whole = {field.name for field in form.arrow if pa.types.is_int64(field.type)}
    stored = [{n: _stored(v) if n in whole else v for n, v in row.items()} for row in rows]
    table = pa.Table.from_pylist([zeros | row for row in stored], form.arrow)
    changes = [(name, table), *((cells, sample) for sample in _samples(cells, table, rows))]
    computation, streams = computation_of_query(query), query.streams.count()
    result = ResultQuery.of(computation, streams, query.incarnation)

    def queries(wanted: Collection[int]) -> dict[int, ResultQuery]:
        return dict.fromkeys(wanted, result)

    writer = WindowWriter(DjangoDatabase(), query.cluster.slug)
    writer.take(batch, changes, queries)
    writer.flush()


def _samples(name: str, table: Any, rows: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """Yield the cells of the samples of rows."""
    form = schema_named(name).arrow
    for index, row in enumerate(rows):
        if "kept" in row:
            places = table.select([n for n in form.names if n in table.column_names])
            each = places.take(pa.array(np.full(row["s0"], index)))
            yield sample_cells(each, np.full(row["s0"], row["kept"])).select(form.names)


def _stored(value: Any) -> Any:
    return int(float_codes(np.array([value]))[0]) if isinstance(value, float) else value
