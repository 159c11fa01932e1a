"""A ladder on a real application: an overload, two kill -9 in the middle of it, and the way down.

By night: `test_ladder.py` starts the driver again without Spark, `test_operator_day.py` kills one.
What each batch dropped follows from the position in its telemetry row. So the numbers of all
records that were kept are known, to the record.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from controlplane.wire.log.values import position_key
from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import SetDropRule, SetLadder
from controlplane.wire.routing.compiled_ladder import compiled_ladder
from controlplane.wire.routing.drop_rules import INPUT, DropRule, Edge
from controlplane.wire.routing.ladder import Cost, KeptPart, Ladder, ResourceKind, Rung
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.table import RoutingDelta, RoutingTable
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.driver import Driver
from tests.support.schemas import assigned
from tests.support.whole_results import read_windows
from workers.pipeline.engine.evaluation.drop_rules import is_dropped, sample_hashes
from workers.pipeline.shedding.drops import LadderDrops

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("class_archive"),
    pytest.mark.nightly("spark"),
]
# The second one is of a driver that was started from a checkpoint with a ladder position.
DEATHS = 2
CLUSTER, STREAM, FIRST, SECOND = "k", 1, 11, 12
METER = StreamSchema(
    (ColumnSpec("read_at", "timestamp(ms)", nullable=False), ColumnSpec("n", "int64")),
    event_time="read_at",
)
START = datetime(2026, 5, 1, tzinfo=UTC)
SUM = QueryText({"records": "count(*)", "sum": "sum(n)"}, window_s=86_400, lateness_s=86_400)
CAPACITY, LIGHT, HEAVY = 400.0, 100, 2_400
PERIOD_S = 0.1
RULE = DropRule.of(0.2, 3)


def ladder() -> Ladder:
    """Return a ladder that drops the records of one query first, then those of both."""
    costs = tuple(
        Cost(STREAM, query, ResourceKind.NODE, 0, 0.5 / CAPACITY) for query in (FIRST, SECOND)
    )
    rungs = tuple(
        Rung(factor, (KeptPart(STREAM, FIRST, 0.0), KeptPart(STREAM, INPUT, part)))
        for factor, part in ((2.0, 1.0), (4.0, 0.5), (20.0, 0.1))
    )
    return Ladder(rungs, costs, hold_ms=3_000)


@dataclass
class Feed:
    """Appends records with rising numbers and remembers their positions."""

    producer: Producer
    appended: list[tuple[str, range]] = field(default_factory=list)
    count: int = 0

    def append(self, per_s: int) -> str:
        """Append what arrives in a tenth of a second, and wait that long."""
        numbers = range(self.count, self.count + round(per_s * PERIOD_S))
        rows = [{"read_at": START + timedelta(milliseconds=n), "n": n} for n in numbers]
        position = self.producer.append({STREAM: rows})
        assert position is not None
        self.appended.append((position, numbers))
        self.count = numbers.stop
        time.sleep(PERIOD_S)
        return position


def kept_sums(
    feed: Feed, rows: list[dict[str, Any]], table: RoutingTable
) -> tuple[dict[int, list[int]], Counter[Edge]]:
    """Return the count and the sum of the numbers that each query kept, and the ladder's drops."""
    assert table.ladder is not None
    compiled, dropped = compiled_ladder(table.ladder), Counter[Edge]()
    sums = {FIRST: [0, 0], SECOND: [0, 0]}
    ends = [position_key(row["end"]) for row in rows]
    for position, numbers in feed.appended:
        row = next(
            row for row, end in zip(rows, ends, strict=True) if position_key(position) <= end
        )
        drops = LadderDrops(compiled, row["ladder_position"] or 0.0)
        values = np.array(numbers)
        hashes = sample_hashes(STREAM, position, len(values))
        left = ~is_dropped(RULE, hashes, values)
        for query in (INPUT, FIRST, SECOND):
            rule = drops.rule((STREAM, query))
            lost = np.zeros(len(values), np.bool_) if rule is None else (
                left & is_dropped(rule, hashes, values))  # fmt: skip
            dropped[STREAM, query] += int(lost.sum())
            if query == INPUT:
                left &= ~lost
                continue
            kept = values[left & ~lost]
            sums[query][0] += len(kept)
            sums[query][1] += int(kept.sum())
    return sums, +dropped


@pytest.fixture
def driver(
    redis_client: "redis.Redis", redis_server: str, tmp_path: Path
) -> Iterator[tuple[Driver, RoutingTable]]:
    """An application with a query on each of two nodes, and a ladder."""
    text = json.dumps(SUM.to_json())
    queries = [AddQuery(query, 0, node, (STREAM,), text)
               for node, query in enumerate((FIRST, SECOND))]  # fmt: skip
    delta = RoutingDelta(
        1,
        (*assigned([STREAM], 1, METER), *queries, SetDropRule(STREAM, INPUT, RULE),
         SetLadder(ladder())),
    )  # fmt: skip
    publish(redis_client, CLUSTER, delta)
    result = Driver(redis_server, tmp_path, CLUSTER, nodes=2, splits=1)
    result.start()
    yield result, RoutingTable().apply(delta)
    result.kill()


def test_records_are_dropped_once_and_to_the_record_whatever_is_killed(
    driver: tuple[Driver, RoutingTable], redis_server: str
) -> None:
    application, table = driver
    with Producer(redis_server, CLUSTER) as producer:
        feed = Feed(producer)
        feed.append(LIGHT)
        application.wait_for(bool, "first batch")
        _feed_until(application, feed, LIGHT, lambda rows: len(rows) >= 5)
        assert not any(row["ladder_position"] for row in application.telemetry())
        first = feed.append(HEAVY)
        _feed_until(application, feed, HEAVY, lambda rows: _active(rows) >= 3)
        rows = application.telemetry()
        seen = [row for row in rows if position_key(row["end"]) >= position_key(first)]
        assert any(row["ladder_position"] for row in seen[:2]), "not within two batches"
        for _ in range(DEATHS):
            application.kill()
            count = _active(application.telemetry())
            feed.append(HEAVY)
            application.start()
            _feed_until(application, feed, HEAVY, lambda rows, n=count: _active(rows) >= n + 2)
        _feed_until(application, feed, LIGHT, lambda rows: rows[-1]["ladder_position"] == 0)
        last = feed.append(LIGHT)
        application.wait_for(lambda rows: rows[-1]["end"] == last, "last batch")
    rows = application.telemetry()
    assert len({row["batch"] for row in rows}) == len(rows)
    assert sum(row["in"] for row in rows) == feed.count
    sums, dropped = kept_sums(feed, rows, table)
    counted = Counter[str]()
    for row in rows:
        counted.update(row["ladder_dropped"])
    assert counted == {_name(edge): records for edge, records in dropped.items()}
    assert counted[f"{STREAM}>{FIRST}"] > 0
    assert counted[str(STREAM)] > 0
    for query, wanted in sums.items():
        assert _measured(application.client, query) == wanted


def _feed_until(application: Driver, feed: Feed, per_s: int, done: Any) -> None:
    """Append at a rate until the telemetry satisfies `done`."""

    def fed(rows: list[dict[str, Any]]) -> bool:
        feed.append(per_s)
        return bool(done(rows))

    application.wait_for(fed, "next batches")


def _active(rows: list[dict[str, Any]]) -> int:
    """Return in how many batches the ladder dropped records of the input edge."""
    return sum(str(STREAM) in row["ladder_dropped"] for row in rows)


def _name(edge: Edge) -> str:
    return str(edge[0]) if edge[1] == INPUT else f"{edge[0]}>{edge[1]}"


def _measured(client: "redis.Redis", query: int) -> list[int]:
    """Return the count and the sum in the results of a query."""
    windows = read_windows(client, CLUSTER, query, computation_of(SUM, METER.kinds))
    return [sum(window.values[name] for window in windows) for name in ("records", "sum")]
