"""Sales of a shop in a topic: what was sent, what DuckDB computes of it, and what Weir has."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import duckdb
import numpy as np
import pandas as pd
import redis

from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.schema import ColumnSpec, StreamSchema
from controlplane.wire.topics.source import TopicSource
from tests.support.topics import TopicProducer, create_topic
from tests.support.whole_results import read_windows

SALES: Final = StreamSchema(
    (
        ColumnSpec("at", "timestamp(ms)", nullable=False),
        ColumnSpec("country", "string"),
        ColumnSpec("amount", "decimal(12, 2)"),
        ColumnSpec("items", "int32"),
        ColumnSpec("part", "int32"),
    ),
    event_time="at",
    watermark_delay_s=120,
)
REVENUE: Final = QueryText(
    {"n": "count(*)", "revenue": "sum(amount)", "most": "max(items)"},
    key=["country"],
    window_s=3600,
)
REVENUE_TEXT: Final = json.dumps(REVENUE.to_json())
STREAM, OTHER, QUERY = 7, 8, 5
START_MS: Final = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp() * 1000)
HOUR_MS: Final = 3_600_000
UNREADABLE: Final = (b'{"at": "yesterday"}', b"\xff")
_COUNTRIES: Final = ["DE", "Österreich", "ES", None, "DK", "a'b\"c"]
# Start of the window and country, with the values of the query.
Windows = dict[tuple[int, str | None], tuple[object, ...]]


class Messages:
    """The messages of a topic whose partitions are hours apart; `bad`: how many are unreadable."""

    def __init__(self, address: str, topic: str, seed: int, partitions: int) -> None:
        create_topic(address, topic, partitions)
        self.rng = np.random.default_rng(seed)
        self.producer = TopicProducer(address, topic)
        self.source = TopicSource(address, topic, metadata={"part": "partition"})
        self.encode: Callable[[dict[str, object]], Any] = lambda row: row
        self.sent: list[dict[str, object]] = []
        self.bad = 0
        # Of each partition, in event time.
        self.clocks = [START_MS + n * HOUR_MS for n in range(partitions)]

    def send(self, count: int) -> None:
        """Send messages that are up to 100 s out of order in their partition, some unreadable."""
        for partition in self.rng.integers(0, len(self.clocks), count).tolist():
            self.clocks[partition] += int(self.rng.integers(0, 400_000))
            at = self.clocks[partition] - int(self.rng.integers(0, 100_000))
            if self.rng.random() < 0.05:
                self.bad += 1
                self.producer.send(partition, UNREADABLE[at % 2])
                continue
            row = {
                "at": at, "country": _COUNTRIES[int(self.rng.integers(len(_COUNTRIES)))],
                "amount": str(int(self.rng.integers(-500, 99_999)) / 100),
                "items": int(self.rng.integers(0, 50)), "unknown": {"x": [1]},
            }  # fmt: skip
            self.sent.append(row | {"part": partition})
            self.producer.send(partition, self.encode(row))
        self.producer.flush()

    def expected(self) -> Windows:
        """Return what DuckDB computes from the messages."""
        with duckdb.connect() as database:
            database.register("sales", pd.DataFrame(self.sent))
            rows = database.sql(
                'SELECT "at" // 3600000 * 3600000 AS begin_ms, country, count(*),'
                " sum(CAST(amount AS DECIMAL(12, 2))), max(items) FROM sales GROUP BY ALL"
            ).fetchall()
        return {(row[0], row[1]): row[2:] for row in rows}


def windows_of(client: "redis.Redis", cluster: str) -> Windows:
    """Return the windows that Weir has."""
    rows = read_windows(client, cluster, QUERY, computation_of(REVENUE, SALES.kinds))
    return {
        (row.start_ms, row.key["country"]): tuple(row.values[name] for name in REVENUE.aggregates)
        for row in rows
    }
