"""A driver killed with -9 loses no record and doubles none.

Real taxi reports flow through a real application, kept by a real agent, while queries come, go and
move. The driver is killed first, then the agent. Every window of every query is then compared with
a computation that knows only the input, the routing operations, and which span of the log each
batch had.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import redis

from controlplane.wire import keys
from controlplane.wire.log.values import START
from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery, MoveTasks, RemoveQuery, RestartQuery
from controlplane.wire.routing.table import RoutingDelta, RoutingTable
from tests.support.driver import KeptDriver
from tests.support.schemas import REPORTS, assigned
from tests.support.taxi import STREAMS, taxi_reports
from tests.support.texts import SUMMARY_TEXT, read_summaries
from tests.support.whole_results import read_windows

MINUTE_MS = 60_000
Window = tuple[int, int, int]  # query, stream, start
# A query over all streams, split over eight tasks by the car, with windows that overlap.
SPREAD = 40
SPREAD_TEXT = QueryText(
    {"n": "count(*)", "valued": "count(speed)", "total": "sum(speed)", "high": "max(speed)"},
    where="car % 7 <> 3",
    key=["car"],
    window_s=60.0,
    slide_s=20.0,
)
Numbers = tuple[int, int, int, int, int]  # count, n, sum, minimum, maximum


@dataclass
class World:
    """What the test itself knows: every append with its position, every table it published."""

    client: "redis.Redis"
    cluster: str
    appended: list[tuple[str, int, pa.RecordBatch]] = field(default_factory=list)
    tables: list[RoutingTable] = field(default_factory=lambda: [RoutingTable()])

    def publish(self, *ops: Action) -> None:
        delta = RoutingDelta(len(self.tables), ops)
        self.tables.append(self.tables[-1].apply(delta))
        publish(self.client, self.cluster, delta)

    def append(self, producer: Producer, minute: dict[int, pa.RecordBatch]) -> None:
        position = producer.append(minute)
        assert position is not None
        self.appended += [(position, stream, batch) for stream, batch in minute.items()]

    def expected_spread(self, batches: list[dict[str, Any]]) -> dict[Any, Any]:
        """Return every window of the split query by a plain pass over the input."""
        values: dict[Any, list[int | None]] = defaultdict(list)
        for batch in batches:
            if SPREAD not in self.tables[batch["version"]].queries:
                continue
            for row in self._rows_of(batch):
                if row["car"] % 7 != 3:
                    ms = int(row["ts"].timestamp() * 1000)
                    for start in range(ms // 20_000 * 20_000 - 40_000, ms + 1, 20_000):
                        values[start, row["car"]].append(row["speed"])
        return {place: _spread_numbers(found) for place, found in values.items()}

    def _rows_of(self, batch: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for position, _, records in self.appended:
            if _key(batch["start"]) < _key(position) <= _key(batch["end"]):
                yield from records.to_pylist()

    def expected(self, batches: list[dict[str, Any]]) -> dict[Window, Numbers]:
        """Return every window by a plain pass over the input."""
        values: dict[Window, list[int | None]] = defaultdict(list)
        for batch in batches:
            readers = _readers(self.tables[batch["version"]])
            for position, stream, records in self.appended:
                if _key(batch["start"]) < _key(position) <= _key(batch["end"]):
                    for row in records.to_pylist():
                        start = int(row["ts"].timestamp()) * 1000 // MINUTE_MS * MINUTE_MS
                        for query in readers.get(stream, ()):
                            values[query, stream, start].append(row["speed"])
        return {window: _numbers(found) for window, found in values.items()}


def _spread_numbers(values: list[int | None]) -> dict[str, int | None]:
    there = [value for value in values if value is not None]
    total, high = (sum(there), max(there)) if there else (None, None)
    return {"n": len(values), "valued": len(there), "total": total, "high": high}


def _measured_spread(client: "redis.Redis", cluster: str) -> dict[Any, Any]:
    computation = computation_of(SPREAD_TEXT, REPORTS.kinds)
    windows = read_windows(client, cluster, SPREAD, computation)
    return {(row.start_ms, row.key["car"]): dict(row.values) for row in windows}


def _readers(table: RoutingTable) -> dict[int, list[int]]:
    readers: dict[int, list[int]] = defaultdict(list)
    for query, route in table.queries.items():
        for stream in route.streams:
            if query != SPREAD:
                readers[stream].append(query)
    return readers


def _numbers(values: list[int | None]) -> Numbers:
    there = [value for value in values if value is not None] or [0]
    n = sum(value is not None for value in values)
    return len(values), n, sum(there), min(there), max(there)


def _key(position: str) -> tuple[int, int]:
    ms, sequence = position.split("-")
    return int(ms), int(sequence)


def _measured(client: "redis.Redis", cluster: str, queries: set[int]) -> dict[Window, Numbers]:
    return {
        (query, w.key["stream"], w.start_ms): _of_summary(w.values)
        for query in queries
        for w in read_summaries(client, cluster, query)
    }


def _of_summary(values: Mapping[str, Any]) -> Numbers:
    count, n, mean, least, most = values.values()
    return count, n, round((mean or 0) * n), least or 0, most or 0


# By day the random schedules kill the driver at every phase, with all kinds of plans.
@pytest.mark.nightly("spark")
@pytest.mark.spark
def test_two_kills_lose_and_double_nothing(
    redis_client: "redis.Redis", redis_server: str, tmp_path: Path
) -> None:
    """Per query, stream and minute: count, sum and extremes, exactly."""
    driver = KeptDriver(redis_server, tmp_path)
    world = World(redis_client, driver.cluster)
    world.publish(*assigned(range(1, STREAMS + 1)))
    driver.start()
    try:
        with Producer(redis_server, driver.cluster) as producer:
            _live_through_two_kills(world, producer, driver)
        _wait_until_read(driver, world)
    finally:
        driver.end()
    batches = driver.telemetry()
    _check_spans(batches, world)
    measured = _measured(redis_client, driver.cluster, set(range(1, 34)))
    assert measured == world.expected(batches)
    assert _measured_spread(redis_client, driver.cluster) == world.expected_spread(batches)
    moved = [move for batch in batches for move in batch["moves"]]
    assert {move["query"] for move in moved} == {6, 7, SPREAD}
    assert sum(batch["imported_tasks"] for batch in batches) == len(moved)
    assert list(redis_client.scan_iter("*transfer:*")) == []
    _check_whole_time_readers(measured, world)


def _live_through_two_kills(world: World, producer: Producer, driver: KeptDriver) -> None:
    reports = iter(taxi_reports(limit=400_000))
    rng = np.random.default_rng(7)
    text = json.dumps(SPREAD_TEXT.to_json())
    spread = AddQuery(
        SPREAD,
        0,
        0,
        tuple(range(1, STREAMS + 1)),
        text,
        ((0, 0, 3), (1, 3, 6), (2, 6, 8)),
    )
    world.publish(spread, *(_arrival(q, rng) for q in range(1, 31)))
    _feed(world, producer, reports, driver, until_batches=3)
    world.publish(_arrival(31, rng), RemoveQuery(1), RestartQuery(2, 1, 2), *_state_moves(world, 0))
    _feed(world, producer, reports, driver, until_batches=6)
    world.publish(*_state_moves(world, 1))
    world.append(producer, next(reports))
    driver.kill_driver()
    for _ in range(10):  # the log goes on while nobody reads it
        world.append(producer, next(reports))
    world.publish(_arrival(32, rng), RemoveQuery(3), RestartQuery(4, 1, 0), *_state_moves(world, 2))
    _feed(world, producer, reports, driver, until_batches=10)
    world.publish(RestartQuery(2, 2, 0), _arrival(33, rng), *_state_moves(world, 0))
    driver.kill()  # the agent; its driver is an orphan now, which the next agent ends
    driver.start()
    _feed(world, producer, reports, driver, until_batches=14)


def _state_moves(world: World, turn: int) -> list[Action]:
    """Move three tasks of the split query and two whole queries by one node, with their state."""
    routes = world.tables[-1].queries
    spread = [
        MoveTasks(SPREAD, (((routes[SPREAD].owners()[task] + 1) % 3, task, task + 1),))
        for task in (turn, turn + 3, 7)
    ]
    whole = [MoveTasks(query, (((routes[query].node + 1) % 3, 0, 1),)) for query in (6, 7)]
    return [*spread, *whole]


def _check_whole_time_readers(measured: dict[Window, Numbers], world: World) -> None:
    """A query that was there all the time has every record of the busiest tile, by the input alone.

    This holds without a look at the telemetry.
    """
    routes = world.tables[-1].queries
    readers = [q for q in range(5, 31) if 1 in routes[q].streams]
    assert readers, "some query must have read the busiest tile from start to end"
    appended = sum(records.num_rows for _, stream, records in world.appended if stream == 1)
    for query in readers:
        assert sum(n[0] for w, n in measured.items() if w[:2] == (query, 1)) == appended


def _arrival(query: int, rng: np.random.Generator) -> AddQuery:
    streams = rng.choice(STREAMS, size=int(rng.integers(1, 5)), replace=False) + 1
    return AddQuery(
        query, 0, int(rng.integers(0, 3)), tuple(sorted(streams.tolist())), SUMMARY_TEXT
    )


def _feed(
    world: World, producer: Producer, reports: Any, driver: KeptDriver, until_batches: int
) -> None:
    """Append about ten minutes of reports a second until so many batches are done."""

    def fed(batches: list[dict[str, Any]]) -> bool:
        world.append(producer, next(reports))
        return len(batches) >= until_batches

    driver.wait_for(fed, f"{until_batches} batches")


def _wait_until_read(driver: KeptDriver, world: World) -> None:
    last = world.appended[-1][0]
    version = len(world.tables) - 1
    driver.wait_for(
        lambda rows: bool(rows) and rows[-1]["end"] == last and rows[-1]["version"] == version,
        "batch with the last record",
    )


def _check_spans(batches: list[dict[str, Any]], world: World) -> None:
    """The batches cover the log from its start to its end without gap or overlap."""
    assert batches[0]["start"] == START
    for before, after in pairwise(batches):
        assert before["end"] == after["start"]
    assert batches[-1]["end"] == world.appended[-1][0]
    records = sum(batch.num_rows for _, _, batch in world.appended)
    assert sum(batch["in"] for batch in batches) == records
    assert (
        json.loads(world.client.get(keys.route_latest_key(world.cluster)) or "0")
        == len(world.tables) - 1
    )
