"""Queries whose windows change batch by batch, and DuckDB's results of the same records."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import duckdb
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from controlplane.models import Cluster, Query, Sink
from controlplane.queries.spec import QuerySpec
from controlplane.results.finality import update_finality
from controlplane.sinks.process import SinkFollower
from controlplane.topology import queries, streams
from controlplane.topology.streams import StreamSpec
from controlplane.wire.query_text import QueryText
from controlplane.wire.results import watermarks
from tests.support.schemas import READINGS
from tests.support.windows import write_windows

MINUTE = 60_000
TEXT = QueryText(
    {"n": "count(*)", "total": "sum(price)", "top": "max(level)"}, 60.0,
    key=("station", "open", "stream"),
)  # fmt: skip
STATIONS = ("a'b", "ä\n\t", "\\N", *(f"station {number}" for number in range(9)))
Result = tuple[datetime, Any, Any, Any, int, Decimal | None, float]
# Readings: stream, station, open, minute, price, level.
Record = tuple[str, str, bool | None, int, Decimal | None, float]


@dataclass
class Meters:
    """Readings of meters in two streams: seeded random records in batches of growing times."""

    query: Query
    seed: int
    records: list[Record] = field(default_factory=list)
    batch: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._ids = {stream.name: stream.pk for stream in self.query.streams.all()}

    @classmethod
    def submitted(cls, actor: Actor, cluster: Cluster, seed: int, name: str = "meters") -> "Meters":
        """Return the readings of a new query."""
        names = ("m0", "m1")
        specs = [StreamSpec(stream, schema=READINGS.to_json()) for stream in names]
        streams.register(actor, cluster, specs)
        return cls(queries.submit(actor, cluster, QuerySpec(name, names, TEXT)), seed)

    def next(self, records: int = 40) -> None:
        """Write the windows that the next batch changes, and how far the streams are."""
        self.batch += 1
        new = [self._record() for _ in range(records)]
        self.records += new
        self._write({record[:4] for record in new})
        newest = (self.batch - 1) * MINUTE
        times = dict.fromkeys(self._ids.values(), newest)
        slug = self.query.cluster.slug
        watermarks.commit(redis_client(), slug, self.batch, self.batch * 1000, 0, times)
        update_finality(timezone.now())

    def correct(self, count: int = 3) -> int:
        """Write further records of some windows; return of how many windows.

        Final ones get them from a stream that was idle.
        """
        self.batch += 1
        places = self._random.sample([record[:4] for record in self.records], count)
        self.records += [(*place, *self._record()[4:]) for place in places]
        self._write({*places})
        return len({*places})

    def end(self) -> None:
        """Let all windows become final."""
        self.batch += 100
        times = dict.fromkeys(self._ids.values(), self.batch * MINUTE)
        slug = self.query.cluster.slug
        watermarks.commit(redis_client(), slug, self.batch, self.batch * 1000, 0, times)
        update_finality(timezone.now())

    def _record(self) -> Record:
        draw = self._random
        station = draw.choice(
            ["a'b", "ä\n\t", "\\N", *(f"station {number}" for number in range(9))]
        )
        # Windows are open for two batches.
        minute = self.batch - draw.randint(0, 1)
        price = draw.choice([None, Decimal(draw.randint(-999, 9_999)).scaleb(-2)])
        level = round(draw.uniform(-9, 9), 3)
        return (
            draw.choice(["m0", "m1"]),
            station,
            draw.choice([None, True, False]),
            minute,
            price,
            level,
        )

    def _write(self, places: set[Any]) -> None:
        rows = []
        for place in sorted(places, key=str):
            stream, station, is_open, minute = place
            some = [record for record in self.records if record[:4] == place]
            prices = [price for *_, price, _ in some if price is not None]
            rows.append({"pane": minute * MINUTE, "stream": self._ids[stream], "k0": station,
                         "k1": is_open, "k2": self._ids[stream], "s0": len(some),
                         "s1": len(prices), "s2": sum(prices, Decimal(0)) if prices else None,
                         "s3": max(level for *_, level in some)})  # fmt: skip
        write_windows(self.query, self.batch, rows)

    def expected(self) -> list[Result]:
        """Return the results as DuckDB computes them from the records."""
        with duckdb.connect() as database:
            database.execute(
                "CREATE TABLE r (stream TEXT, station TEXT, open BOOLEAN, minute BIGINT,"
                " price DECIMAL(12, 2), level DOUBLE)"
            )
            database.executemany("INSERT INTO r VALUES (?, ?, ?, ?, ?, ?)", self.records)
            found = database.execute(
                "SELECT minute, station, open, stream, count(*), sum(price), max(level) FROM r"
                " GROUP BY ALL"
            ).fetchall()
        return ordered((datetime.fromtimestamp(minute * 60, UTC), *rest) for minute, *rest in found)


def ordered(results: Iterable[Any]) -> list[Result]:
    """Return results in one order, with decimals of two places."""
    rows = [
        (start, *key, n, None if total is None else Decimal(total).quantize(Decimal("0.01")), top)
        for start, *key, n, total, top in results
    ]
    return sorted(rows, key=str)


def run(follower: SinkFollower, steps: int = 40) -> None:
    """Let a follower write all that is due now."""
    long_ago = datetime.fromisoformat("2020-01-01T00:00Z")
    for _ in range(steps):
        # The time is over for which a kind collects results.
        Sink.objects.filter(pk=follower.sink_id).update(caught_up_at=long_ago, written_at=None)
        waits: list[float] = []
        follower.step(waits.append)
        if waits:
            return
    raise AssertionError("the sink does not come to an end")
