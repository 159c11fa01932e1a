"""A pipeline whose log is in Kafka counts right, also when it is killed with -9 on the way."""

from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import redis

from controlplane.wire.log.values import IdempotencyToken
from controlplane.wire.producer import Producer
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.table import RoutingDelta
from tests.support.driver import Driver, Telemetry
from tests.support.kafka import running_kafka
from tests.support.schemas import REPORTS, assigned
from tests.support.texts import SUMMARY_TEXT, read_summaries

MINUTE_MS = 60_000
STREAMS = (1, 2, 3)


class Feed:
    """Appends drawn records to all streams, and knows how many it has per stream and minute.

    Another producer repeats every third append under the same stamp.
    """

    def __init__(self, url: str) -> None:
        self.expected: Counter[tuple[int, int]] = Counter()
        self._url = url
        self._producer = Producer(url, "k", schemas=dict.fromkeys(STREAMS, REPORTS))
        self._rng = np.random.default_rng(11)
        self._sequence = count()

    def __call__(self) -> None:
        """Append to all streams at once."""
        stamp = IdempotencyToken("feed", next(self._sequence))
        blocks = {stream: self._block(stream) for stream in STREAMS}
        self._producer.append(blocks, stamp)
        if stamp.sequence % 3 == 0:
            with Producer(self._url, "k", schemas=dict.fromkeys(STREAMS, REPORTS)) as other:
                other.append(blocks, stamp)

    def close(self) -> None:
        """Leave Kafka."""
        self._producer.close()

    def _block(self, stream: int) -> pa.RecordBatch:
        times = self._rng.integers(0, 2 * MINUTE_MS, int(self._rng.integers(1, 40)))
        self.expected.update((stream, int(ms) // MINUTE_MS * MINUTE_MS) for ms in times)
        rows = [{"ts": int(ms), "car": 1, "x": 0, "y": 0, "speed": 1} for ms in times]
        return pa.RecordBatch.from_pylist(rows, REPORTS.arrow)


@pytest.fixture
def kafka() -> Iterator[str]:
    with running_kafka() as address:
        yield address


@pytest.mark.spark
@pytest.mark.nightly("spark")
def test_a_killed_driver_counts_every_record_of_kafka_once(
    kafka: str, redis_client: "redis.Redis", redis_server: str, tmp_path: Path
) -> None:
    """What was appended while nobody read is there, too, and repetitions are not."""
    url = f"kafka://{kafka}/weir-k"
    splits = assigned(STREAMS)
    query = AddQuery(5, 0, 1, STREAMS, SUMMARY_TEXT)
    publish(redis_client, "k", RoutingDelta(1, (*splits, query)))
    driver = Driver(redis_server, tmp_path, "k", nodes=2, splits=2, log_url=url)
    feed = Feed(url)
    driver.start()
    try:
        _feed_until(driver, feed, batches=2)
        driver.kill()
        for _ in range(20):
            feed()
        driver.start()
        _feed_until(driver, feed, batches=4)
        feed.close()
        total = sum(feed.expected.values())
        driver.wait_for(lambda rows: _records(rows) == total, f"{total} records")
    finally:
        driver.kill()
    windows = read_summaries(redis_client, "k", 5)
    assert {(w.key["stream"], w.start_ms): w.values["count"] for w in windows} == feed.expected


def _feed_until(driver: Driver, feed: Feed, batches: int) -> None:
    def fed(rows: Telemetry) -> bool:
        feed()
        return len(rows) >= batches

    driver.wait_for(fed, f"{batches} batches")


def _records(rows: Telemetry) -> int:
    return sum(row["in"] for row in rows)
