"""Sources with records, in one form for the tests that run over all of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.schema import ColumnSpec, StreamSchema
from controlplane.wire.sources.files import STORE_SECRET, FileSource
from controlplane.wire.sources.generator import COLUMNS, EventKind, GeneratorSource
from controlplane.wire.topics.base import StreamSource
from controlplane.wire.topics.source import TopicSource
from tests.support.object_store import BUCKET, REGION, ObjectStore
from tests.support.whole_results import read_windows
from tests.workers.pipeline.sources.sales import (
    HOUR_MS,
    OTHER,
    QUERY,
    REVENUE,
    SALES,
    START_MS,
    STREAM,
    Messages,
)
from workers.pipeline.sources.generator.latest import ends_at
from workers.pipeline.sources.generator.read import chunk_of

# Start of the window and key, with the values of the query.
Windows = dict[tuple[int, Any], tuple[Any, ...]]


class Feed(Protocol):
    """A source that tests fill."""

    schema: StreamSchema
    query: QueryText

    @property
    def bad(self) -> int:
        """Return how many records are unreadable."""
        ...

    @property
    def source(self) -> StreamSource | None:
        """Return the declaration, None for the log."""
        ...

    def send(self, count: int) -> None:
        """Let the source have about so many records more."""
        ...

    def total(self) -> int:
        """Return how many offsets the source has."""
        ...

    def expected(self) -> Windows:
        """Return what DuckDB computes from all records."""
        ...


def windows_in(feed: Feed, client: Any, cluster: str) -> Windows:
    """Return the windows that Weir has of the query of a feed."""
    rows = read_windows(client, cluster, QUERY, computation_of(feed.query, feed.schema.kinds))
    (key,) = feed.query.key
    return {
        (row.start_ms, row.key[key]): tuple(row.values[name] for name in feed.query.aggregates)
        for row in rows
    }


BIDS: Final = StreamSchema(
    tuple(
        ColumnSpec(name, kind, nullable=name != "date_time")
        for name, kind in COLUMNS[EventKind.BID].items()
    ),
    event_time="date_time",
    watermark_delay_s=120,
)


class TopicFeed(Messages):
    """Sales in a topic."""

    schema, query = SALES, REVENUE

    def __init__(self, address: str, seed: int, partitions: int = 4) -> None:
        super().__init__(address, f"all-{seed}", seed, partitions)

    def total(self) -> int:
        """Return how many messages there are."""
        return len(self.sent) + self.bad


class PatternFeed:
    """Sales in all topics of a pattern.

    When 100 were sent, a third one is created, which is not the last one by its name.
    """

    schema = StreamSchema(
        (*SALES.columns, ColumnSpec("shop", "string")), event_time="at", watermark_delay_s=120
    )
    query = QueryText(
        {"n": "count(*)", "revenue": "sum(amount)", "most": "max(part)"}, key=["shop"],
        window_s=3600,
    )  # fmt: skip

    def __init__(self, address: str, seed: int) -> None:
        self.address, self.seed = address, seed
        metadata = {"part": "partition", "shop": "topic"}
        self.source = TopicSource(
            address, topic_pattern=f"shop-{seed}-(?:a|b|aa)", metadata=metadata
        )
        self.shops: dict[str, Messages] = {}
        for name, partitions in (("b", 2), ("a", 3), ("other", 1)):
            self._add(name, partitions)
        self.shops["other"].send(9)

    def _add(self, name: str, partitions: int) -> None:
        topic = f"shop-{self.seed}-{name}"
        self.shops[name] = Messages(self.address, topic, self.seed + len(self.shops), partitions)

    @property
    def own(self) -> dict[str, Messages]:
        """Return the messages of the topics that match."""
        return {name: shop for name, shop in self.shops.items() if name != "other"}

    @property
    def bad(self) -> int:
        """Return how many messages are unreadable."""
        return sum(shop.bad for shop in self.own.values())

    def send(self, count: int) -> None:
        """Send messages to each topic; the clock of a new one is ahead of all others."""
        if "aa" not in self.shops and self.total() > 100:
            newest = max(clock for shop in self.own.values() for clock in shop.clocks)
            self._add("aa", 2)
            self.shops["aa"].clocks = [newest + n * HOUR_MS for n in (4, 5)]
        for shop in self.own.values():
            shop.send(-(-count // len(self.own)))

    def total(self) -> int:
        """Return how many messages there are."""
        return sum(len(shop.sent) for shop in self.own.values()) + self.bad

    def expected(self) -> Windows:
        """Return what DuckDB computes from the messages."""
        result: Windows = {}
        for name, shop in self.own.items():
            rows = pd.DataFrame(shop.sent).assign(shop=f"shop-{self.seed}-{name}")
            with duckdb.connect() as database:
                database.register("sales", rows)
                found = database.sql(
                    'SELECT "at" // 3600000 * 3600000 AS begin_ms, shop, count(*),'
                    " sum(CAST(amount AS DECIMAL(12, 2))), max(part) FROM sales GROUP BY ALL"
                ).fetchall()
            result |= {(row[0], row[1]): row[2:] for row in found}
        return result


class GeneratorFeed:
    """Bids of some hours in the past, at a rate that rises and falls."""

    schema = BIDS
    query = QueryText(
        {"n": "count(*)", "paid": "sum(price)", "last": "max(auction)"}, key=["channel"],
        window_s=3600,
    )  # fmt: skip
    bad = 0

    def __init__(self, seed: int, partitions: int = 4) -> None:
        start = datetime.fromtimestamp(START_MS / 1000, UTC).isoformat()
        shape: list[list[float]] = [[0, 0], [3600, 0.2], [5400, 0.1], [5401, 0]]
        self.source = GeneratorSource(
            start, rate=shape, period_s=7200, seed=seed, partitions=partitions, total=3_000
        )

    def send(self, count: int) -> None:
        """Do nothing: all bids have occurred."""

    def total(self) -> int:
        """Return how many bids there are."""
        return sum(end for _, end in ends_at(self.source, START_MS * 2).values())

    def expected(self) -> Windows:
        """Return what DuckDB computes from all bids, generated at once."""
        ends = ends_at(self.source, START_MS * 2)
        chunks = [chunk_of(self.source, BIDS, n, 0, end) for n, (_, end) in ends.items()]
        return grouped(pa.Table.from_batches([chunk.decoded.records for chunk in chunks]),
                       "channel, count(*), sum(price), max(auction)", "date_time")  # fmt: skip


class SalesRows:
    """Sales up to 100 s out of order, some unreadable."""

    schema, query = SALES, REVENUE
    faulty = 0.05

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.sent: list[dict[str, Any]] = []
        self.bad, self.clock = 0, START_MS

    def rows(self, count: int) -> list[dict[str, Any]]:
        """Return the next rows."""
        rows = []
        for _ in range(count):
            self.clock += int(self.rng.integers(0, 100_000))
            row = {
                "at": self.clock - int(self.rng.integers(0, 100_000)),
                "country": ["DE", "Österreich", None, "a'b"][int(self.rng.integers(4))],
                "amount": f"{int(self.rng.integers(-500, 99_999)) / 100:.2f}",
                "items": int(self.rng.integers(0, 50)),
            }  # fmt: skip
            if self.rng.random() < self.faulty:
                self.bad += 1
                row["at"] = None
            else:
                self.sent.append(row)
            rows.append(row)
        return rows

    def total(self) -> int:
        """Return how many rows there are."""
        return len(self.sent) + self.bad

    def expected(self) -> Windows:
        """Return what DuckDB computes from all rows."""
        table = pa.Table.from_pylist(self.sent)
        times = pc.cast(table["at"], pa.timestamp("ms", "UTC"))
        return grouped(table.set_column(0, "at", times),
                       "country, count(*), sum(CAST(amount AS DECIMAL(12, 2))), max(items)",
                       "at")  # fmt: skip


class LogFeed(SalesRows):
    """Sales in the log of the cluster, whose appends have records of a second stream, too."""

    source, faulty = None, 0.0

    def __init__(self, url: str, seed: int) -> None:
        super().__init__(seed)
        self.producer = Producer(url, "c", schemas={STREAM: SALES, OTHER: SALES})

    def send(self, count: int) -> None:
        """Append records."""
        rows = self.rows(count)
        self.producer.append({STREAM: rows, OTHER: rows})

    def total(self) -> int:
        """Return how many records the log has."""
        return 2 * len(self.sent)


class FilesFeed(SalesRows):
    """Sales in files of one format, two of which are read at once; some rows are unreadable."""

    def __init__(self, folder: Path, kind: str, seed: int) -> None:
        super().__init__(seed)
        self.folder, self.kind, self.files = folder / "in", kind, 0
        self.folder.mkdir()
        self.source = FileSource(
            f"file://{self.folder}", f"*.{kind}", kind, metadata={"part": "row"}, partitions=2,
            settle_s=0,
        )  # fmt: skip

    def send(self, count: int) -> None:
        """Add a file, which nobody sees before it is whole."""
        rows = self.rows(count)
        path = self.folder / self.name(int(self.rng.integers(1 << 30)))
        self.files += 1
        write_rows(rows, self.folder / "_part", self.kind)
        (self.folder / "_part").rename(path)

    def name(self, number: int) -> str:
        """Return the name of the next file; names do not grow."""
        return f"{number}-{self.files}.{self.kind}"


class StoreFeed(FilesFeed):
    """Sales in files of an object store."""

    def __init__(self, folder: Path, store: ObjectStore, seed: int) -> None:
        super().__init__(folder, "json", seed)
        self.store, self.sent_files = store, set[str]()
        self.source = replace(
            self.source, url=f"s3://{BUCKET}/in", endpoint=store.url, region=REGION,
            secrets={STORE_SECRET: "lake"},
        )  # fmt: skip

    def name(self, number: int) -> str:
        """Return a name after those before: files of one second are read by their names."""
        return f"{self.files:04}-{number}.{self.kind}"

    def send(self, count: int) -> None:
        """Add an object."""
        super().send(count)
        for path in self.folder.glob("*.json"):
            if path.name not in self.sent_files:
                self.sent_files.add(path.name)
                with self.store.files.open_output_stream(f"{BUCKET}/in/{path.name}") as stream:
                    stream.write(path.read_bytes())


def write_rows(rows: Sequence[Mapping[str, Any]], path: Path, kind: str) -> None:
    """Write rows as lines of JSON or CSV, or as Parquet in row groups of 7."""
    if kind == "json":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    elif kind == "csv":
        pd.DataFrame(rows, dtype=object).to_csv(path, index=False)
    else:
        table = pa.Table.from_pylist(list(rows))
        amounts = pc.cast(table["amount"], pa.decimal128(12, 2))
        table = table.set_column(2, "amount", amounts)
        pq.write_table(table, path, row_group_size=7)


def grouped(records: Any, columns: str, time: str) -> Windows:
    """Return the windows of an hour of a table; `columns`: the key, and the values."""

    with duckdb.connect() as database:
        database.register("records", records)
        rows = database.sql(
            f'SELECT epoch_ms("{time}") // 3600000 * 3600000 AS begin_ms, {columns} FROM records'
            " GROUP BY ALL"
        ).fetchall()
    return {(row[0], row[1]): row[2:] for row in rows}
