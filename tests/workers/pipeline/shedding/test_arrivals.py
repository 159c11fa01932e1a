"""Rates of arrival: means, jumps, losses of Redis, and logs that count all streams together."""

import numpy as np
import pytest
import redis

from controlplane.wire.log import open_log
from controlplane.wire.log.queued import appended_records
from controlplane.wire.log.values import START, Block
from controlplane.wire.routing.compiled_ladder import Floats
from workers.pipeline.shedding.arrivals import ArrivalMeter, MixedTotals, Rates

STREAMS = (1, 2)


def loads(rates: Floats) -> Floats:
    """Return the loads of two resources, one for each stream: 100 records/s are all its time."""
    return rates / 100


class Meter:
    """A meter that is given records appended per second."""

    def __init__(self) -> None:
        self.meter = ArrivalMeter()
        self.total = np.zeros(2)
        self.now_ms = 1_000_000

    def second(self, *records: float, ms: int = 1_000) -> Rates | None:
        self.total = self.total + np.array(records)
        self.now_ms += ms
        return self.meter.rates(STREAMS, self.total, self.now_ms, loads)

    def per_s(self, *records: float, ms: int = 1_000) -> list[float]:
        rates = self.second(*records, ms=ms)
        assert rates is not None
        return list(rates.per_s.round(3))


def test_rates_are_unknown_until_the_second_sample() -> None:
    meter = Meter()
    assert meter.second(50, 5) is None
    rates = meter.second(80, 10, ms=2_000)
    assert rates is not None
    assert (rates.per_s.tolist(), rates.interval_ms) == ([40, 5], 2_000)


def test_small_changes_are_averaged_and_a_jump_is_seen_immediately() -> None:
    meter = Meter()
    meter.second(0, 0)
    for _ in range(10):
        meter.per_s(90, 1)
        assert meter.per_s(110, 1) == [100, 1]
    assert meter.per_s(300, 1) == [300, 1]
    assert meter.per_s(320, 1) == [310, 1]
    assert meter.per_s(100, 1) == [100, 1], "down, too"
    assert meter.per_s(100, 90) == [100, 90], "of any resource"


def test_a_burst_of_less_than_a_second_is_no_jump() -> None:
    """A batch of a burst has twice the rate of the load; the second that ends with it has not."""
    meter = Meter()
    meter.second(0, 0)
    for _ in range(8):
        meter.per_s(25, 0, ms=250)
    burst = meter.per_s(50, 0, ms=250)
    assert burst[0] < 120
    assert meter.per_s(0, 0, ms=250)[0] < 110
    for _ in range(2):
        meter.per_s(75, 0, ms=250)
    assert meter.per_s(75, 0, ms=250)[0] > 190, "an overload is seen within a second"


def test_rates_of_a_quick_planning_are_those_before() -> None:
    meter = Meter()
    meter.second(0, 0)
    assert meter.per_s(100, 100) == [100, 100]
    assert meter.per_s(90, 0, ms=10) == [100, 100]
    assert meter.per_s(10, 100, ms=990) == [100, 100]


def test_counts_that_fall_and_other_streams_begin_again() -> None:
    meter = Meter()
    meter.second(1_000, 0)
    meter.per_s(100, 0)
    assert meter.second(-1_050, 0) is None
    assert meter.per_s(100, 0) == [100, 0]
    assert meter.meter.rates((3,), np.zeros(1), meter.now_ms + 500, loads) is None


def test_a_log_that_counts_all_streams_has_the_mix_of_recent_batches() -> None:
    totals = MixedTotals()
    read = {1: 30, 2: 10, 9: 10}
    first = totals.appended(STREAMS, 1_000, 100, read)
    assert first.unread.tolist() == [60, 20]
    later = totals.appended(STREAMS, 2_000, 0, read)
    assert (later.total - first.total).tolist() == [600, 200]
    other = totals.appended(STREAMS, 3_000, 0, {2: 5})
    assert (other.total - later.total).tolist() == [0, 1_000]
    assert totals.appended(STREAMS, 2_900, 0, {2: 5}).total.tolist() == other.total.tolist()
    begun = totals.appended((2,), 2_900, 50, {2: 5})
    assert (begun.total.tolist(), begun.unread.tolist()) == ([0], [50]), "of other streams"


def test_records_of_streams_are_counted_without_their_blocks(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    log = open_log("", "c", redis_server)
    first = log.append({1: Block(30, b"x" * 99, 5), 2: Block(4, b"y", 5)})
    second = log.append({1: Block(7, b"z", 6)})
    starts = {1: START, 2: first, 3: START}
    assert appended_records(redis_client, "c", starts) == {1: (37, 37), 2: (4, 0), 3: (0, 0)}
    assert appended_records(redis_client, "c", {1: first}) == {1: (37, 7)}
    assert appended_records(redis_client, "c", {1: second, 2: START}) == {1: (37, 0), 2: (4, 4)}
    assert appended_records(redis_client, "c", {}) == {}


@pytest.mark.parametrize("streams", [1_000, 1_001])
def test_more_streams_than_one_call_counts(
    redis_client: "redis.Redis", redis_server: str, streams: int
) -> None:
    log = open_log("", "c", redis_server)
    log.append({streams: Block(3, b"x", 5)})
    counts = appended_records(redis_client, "c", dict.fromkeys(range(1, streams + 1), START))
    assert len(counts) == streams
    assert counts[streams] == (3, 3)
