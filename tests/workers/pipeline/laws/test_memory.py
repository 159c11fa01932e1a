"""Redis and the nodes' state stay as large as they are over a day of event time.

The demonstration `web`: its recorded eight hours go round three times, with its own queries, from
the log over nodes and sink to the results, without Spark. Each loop ends in the same second of the
recording, so what is kept is the same if nothing is left behind. At night the day has 720
batches; by day it has 24, and the queries with sliding windows, which cost most, are left out.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, cast

import pytest
import redis

from algorithms.partitioning.catalog import grouping_text
from controlplane.access.roles import Actor
from controlplane.queries.spec import QuerySpec
from controlplane.results import finality, retention
from controlplane.results.database import results_cursor
from controlplane.topology import queries, streams
from controlplane.topology.streams import StreamSpec
from controlplane.wire import key_samples, keys
from controlplane.wire.producer import Producer
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import AssignStream, SetSchema
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.route import NO_AGGREGATOR, TaskRange, task_ranges_of
from tests.support import cluster as made
from tests.support.nightly import NIGHTLY
from tests.support.pipeline import Pipeline
from workers.demo.program import RETENTION_S, ProgramQuery
from workers.demo.web.program import long_lived, requests_between
from workers.demo.web.recording import REQUEST, SPAN_MS, WebRecording, load_recording
from workers.pipeline import sink
from workers.pipeline.split_nodes import key_sampling

LOOPS: Final = 3
NODES: Final = 2
# Of one loop.
BATCHES: Final = 240 if NIGHTLY else 8
# Passes of retention, in batches.
_PRUNED_EVERY: Final = 4
PARTIAL_KEY: Final = grouping_text("partial_key")


class Day:
    """The demonstration in a pipeline of its own."""

    def __init__(self, client: "redis.Redis", url: str, actor: Actor) -> None:
        self.client = client
        self.recording: WebRecording = load_recording()
        self.cluster = made.small_cluster(actor, nodes=NODES, stream_count=0)
        names = [one.name for one in self.recording.directories]
        specs = [StreamSpec(name, schema=REQUEST.to_json()) for name in names]
        rows = streams.register(actor, self.cluster, specs)
        self.streams = {row.name: row.pk for row in rows}
        self.pipeline = Pipeline(client, url, self.cluster.slug, NODES, 1)
        ids = self.streams.values()
        self.producer = Producer(url, self.cluster.slug, schemas=dict.fromkeys(ids, REQUEST))
        self.pipeline.publish(
            *(AssignStream(one, 0) for one in ids),
            *(SetSchema(one, REQUEST) for one in ids),
            *(
                self._ask(actor, one)
                for one in long_lived(self.recording.directories)
                if NIGHTLY or "slide_s" not in one.text
            ),
        )

    def _ask(self, actor: Actor, wanted: ProgramQuery) -> AddQuery:
        text = QueryText.from_json(wanted.text)
        right = [str(name) for name in text.right]
        spec = QuerySpec(
            wanted.name, wanted.streams, text, tasks=wanted.tasks, right=right,
            key_grouping=wanted.key_grouping, retention_s=RETENTION_S,
        )  # fmt: skip
        row = queries.submit(actor, self.cluster, spec)
        owners = [task % NODES for task in range(row.task_count)]
        task_ranges: tuple[TaskRange, ...] = task_ranges_of(owners) if len(owners) > 1 else ()
        key_grouping, aggregator = (PARTIAL_KEY, 1) if row.key_grouping else ("", NO_AGGREGATOR)
        mine = tuple(self.streams[name] for name in spec.reads)
        return AddQuery(
            row.pk, 0, row.pk % NODES, mine, row.text, task_ranges, key_grouping, aggregator
        )

    def loop(self, number: int) -> None:
        """Play the recorded hours once."""
        begin, step = number * SPAN_MS, SPAN_MS // BATCHES
        for batch in range(BATCHES):
            after = begin + batch * step
            blocks = requests_between(self.recording, after, after + step)
            self.producer.append({self.streams[name]: rows for name, rows in blocks.items()})
            self.pipeline.batch()
            self.pipeline.commit()
            if batch % _PRUNED_EVERY == 0:
                prune()
        # The aggregator node has the last batch in the next one.
        while self.pipeline.batch():
            pass
        while prune():
            pass

    def sizes(self) -> dict[str, int]:
        """Return what there is: keys and bytes in Redis, bytes of state, windows.

        `bytes` are those of the values, `memory` what Redis takes for them, with tables that are
        larger once there was more.
        """
        every = list(self.client.scan_iter(f"{keys.cluster_prefix(self.cluster.slug)}*"))
        with results_cursor() as cursor:
            cursor.execute("SELECT count(*) FROM results_window")
            windows = int(cursor.fetchone()[0])
        return {
            "keys": len(every),
            "bytes": sum(len(cast("bytes", self.client.dump(key))) for key in every),
            "memory": sum(self.client.memory_usage(key, samples=0) or 0 for key in every),
            "state": sum(len(v) for store in self.pipeline.stores.values() for v in store.values()),
            "windows": windows,
        }


def prune() -> int:
    """Delete what is kept no longer; return how many windows."""
    finality.update_finality(datetime.now(UTC) + timedelta(seconds=1))
    return retention.prune_windows(datetime.now(UTC))


@pytest.mark.nightly("schedules", by_day=True)
def test_a_day_leaves_nothing_behind(
    db: None,
    redis_url: str,
    results_in_django: None,
    redis_client: "redis.Redis",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    finality._timings.clear()
    # As many rows and samples as a long-lived cluster has, from the first loop on.
    monkeypatch.setattr(sink, "TELEMETRY_KEPT", BATCHES // 2)
    monkeypatch.setattr(key_samples, "KEPT", BATCHES // 2)
    # Every batch is sampled: on a slow machine more batches begin in a new second than on a fast
    # one, and samples are a large part of the bytes.
    monkeypatch.setattr(key_sampling, "_PERIOD_MS", 1)
    day = Day(redis_client, redis_url, made.actor("operator"))
    found = []
    for number in range(LOOPS):
        day.loop(number)
        found.append(day.sizes())
    day.producer.close()
    finality._timings.clear()
    assert found[0]["windows"] > 1_000
    check(found)


def check(found: Sequence[dict[str, int]]) -> None:
    """Assert that sizes are within 10 % of each other, memory from the second loop on."""
    for name in found[0]:
        sizes = [one[name] for one in (found[1:] if name == "memory" else found)]
        assert max(sizes) <= 1.1 * min(sizes), (name, sizes)
