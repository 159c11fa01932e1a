"""Drops counted by event time in the pipeline, and what follows for the results of queries."""

import json
import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from controlplane.results.edge_periods import Counts, Ranges
from controlplane.results.estimates import estimates_of
from controlplane.results.kept import Kept, fractions
from controlplane.wire.drop_counts import DropCount
from controlplane.wire.producer import Producer
from controlplane.wire.query import Window, computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import SetCapacity, SetDropRule, SetLadder
from controlplane.wire.routing.drop_rules import ALWAYS, INPUT, DropRule
from controlplane.wire.routing.ladder import Cost, KeptPart, Ladder, ResourceKind, Rung
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.schema import ColumnSpec, StreamSchema
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
START_S = round(START.timestamp())
TEXT = QueryText(
    {"records": "count(*)", "total": "sum(n)", "least": "min(n)", "most": "max(n)"},
    window_s=20, lateness_s=5,
)  # fmt: skip
STREAM, OTHER, FIRST, SECOND = 1, 2, 11, 12
WINDOW = Window(20_000, 20_000)


@dataclass
class Counted:
    """A pipeline with a stream, the counts of all its batches, and the records it got by window."""

    pipeline: Pipeline
    producer: Producer
    # Ahead of the clock of the log: an idle node's capacity counts from the first append on.
    now_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000 + 3_600_000)
    counts: list[DropCount] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    records: Counter[int] = field(default_factory=Counter)
    total: Counter[int] = field(default_factory=Counter)

    def second(self, second: int, records: int, stream: int = STREAM, repeat: int = 1) -> None:
        """Append the records of a second, with values 1, 2, 3, and process a batch."""
        times = [START + timedelta(seconds=second, milliseconds=i % 1_000) for i in range(records)]
        block = [{"read_at": time, "n": i % 3 + 1} for i, time in enumerate(times)]
        self.producer.append({stream: block})
        start = second // 20 * 20
        self.records[start] += records
        self.total[start] += sum(row["n"] for row in block)  # type: ignore[misc]
        self.now_ms += 1_000
        row = self.pipeline.batch(repeat)
        self.rows.append(row)
        self.counts += [DropCount(*values) for values in row["drop_counts"]]

    def totals(self, query: int) -> tuple[int, int]:
        """Return the records that arrived on an edge of the stream and that it dropped."""
        own = [count for count in self.counts if (count.stream, count.query) == (STREAM, query)]
        return sum(count.arrived for count in own), sum(count.dropped for count in own)

    def kept(self, query: int, starts: list[int]) -> dict[float, Kept]:
        """Return what the counts say was kept of the windows of a query."""
        streams = {FIRST: {STREAM}, SECOND: {STREAM, OTHER}}[query]
        counts = [
            Counts(*count[:5], count.start_s + count.seconds, count.arrived, count.dropped)
            for count in self.counts
            if count.stream in streams
        ]
        first_s = min(count.start_s for count in counts)
        whole = Ranges([(first_s, math.inf)], max(count.stop_s for count in counts))
        ranges = dict.fromkeys(streams, whole)
        every = fractions(counts, ranges, query, WINDOW, [START_S + start for start in starts])
        return {start - START_S: kept for start, kept in every.items()}

    def windows(self, query: int) -> dict[int, dict[str, Any]]:
        """Return the values of the windows of a query, by seconds."""
        rows = read_windows(self.pipeline.client, "c", query, computation_of(TEXT, METER.kinds))
        return {(row.start_ms // 1000) - START_S: dict(row.values) for row in rows}


@pytest.fixture
def counted(
    redis_client: "redis.Redis", redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Counted]:
    """Two queries of one stream on two nodes, the second one on two streams."""
    pipeline = Pipeline(redis_client, redis_server)
    text = json.dumps(TEXT.to_json())
    pipeline.publish(
        *assigned([STREAM, OTHER], 1, METER),
        AddQuery(FIRST, 0, 0, (STREAM,), text),
        AddQuery(SECOND, 0, 1, (STREAM, OTHER), text),
    )
    with Producer(redis_server, pipeline.cluster) as producer:
        result = Counted(pipeline, producer)
        monkeypatch.setattr(source, "clock_ms", lambda: result.now_ms)
        yield result


def test_nothing_is_counted_without_drop_rules(counted: Counted) -> None:
    counted.second(0, 50)
    assert counted.counts == []


def test_scaled_counts_and_sums_contain_the_truth(counted: Counted) -> None:
    counted.pipeline.publish(SetDropRule(STREAM, INPUT, DropRule.of(0.5)))
    for second in range(60):
        counted.second(second, 40)
    windows, kept = counted.windows(FIRST), counted.kept(FIRST, [0, 20, 40])
    computation = computation_of(TEXT, METER.kinds)
    assert len(kept) == len(windows) == 3
    for start, values in windows.items():
        fraction = kept[start].fraction
        # Of the only query without a key, the fraction is that of its own records.
        assert fraction == pytest.approx(values["records"] / counted.records[start])
        assert 0.4 < values["records"] / counted.records[start] < 0.6
        estimates = estimates_of(computation, values, kept[start])
        assert estimates.keys() == {"records", "total"}
        for name, truth in (("records", counted.records), ("total", counted.total)):
            low, high = estimates[name].low, estimates[name].high
            assert low is not None
            assert high is not None
            assert low <= truth[start] <= high
            assert high - low < truth[start] / 2


def test_a_rule_that_begins_within_a_window_is_weighed(counted: Counted) -> None:
    """Half of the second ten seconds: three quarters of the window."""
    counted.pipeline.publish(SetDropRule(STREAM, FIRST, DropRule.of(0.0)))
    for second in range(20):
        if second == 10:
            counted.pipeline.publish(SetDropRule(STREAM, FIRST, DropRule.of(0.5)))
        counted.second(second, 50)
    (fraction, is_random), values = counted.kept(FIRST, [0])[0], counted.windows(FIRST)[0]
    assert fraction == pytest.approx(values["records"] / 1_000)
    assert is_random
    assert 0.7 < values["records"] / 1_000 < 0.8
    assert counted.kept(SECOND, [0]) == {}, "its edge drops nothing"


def test_both_edges_and_both_streams_count(counted: Counted) -> None:
    counted.pipeline.publish(
        SetDropRule(STREAM, INPUT, DropRule.of(0.5)),
        SetDropRule(STREAM, SECOND, DropRule.of(0.5, seed=7)),
    )
    for second in range(20):
        counted.second(second, 50)
        counted.second(second, 30, OTHER)
    expected = counted.windows(SECOND)[0]["records"] / (20 * 80)
    assert counted.kept(SECOND, [0])[0].fraction == pytest.approx(expected)
    first = counted.windows(FIRST)[0]["records"] / (20 * 50)
    assert counted.kept(FIRST, [0])[0].fraction == pytest.approx(first)


def test_replays_count_alike(counted: Counted) -> None:
    counted.pipeline.publish(
        SetDropRule(STREAM, INPUT, DropRule.of(0.3)), SetDropRule(STREAM, FIRST, DropRule.of(0.5))
    )
    for second in range(20):
        counted.second(second, 50, repeat=3)
    (values,) = counted.windows(FIRST).values()
    arrived, lost = counted.totals(INPUT)
    assert (arrived, arrived - lost - counted.totals(FIRST)[1]) == (1_000, values["records"])


def test_windows_that_are_not_dropped_are_exact(counted: Counted) -> None:
    rule = DropRule(((ALWAYS, 0.5),), 3, WINDOW.size_ms, WINDOW.slide_ms)
    counted.pipeline.publish(SetDropRule(STREAM, FIRST, rule))
    for second in range(0, 200, 5):
        counted.second(second, 10)
    windows = counted.windows(FIRST)
    assert 0 < len(windows) < 10
    assert {values["records"] for values in windows.values()} == {40}
    assert counted.kept(FIRST, list(range(0, 200, 20))) == {}
    assert counted.totals(FIRST)[1] == 40 * (10 - len(windows))


def test_dropped_windows_of_another_length_are_no_random_sample(counted: Counted) -> None:
    rule = DropRule(((ALWAYS, 0.5),), 3, 5_000, 5_000)
    counted.pipeline.publish(SetDropRule(STREAM, INPUT, rule))
    for second in range(40):
        counted.second(second, 10)
    kept, windows = counted.kept(FIRST, [0, 20]), counted.windows(FIRST)
    shares = {start: values["records"] / 200 for start, values in windows.items()}
    assert {start: value.fraction for start, value in kept.items() if value.fraction} == {
        start: pytest.approx(share) for start, share in shares.items() if share < 1
    }
    assert shares != dict.fromkeys(shares, 1.0)
    assert not any(value.is_random for value in kept.values())


def test_streams_of_a_ladder_are_counted_before_it_drops(counted: Counted) -> None:
    counted.pipeline.publish(SetLadder(input_ladder(STREAM, 1e-6)))
    counted.second(0, 50)
    counted.second(1, 30, OTHER)
    rows = [count for count in counted.counts if count.arrived]
    assert [(count.stream, count.arrived, count.dropped) for count in rows] == [
        (STREAM, 50, 0), (OTHER, 30, 0),
    ]  # fmt: skip


@pytest.mark.parametrize("edge", [INPUT, FIRST])
def test_the_fraction_is_exact_while_a_ladder_rises_and_falls(counted: Counted, edge: int) -> None:
    """Records wait at the emulated node, so a later batch than the one that reads them drops."""
    parts = tuple(1 - step / 20 for step in range(1, 21))
    rungs = tuple(
        Rung(1 / part if part else 1000.0, (KeptPart(STREAM, edge, part),)) for part in parts
    )
    cost = Cost(STREAM, edge, ResourceKind.NODE, 0, 1 / 100)
    counted.pipeline.publish(
        SetCapacity(0, 100, emulated=True),
        SetCapacity(1, 10_000, emulated=True),
        SetLadder(Ladder(rungs, (cost,), hold_ms=3_000)),
    )
    for second in range(100):
        counted.second(second, 250 if 30 <= second < 55 else 60, repeat=1 + (second % 10 == 0))
    dropped = sum(row["ladder_dropped"].get(f"{STREAM}>{edge}", 0) for row in counted.rows)
    dropped += sum(row["ladder_dropped"].get(str(STREAM), 0) for row in counted.rows)
    assert counted.totals(edge)[1] == dropped > 0
    windows, kept = counted.windows(FIRST), counted.kept(FIRST, list(range(0, 100, 20)))
    shares = {start: row["records"] / counted.records[start] for start, row in windows.items()}
    assert {start: 1.0 if start not in kept else kept[start].fraction for start in shares} == {
        start: pytest.approx(share) for start, share in shares.items()
    }
    assert min(shares.values()) < 0.8
    assert shares[0] == 1.0, "before the overload"
