"""From kill -9 of a driver to its next batch, while it reads a topic of many partitions.

    .venv/bin/python -m benchmarks.records.topic_kill [--partitions 64] [--kills 5]

The driver is killed with its workers while it reads a full topic, and started again at once, as an
agent without a spare driver does. The time is that until a later batch with records is written: the
start of Spark, the batch that is repeated if one was open, and the next one.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.application import PATIENCE_SECONDS, Weir, wait
from benchmarks.records.topic_speed import NODES, SPLITS, RunPlace, fill_topic, publish_query
from controlplane.wire.network.destinations import LIST
from controlplane.wire.topics.source import TopicSource
from tests.support.redis_server import running_redis
from tests.support.topics import running_broker


def main() -> None:
    options = parse_options()
    # Neither Redis nor the broker is a destination of a site.
    os.environ.pop(LIST, None)
    with (
        tempfile.TemporaryDirectory() as name,
        running_redis(Path(name)) as url,
        running_broker() as broker,
    ):
        source = TopicSource(broker, "orders")
        fill_topic(broker, source, lambda row: json.dumps(row).encode(), options)
        place = RunPlace(url, Path(name), "kill", 1)
        publish_query(place, source)
        with Weir(url, Path(name) / "kill", "kill", NODES, SPLITS, options.max_records) as weir:
            wait(weir, lambda rows: newest(rows) > 0, PATIENCE_SECONDS)
            seconds = [killed_s(weir) for _ in range(options.kills)]
    texts = ", ".join(f"{value:.1f}" for value in seconds)
    print(f"{options.partitions} partitions: median {statistics.median(seconds):.1f} s ({texts})")


def killed_s(weir: Weir) -> float:
    """Kill the driver, start it, and return the seconds until its next batch with records."""
    before, began = newest(weir.telemetry()), time.monotonic()
    weir.kill()
    weir.start()
    wait(weir, lambda rows: newest(rows) > before, PATIENCE_SECONDS)
    return time.monotonic() - began


def newest(rows: Sequence[Any]) -> int:
    """Return the newest batch with records, 0 for none."""
    return max((row["batch"] for row in rows if row["in"]), default=0)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.records.topic_kill", description=__doc__)
    parser.add_argument("--partitions", type=int, default=64)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--max-records", type=int, default=5_000, help="of a batch")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
