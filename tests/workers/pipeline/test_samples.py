"""Samples of windows under drop rules in the pipeline, and what follows for results of queries."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from controlplane.results.estimates import estimates_of
from controlplane.wire.aggregates.sampling import Sampled
from controlplane.wire.drop_counts import EVERY_RECORD, DropCount
from controlplane.wire.producer import Producer
from controlplane.wire.query import Window, computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import SetCapacity, SetDropRule, SetLadder
from controlplane.wire.routing.drop_rules import ALWAYS, INPUT, DropRule
from controlplane.wire.routing.ladder import Cost, KeptPart, Ladder, ResourceKind, Rung
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.pipeline import Pipeline
from tests.support.schemas import assigned
from tests.support.whole_results import read_windows
from workers.pipeline.engine.evaluation import drop_rules
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

    def dropped(self, query: int) -> int:
        """Return the records that an edge of the stream dropped."""
        own = [count for count in self.counts if (count.stream, count.query) == (STREAM, query)]
        return sum(count.dropped for count in own)

    def samples(self, query: int) -> dict[int, Sampled | None]:
        """Return the samples of the windows of a query, by seconds."""
        rows = read_windows(self.pipeline.client, "c", query, computation_of(TEXT, METER.kinds))
        return {(row.start_ms // 1000) - START_S: row.sampled for row in rows}

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
        _number_positions(monkeypatch)
        yield result


def _number_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the same records be dropped in every run: positions hold the time of the append."""
    numbers: dict[tuple[int, str], str] = {}
    hashes = drop_rules.sample_hashes

    def numbered(stream: int, position: str, records: int) -> drop_rules.SampleHashes:
        number = numbers.setdefault((stream, position), f"{len(numbers)}-0")
        return hashes(stream, number, records)

    monkeypatch.setattr(drop_rules, "sample_hashes", numbered)


def near(fraction: float, records: int) -> Any:
    """Return what is within four standard deviations of a fraction of so many records."""
    return pytest.approx(fraction, abs=4 * (fraction * (1 - fraction) / records) ** 0.5)


def test_nothing_is_sampled_without_drop_rules(counted: Counted) -> None:
    counted.second(0, 50)
    assert counted.counts == []
    assert counted.samples(FIRST) == {0: None}


def test_scaled_counts_and_sums_contain_the_truth(counted: Counted) -> None:
    counted.pipeline.publish(SetDropRule(STREAM, INPUT, DropRule.of(0.5)))
    for second in range(60):
        counted.second(second, 40)
    windows, samples = counted.windows(FIRST), counted.samples(FIRST)
    computation = computation_of(TEXT, METER.kinds)
    assert len(samples) == len(windows) == 3
    for start, values in windows.items():
        sampled = samples[start]
        assert sampled == Sampled(values["records"], values["records"], 2 * values["records"])
        assert values["records"] / counted.records[start] == near(0.5, counted.records[start])
        estimates = estimates_of(computation, values, sampled)
        assert estimates.keys() == {"records", "total"}
        for name, truth in (("records", counted.records), ("total", counted.total)):
            low, high = estimates[name].low, estimates[name].high
            assert low is not None
            assert high is not None
            assert low <= truth[start] <= high
            assert high - low < truth[start] / 2


@pytest.mark.parametrize("filled", [range(7), range(13, 20), range(14)])
def test_time_without_records_has_no_weight(counted: Counted, filled: range) -> None:
    """Of a window whose records fill the first part, the last part, or two thirds."""
    counted.pipeline.publish(SetDropRule(STREAM, INPUT, DropRule.of(0.5)))
    for second in filled:
        counted.second(second, 50)
    counted.pipeline.publish(SetDropRule(STREAM, INPUT, None))
    counted.second(40, 50)
    samples, records = counted.samples(FIRST), counted.windows(FIRST)[0]["records"]
    assert samples == {0: Sampled(records, records, 2 * records), 40: None}


def test_a_rule_that_begins_within_a_window_concerns_its_own_records(counted: Counted) -> None:
    """However the records are spread over the window: half of the second ten seconds."""
    counted.pipeline.publish(SetDropRule(STREAM, FIRST, DropRule.of(0.0)))
    for second in range(20):
        if second == 10:
            counted.pipeline.publish(SetDropRule(STREAM, FIRST, DropRule.of(0.5)))
        counted.second(second, 10 if second < 10 else 90)
    sampled, values = counted.samples(FIRST)[0], counted.windows(FIRST)[0]
    assert sampled is not None
    assert sampled.missing == values["records"] - 100
    assert sampled.kept == near(550 / 1_000, 900)
    assert counted.samples(SECOND) == {0: None}, "its edge drops nothing"


def test_edges_and_streams_with_rules_of_their_own(counted: Counted) -> None:
    counted.pipeline.publish(
        SetDropRule(STREAM, INPUT, DropRule.of(0.5)),
        SetDropRule(STREAM, SECOND, DropRule.of(0.5, seed=7)),
    )
    for second in range(20):
        counted.second(second, 50)
        counted.second(second, 30, OTHER)
    whole, both = counted.samples(FIRST)[0], counted.samples(SECOND)[0]
    assert whole is not None
    assert both is not None
    assert whole.missing == whole.records
    assert both.missing == 3 * (both.records - 600), "each stands for three others"
    assert both.kept == near(850 / 1_600, 1_000)


def test_replays_sample_alike(counted: Counted) -> None:
    counted.pipeline.publish(
        SetDropRule(STREAM, INPUT, DropRule.of(0.3)),
        SetDropRule(STREAM, FIRST, DropRule.of(0.5, seed=7)),
    )
    for second in range(20):
        counted.second(second, 50, repeat=3)
    sampled = counted.samples(FIRST)[0]
    assert sampled is not None
    assert 1_000 - counted.dropped(INPUT) - counted.dropped(FIRST) == sampled.records
    assert sampled.missing == pytest.approx(sampled.records * (1 / 0.35 - 1), rel=1e-4)


def test_windows_that_are_not_dropped_are_exact(counted: Counted) -> None:
    rule = DropRule(((ALWAYS, 0.5),), 3, WINDOW.size_ms, WINDOW.slide_ms)
    counted.pipeline.publish(SetDropRule(STREAM, FIRST, rule))
    for second in range(0, 200, 5):
        counted.second(second, 10)
    windows = counted.windows(FIRST)
    assert 0 < len(windows) < 10
    assert {values["records"] for values in windows.values()} == {40}
    assert set(counted.samples(FIRST).values()) == {None}
    assert counted.dropped(FIRST) == 40 * (10 - len(windows))


@pytest.mark.parametrize("rule", [DropRule(((ALWAYS, 0.5),), 3, 5_000, 5_000), DropRule.of(1.0)])
def test_records_without_a_chance_are_counted(counted: Counted, rule: DropRule) -> None:
    """Dropped windows of another length, and rules that drop every record."""
    for second in range(20):
        counted.pipeline.publish(SetDropRule(STREAM, FIRST, rule if second < 10 else None))
        counted.second(second, 10)
    ((_, values),) = counted.windows(FIRST).items()
    assert counted.samples(FIRST) == {0: None}
    assert 0 < 200 - values["records"] == counted.dropped(FIRST)
    windows = {(count.window_ms, count.slide_ms) for count in counted.counts}
    assert windows == {(5_000, 5_000) if rule.window_ms else EVERY_RECORD}


@pytest.mark.parametrize("edge", [INPUT, FIRST])
def test_samples_hold_while_a_ladder_rises_and_falls(counted: Counted, edge: int) -> None:
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
    assert counted.dropped(edge) == dropped > 0
    samples, windows = counted.samples(FIRST), counted.windows(FIRST)
    assert samples[0] is None, "before the overload"
    assert (
        min(values["records"] / counted.records[start] for start, values in windows.items()) < 0.8
    )
    for start, sampled in samples.items():
        missing = counted.records[start] - windows[start]["records"]
        expected = 0.0 if sampled is None else sampled.missing
        reach = 4 * (0.0 if sampled is None else sampled.variance) ** 0.5
        assert missing == pytest.approx(expected, abs=reach)
