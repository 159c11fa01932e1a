"""Rows of windows as nodes give them out, for tests of the result store: meters and their volts."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.state_schema import PLACE, schema_named, schema_names
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import Computation, computation_of
from controlplane.wire.query_text import QueryText

COLUMNS: Final = {
    "meter": Kind.TEXT,
    "floor": Kind.INT,
    "volts": Kind.INT,
    "ts": Kind.TIME,
    "amps": Kind.FLOAT,
}
Changes = list[tuple[str, Any]]
HOUR_MS: Final = 3_600_000
# How much there was of each meter and hour: s0 counts records, s1 sums up.
BY_METER: Final = QueryText({"n": "count(*)", "total": "sum(volts)"}, 3600.0, key=("meter",))


def computed(text: QueryText = BY_METER) -> Computation:
    """Return what a query over meters computes."""
    return computation_of(text, COLUMNS)


def changes(computation: Computation, query: int, rows: Sequence[Mapping[str, Any]]) -> Changes:
    """Return rows of slots as a node gives them out; what a row does not name is 0."""
    name = schema_names(layout_of(computation))[0]
    form = schema_named(name)
    zeros = dict.fromkeys(form.arrow.names, 0) | dict.fromkeys(PLACE, 0)
    whole = [{**zeros, "query": query, **row} for row in rows]
    return [(name, pa.Table.from_pylist(whole, form.arrow))]
