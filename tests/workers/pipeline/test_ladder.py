"""A ladder of drop rules in the pipeline: overload, backlog, way down, replays and changes."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import (
    SetCapacity,
    SetDropRule,
    SetLadder,
    SetSplitCapacity,
)
from controlplane.wire.routing.compiled_ladder import compiled_ladder
from controlplane.wire.routing.drop_rules import INPUT, DropRule
from controlplane.wire.routing.ladder import Cost, KeptPart, Ladder, ResourceKind, Rung, WindowDrop
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.kafka import running_kafka
from tests.support.ladders import input_ladder
from tests.support.pipeline import Pipeline
from tests.support.schemas import assigned
from tests.support.whole_results import read_windows
from workers.pipeline.split_nodes import source

METER = StreamSchema(
    (ColumnSpec("read_at", "timestamp(ms)", nullable=False), ColumnSpec("n", "int64")),
    event_time="read_at",
)
START = datetime(2026, 5, 1, tzinfo=UTC)
COUNT = QueryText({"n": "count(*)"}, window_s=10, lateness_s=5)
STREAM, FIRST, SECOND = 1, 11, 12
CAPACITY = 100.0


@dataclass
class Cluster:
    """A pipeline whose clock the test sets, with a stream of evenly spaced records."""

    pipeline: Pipeline
    producer: Producer
    # Ahead of the clock of the log: an idle node's capacity counts from the first append on.
    now_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000 + 3_600_000)
    appended: int = 0
    event_ms: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)

    def second(self, records: int, repeat: int = 1) -> dict[str, Any]:
        """Append records in ten entries, then process a batch a second after the last one."""
        for part in range(10):
            count = records * (part + 1) // 10 - records * part // 10
            step = 100 / max(1, count)
            times = [self.event_ms + 100 * part + step * index for index in range(count)]
            block = [{"read_at": START + timedelta(milliseconds=ms), "n": 1} for ms in times]
            if block:
                self.producer.append({STREAM: block})
        self.appended += records
        self.event_ms += 1_000
        self.now_ms += 1_000
        row = self.pipeline.batch(repeat)
        if row:
            self.rows.append(row)
        return row

    def counted(self, query: int) -> int:
        """Return the records in the results of a query."""
        computation = computation_of(COUNT, METER.kinds)
        windows = read_windows(self.pipeline.client, self.pipeline.cluster, query, computation)
        return sum(window.values["n"] for window in windows)

    def dropped(self, name: str = "ladder_dropped") -> Counter[str]:
        """Return the records that each edge has dropped in all batches."""
        result: Counter[str] = Counter()
        for row in self.rows:
            result.update(row[name])
        return result


@pytest.fixture
def cluster(
    redis_client: "redis.Redis", redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cluster]:
    """Two queries of one stream, one on each of two nodes."""
    pipeline = Pipeline(redis_client, redis_server)
    text = json.dumps(COUNT.to_json())
    pipeline.publish(
        *assigned([STREAM], 1, METER),
        AddQuery(FIRST, 0, 0, (STREAM,), text),
        AddQuery(SECOND, 0, 1, (STREAM,), text),
    )
    with Producer(redis_server, pipeline.cluster) as producer:
        result = Cluster(pipeline, producer)
        monkeypatch.setattr(source, "clock_ms", lambda: result.now_ms)
        yield result


@contextmanager
def log_elsewhere(place: str, site: str) -> Iterator[str]:
    if place == "kafka":
        with running_kafka() as address:
            yield f"kafka://{address}/weir-c"
        return
    url = f"{site.rpartition('/')[0]}/5"
    yield url
    redis.Redis.from_url(url).flushdb()


@pytest.mark.parametrize("place", ["kafka", "another redis"])
def test_a_log_elsewhere_is_measured_too(
    place: str, redis_client: "redis.Redis", redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Kafka by the number of all its records and the mix of recent batches."""
    with log_elsewhere(place, redis_server) as url:
        pipeline = Pipeline(redis_client, redis_server, log_url=url)
        query = AddQuery(FIRST, 0, 0, (STREAM,), json.dumps(COUNT.to_json()))
        ladder = input_ladder(STREAM, 1 / CAPACITY, parts=fine())
        pipeline.publish(*assigned([STREAM], 1, METER), query, *emulated(), SetLadder(ladder))
        with Producer(url, "c", schemas={STREAM: METER}) as producer:
            cluster = Cluster(pipeline, producer)
            monkeypatch.setattr(source, "clock_ms", lambda: cluster.now_ms)
            rows = [cluster.second(records) for records in [60] * 4 + [250] * 12]
            while cluster.second(0):
                pass
        assert not any(row["ladder_dropped"] for row in rows[:4])
        assert any(row["ladder_dropped"] for row in rows[4:6]), "not within two batches"
        assert rows[-1]["input_factor"] == pytest.approx(2.5, rel=0.1)
        assert all(row["waiting"] < 2 * CAPACITY for row in rows[10:])
        assert cluster.counted(FIRST) == cluster.appended - cluster.dropped()[str(STREAM)]


def emulated(capacity: float = CAPACITY) -> tuple[SetCapacity, SetCapacity]:
    return SetCapacity(0, capacity, emulated=True), SetCapacity(1, 10 * capacity, emulated=True)


def fine(parts: int = 20) -> tuple[float, ...]:
    """Return the kept parts of many rungs of one input edge."""
    return tuple(1 - step / parts for step in range(1, parts + 1))


def test_drops_begin_within_two_batches_of_the_overload_and_end_after_it(cluster: Cluster) -> None:
    ladder = input_ladder(STREAM, 1 / CAPACITY, parts=fine(), hold_ms=8_000)
    cluster.pipeline.publish(*emulated(), SetLadder(ladder))
    for _ in range(5):
        row = cluster.second(60)
        assert (row["ladder_position"], row["ladder_dropped"]) == (0.0, {})
    overloaded = [cluster.second(250) for _ in range(20)]
    active = [bool(row["ladder_dropped"]) for row in overloaded]
    assert any(active[:2]), "not within two batches"
    assert all(active[2:])
    assert all(row["waiting"] < CAPACITY for row in overloaded[10:]), "no second's worth waits"
    # What positions keep on average: the records of a second alone are a random sample.
    compiled = compiled_ladder(ladder)
    parts = [compiled.part((STREAM, INPUT), row["ladder_position"]) for row in overloaded[10:]]
    assert 250 * sum(parts) >= 0.95 * CAPACITY * len(parts)
    assert overloaded[-1]["input_factor"] == pytest.approx(2.5, rel=0.1)
    after = [cluster.second(60) for _ in range(30)]
    positions = [row["ladder_position"] for row in after]
    assert positions == sorted(positions, reverse=True), "it goes down, and never up"
    assert positions[4] > 0, "it is held for a while"
    assert (positions[-1], after[-1]["ladder_dropped"]) == (0.0, {})
    total = cluster.counted(FIRST), cluster.counted(SECOND)
    assert total == (cluster.appended - cluster.dropped()[str(STREAM)],) * 2


def test_replayed_batches_decide_alike(cluster: Cluster) -> None:
    """The same batch is processed three times, from the same state: as after a kill."""
    ladder = input_ladder(STREAM, 1 / CAPACITY, parts=fine())
    cluster.pipeline.publish(*emulated(), SetLadder(ladder))
    for records in (60, 60, 250, 250, 250, 250):
        cluster.second(records, repeat=3)
    for _ in range(8):
        cluster.second(10, repeat=2)
    assert cluster.dropped()[str(STREAM)] > 0
    assert cluster.rows[-1]["waiting"] == 0
    assert cluster.counted(FIRST) == cluster.appended - cluster.dropped()[str(STREAM)]


def test_a_driver_that_starts_again_drops_from_its_first_batch_on(cluster: Cluster) -> None:
    """Killed in the middle of an overload: the position that is held is in the offset."""
    ladder = input_ladder(STREAM, 1 / CAPACITY, parts=fine(), hold_ms=5_000)
    cluster.pipeline.publish(*emulated(), SetLadder(ladder))
    for records in (60, 60, *[250] * 15):
        cluster.second(records)
    for _ in range(2):
        cluster.pipeline.restart()
        row = cluster.second(250, repeat=2)
        assert row["ladder_position"] > 0
        assert row["ladder_dropped"]
    for _ in range(15):
        cluster.second(10)
    assert (cluster.rows[-1]["ladder_position"], cluster.rows[-1]["waiting"]) == (0.0, 0)
    kept = cluster.appended - cluster.dropped()[str(STREAM)]
    assert [cluster.counted(query) for query in (FIRST, SECOND)] == [kept, kept]


def test_an_emulated_node_gets_only_what_a_query_of_it_keeps(cluster: Cluster) -> None:
    """Its capacity is charged to the edge that keeps the most; the other node's query keeps all."""
    cost = Cost(STREAM, FIRST, ResourceKind.NODE, 0, 1 / CAPACITY)
    rungs = tuple(Rung(1 / part, (KeptPart(STREAM, FIRST, part),)) for part in (0.5, 0.25, 0.1))
    ladder = Ladder(rungs, (cost,))
    cluster.pipeline.publish(*emulated(), SetLadder(ladder))
    rows = [cluster.second(records) for records in [60] * 3 + [300] * 20]
    assert any(row["ladder_dropped"] for row in rows[3:5])
    assert all(row["waiting"] < CAPACITY for row in rows[10:])
    taken = [row["nodes"][0]["taken"] for row in rows[10:]]
    assert sum(taken) >= 0.95 * CAPACITY * len(taken)
    while cluster.second(0):
        pass
    assert cluster.rows[-1]["waiting"] == 0
    edge = f"{STREAM}>{FIRST}"
    assert set(cluster.dropped()) == {edge}
    assert cluster.counted(FIRST) == cluster.appended - cluster.dropped()[edge]
    assert cluster.counted(SECOND) == cluster.appended


def two_edges(seconds: float, **more: Any) -> Ladder:
    """Return a ladder that drops on one query's edge first, then on the input edge."""
    first, second = KeptPart(STREAM, FIRST, 0.0), KeptPart(STREAM, INPUT, 0.25)
    costs = (
        Cost(STREAM, FIRST, ResourceKind.NODE, 0, seconds),
        Cost(STREAM, SECOND, ResourceKind.NODE, 0, seconds),
    )
    return Ladder((Rung(2.0, (first,)), Rung(8.0, (first, second))), costs, **more)


def test_edges_to_queries_and_rules_of_people_are_counted_once(cluster: Cluster) -> None:
    """Both edges have a rule, too: what the rule drops is not the ladder's."""
    rules = [SetDropRule(STREAM, INPUT, DropRule.of(0.3, 5)),
             SetDropRule(STREAM, FIRST, DropRule.of(0.5, 6))]  # fmt: skip
    cluster.pipeline.publish(SetLadder(two_edges(1 / 150)), *rules)
    for records in (50, 50, 110, 110, 110, 400, 400, 400):
        cluster.second(records)
    by_rules, by_ladder = cluster.dropped("dropped"), cluster.dropped()
    edge = f"{STREAM}>{FIRST}"
    assert set(by_rules) == set(by_ladder) - {f"{STREAM}>{SECOND}"} == {str(STREAM), edge}
    reached = cluster.appended - by_rules[str(STREAM)] - by_ladder[str(STREAM)]
    assert cluster.counted(SECOND) == reached
    assert cluster.counted(FIRST) == reached - by_rules[edge] - by_ladder[edge]
    assert by_rules[str(STREAM)] == pytest.approx(0.3 * cluster.appended, rel=0.2)


def test_an_emulated_split_node_reads_more_where_it_drops(cluster: Cluster) -> None:
    """Dropped records take none of its capacity; its queue does not grow without bound."""
    cost = input_ladder(STREAM, 1 / CAPACITY, ResourceKind.SPLIT, parts=fine())
    cluster.pipeline.publish(SetSplitCapacity(CAPACITY, emulated=True), SetLadder(cost))
    rows = [cluster.second(records) for records in [60] * 3 + [250] * 15]
    assert rows[-1]["ladder_dropped"][str(STREAM)] > 100
    assert max(row["splits"][0]["split_waiting"] for row in rows[-4:]) <= 300
    read = [row["streams"][str(STREAM)] for row in rows[-5:]]
    assert sum(read) / len(read) == pytest.approx(250, rel=0.1)
    while cluster.second(0):
        pass
    assert cluster.counted(FIRST) == cluster.appended - cluster.dropped()[str(STREAM)]


def test_windows_are_dropped_whole_whatever_happens_to_the_ladder(cluster: Cluster) -> None:
    """Armed, replaced and disarmed within windows: none has a part of its records."""
    ladder = two_edges(1 / 150, windows=(WindowDrop(STREAM, FIRST, 10_000, 10_000),), hold_ms=0)
    cluster.pipeline.publish(SetLadder(ladder))
    for _ in range(34):
        cluster.second(100)
    cluster.pipeline.publish(SetLadder(input_ladder(STREAM, 1e-9, hold_ms=0)))
    for _ in range(13):
        cluster.second(100)
    cluster.pipeline.publish(SetLadder(replace(ladder, limit=0.8)))
    for _ in range(44):
        cluster.second(100)
    cluster.pipeline.publish(SetLadder())
    for _ in range(29):
        cluster.second(100)
    assert cluster.pipeline.offset["ladder"] is None, "no step is kept for ever"
    computation = computation_of(COUNT, METER.kinds)
    windows = read_windows(cluster.pipeline.client, "c", FIRST, computation)
    assert {window.values["n"] for window in windows} == {1_000}
    lost = cluster.dropped()[f"{STREAM}>{FIRST}"]
    assert lost >= 3_000
    assert lost % 1_000 == 0
    assert cluster.counted(FIRST) == cluster.appended - lost
    assert cluster.counted(SECOND) == cluster.appended
