"""Queries over columns of every kind, with windows as the sink stores them."""

import math
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Query
from controlplane.queries.spec import QuerySpec
from controlplane.results.database import is_postgres, results_cursor
from controlplane.results.sql.schemas import update_views
from controlplane.topology import queries, streams
from controlplane.topology.streams import StreamSpec
from controlplane.wire.query_text import QueryText
from controlplane.wire.results.json_values import arrays_of
from controlplane.wire.results.tables import create_partitions
from tests.support.schemas import READINGS

MINUTE: Final = 60_000
# A Monday, 2026-11-30 00:00.
START: Final = 1_795_996_800_000 // MINUTE * MINUTE
ALL_KINDS: Final = QueryText(
    {
        "n": "count(*)", "total": "sum(serial)", "price_sum": "sum(price)",
        "level_max": "max(level)",
        "price_mean": "mean(price)", "half": "median(level)", "spread": "stddev(level)",
        "stations": "count_distinct(station)", "first": "min(at)", "oldest": "min(built)",
        "any_open": "max(open)", "last_station": "max(station)", "common": "top_k(station, 2)",
    },
    60.0, key=("stream", "station", "open", "price", "built", "grade", "level", "at"),
)  # fmt: skip
KEY: Final = (
    "kiosk \u00e4 'x'", True, Decimal("12.500000000"), date(2026, 1, 31), 7, 0.1, START + 1500,
)  # fmt: skip
VALUES: Final = (
    3, 10**20, Decimal("37.500000000"), math.inf, Decimal("12.500000000"), 0.5, math.nan, 2,
    START + 1, date(1999, 12, 31), False, "kiosk", [["kiosk", 2], ["b", 1]],
)  # fmt: skip


@pytest.fixture
def readings(operator: Actor, sf: Cluster) -> Cluster:
    """A cluster with streams r0 and r1 of every type, and without queries."""
    specs = [
        StreamSpec(name, schema=READINGS.to_json(), declared_rate=1.0) for name in ("r0", "r1")
    ]
    streams.register(operator, sf, specs)
    sf.refresh_from_db()
    return sf


@pytest.fixture
def everything(operator: Actor, readings: Cluster) -> Query:
    """A query with a key of every kind and every aggregate, with a window of each stream."""
    query = queries.submit(operator, readings, QuerySpec("all-kinds", ("r0", "r1"), ALL_KINDS))
    ids = sorted(query.streams.values_list("pk", flat=True))
    store(query, [(START, (ids[0], *KEY), VALUES)])
    store(query, [(START + MINUTE, (ids[1], *[None] * len(KEY)), [None] * len(VALUES))])
    update_views()
    return query


def submitted(by: Actor, cluster: Cluster, name: str, **aggregates: str) -> Query:
    """Return a query that aggregates r0 by station in windows of a minute."""
    text = QueryText(aggregates or {"n": "count(*)"}, 60.0, key=("station",))
    return queries.submit(by, cluster, QuerySpec(name, ("r0",), text))


def store(
    query: Query,
    rows: Sequence[tuple[int, Sequence[Any], Sequence[Any]]],
    *,
    sample: str | None = None,
) -> None:
    """Store windows: starts (ms), keys and values in the order of the query's columns."""
    with results_cursor() as cursor:
        if is_postgres():
            create_partitions(cursor, {start // 86_400_000 for start, *_ in rows})
        cursor.executemany(
            "INSERT INTO results_window (query_id, start_ms, key, key_json, value_json, records,"
            " sample, state, cells, batch, seq, changed_ms)"
            " VALUES (%s, %s, %s, %s, %s, 3, %s, NULL, NULL, 1, 1, %s)",
            [(query.pk, start, repr(key).encode(), *arrays_of([[v] for v in key], 1),
              *arrays_of([[v] for v in values], 1), sample, START + 5)
             for start, key, values in rows],
        )  # fmt: skip
        cursor.execute(
            "INSERT INTO results_query (query_id, cluster, final_ms) VALUES (%s, %s, %s)"
            " ON CONFLICT (query_id) DO NOTHING",
            [query.pk, query.cluster.slug, START],
        )
