"""The queries of the random schedules, and what DuckDB has for each of them."""

import json
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from algorithms.partitioning.catalog import grouping_text
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from tests.support.schemas import REPORTS
from tests.workers.pipeline.engine.differential.duck import connection, put_table
from tests.workers.pipeline.engine.differential.queries import expected as windows_in_duckdb

_COLUMNS = ("ts", "car", "x", "y", "speed", "stream")

NUMBERS = {"n": "count(*)", "valued": "count(speed)", "total": "sum(speed)", "high": "max(speed)"}


@dataclass(frozen=True)
class Asked:
    """A query and how it is laid out: its tasks, key grouping and whether a node merges it."""

    query: int
    text: QueryText
    streams: tuple[int, ...]
    tasks: int = 1
    key_grouping: str = ""
    merged: bool = False

    @property
    def json(self) -> str:
        """Return the text as the routing table has it."""
        return json.dumps(self.text.to_json())


PARTIAL_KEY = grouping_text("partial_key")
CONSISTENT = grouping_text("consistent_grouping", {"slot_s": 0.5, "virtual": 5})


def asked(streams: int) -> list[Asked]:
    """Return the queries: one and several tasks, tumbling and sliding, three key groupings."""
    every = tuple(range(1, streams + 1))
    by_tile = {"tile": "x // 1000"}
    return [
        Asked(1, QueryText(NUMBERS, key=["car"]), every, tasks=8),
        Asked(
            2,
            QueryText(NUMBERS, key=["tile"], columns=by_tile, window_s=60, slide_s=20),
            every,
            tasks=6,
            key_grouping=PARTIAL_KEY,
            merged=True,
        ),
        Asked(
            3,
            QueryText(NUMBERS, where="speed > 300", key=["stream"], window_s=120, slide_s=60),
            every[: streams // 2],
            tasks=4,
        ),
        Asked(4, QueryText(NUMBERS, key=["tile"], columns=by_tile), every[:3], 5, CONSISTENT),
        Asked(
            5,
            QueryText(
                {"n": "count(*)", "total": "sum(a.speed + b.x)", "high": "max(b.speed)"},
                where="a.speed is not null",
                key=["a.car"],
                window_s=60,
                slide_s=30,
                right=[2, 3],
                on=[["car", "car"]],
            ),
            (1, 2, 3),
            tasks=3,
        ),
        *(Asked(10 + at, QueryText(NUMBERS, key=["stream"]), (at + 1,)) for at in range(streams)),
    ]


def expected(one: Asked, rows: pd.DataFrame) -> dict[Any, list[Any]]:
    """Return every window of a query over these records as DuckDB has it: its input, on time."""
    columns = {name: pa.array(rows[name], pa.int64(), from_pandas=True) for name in _COLUMNS}
    known = columns | {"ms": columns["ts"], "mark": pa.nulls(len(rows), pa.int64())}
    client = connection()
    put_table(client, "records", known, {})
    return windows_in_duckdb(client, computation_of(one.text, REPORTS.kinds), "records")
