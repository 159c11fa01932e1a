"""Key groupings over several batches: the offset has their states, and replays decide alike."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
import redis

from algorithms.partitioning.catalog import GROUPINGS, grouping_text
from controlplane.wire import key_samples
from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import AssignStream, SetCapacity, SetSchema
from controlplane.wire.routing.query_actions import AddQuery, RemoveQuery, SetKeyGrouping
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.nightly import by_night
from tests.support.pipeline import Pipeline
from tests.support.whole_results import read_windows
from workers.pipeline.engine.storage.pages import PAGES
from workers.pipeline.exchange.envelope import node_input
from workers.pipeline.spark.connections import tables_of
from workers.pipeline.split_nodes.grouping_states import write_reports
from workers.pipeline.split_nodes.offset import Offset

STREAMS = (1, 2)
COLUMNS = ColumnSpec("word", "string"), ColumnSpec("happened", "timestamp(ms)", nullable=False)
SCHEMA = StreamSchema(COLUMNS, "happened")
TEXT = QueryText({"n": "count(*)"}, key=["word"], window_s=4.0, slide_s=2.0, lateness_s=10)
# One without a state, and one whose state has times and counts.
BY_DAY = ("partial_key", "rate_aware")
TASKS, AGGREGATOR = ((0, 0, 2), (1, 2, 5)), 2


class Words:
    """A query over two streams of words at two split nodes, three nodes of unequal capacity."""

    def __init__(self, client: "redis.Redis", url: str, grouping: str) -> None:
        self.client, self.rng = client, np.random.default_rng(4)
        self.pipeline = Pipeline(client, url, nodes=3, splits=2)
        self.pipeline.publish(
            *(AssignStream(stream, stream - 1) for stream in STREAMS),
            *(SetSchema(stream, SCHEMA) for stream in STREAMS),
            *(SetCapacity(node, 500.0 * (node + 1), emulated=False) for node in range(3)),
            AddQuery(7, 0, 0, STREAMS, json.dumps(TEXT.to_json()), TASKS, grouping, AGGREGATOR),
        )
        self.producer = Producer(url, "c", schemas=dict.fromkeys(STREAMS, SCHEMA))
        self.now = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=10)
        self.appended = 0

    def append(self, count: int = 300) -> None:
        """Append words of a skewed distribution over a few seconds to both streams."""
        for stream in STREAMS:
            words = self.rng.zipf(1.4, count) % 1_000
            rows = [
                {"word": f"w{word}", "happened": self.now + timedelta(milliseconds=10 * row)}
                for row, word in enumerate(words.tolist())
            ]
            self.producer.append({stream: rows})
        self.now += timedelta(seconds=3)
        self.appended += count * len(STREAMS)

    def counted(self) -> float:
        """Return the records in all windows; each is in two."""
        computation = computation_of(TEXT, SCHEMA.kinds)
        windows = read_windows(self.client, "c", 7, computation)
        return sum(float(row.values["n"]) for row in windows) / 2


def envelopes(pipeline: Pipeline, begin: dict[str, Any], end: dict[str, Any]) -> list[Any]:
    """Return what each node gets between two offsets, in a process that has no tables yet."""
    tables_of.cache_clear()
    result = []
    for part in pipeline.reader.partitions(begin, end):
        for rows in pipeline.reader.read(part):
            for node, row in enumerate(rows.to_pandas().itertuples()):
                given = node_input(node, [rows.to_pandas().iloc[node : node + 1]])
                assert row.head
                for envelope in given.envelopes:
                    columns = {name: tasks.tolist() for name, tasks in envelope.extras.items()}
                    states = envelope.source.get("groupings")
                    result.append((envelope.records.to_pydict(), columns, states))
    return result


@pytest.mark.parametrize(
    "name",
    [*BY_DAY, *by_night("schedules", ((name,) for name in GROUPINGS if name not in BY_DAY))],
)
def test_a_replay_routes_each_record_to_the_same_task(
    redis_client: "redis.Redis", redis_url: str, name: str
) -> None:
    """Also when Redis has the states of a later batch; every record counts once."""
    words = Words(redis_client, redis_url, grouping_text(name))
    pairs, first = [], []
    for _ in range(4):
        words.append()
        begin = words.pipeline.offset or words.pipeline.reader.initialOffset()
        words.pipeline.batch(repeat=2)
        pairs.append((begin, words.pipeline.offset))
        first.append(envelopes(words.pipeline, *pairs[-1]))
    again = [envelopes(words.pipeline, *pair) for pair in pairs]
    assert again == first
    while words.pipeline.batch():
        continue
    assert words.counted() == words.appended


def test_the_states_of_both_split_nodes_lead_to_the_next_batch(
    redis_client: "redis.Redis", redis_url: str
) -> None:
    words = Words(redis_client, redis_url, grouping_text("shuffle"))
    loads = []
    for _ in range(3):
        words.append()
        words.pipeline.batch()
        states = Offset.from_json(words.pipeline.offset).states
        loads.append(sum(json.loads(states[7].packed)["load"]))
    assert loads == [0, 600, 1200]
    # A batch of which the driver has no report continues from its own state.
    write_reports(redis_client, "c", 77, [{"split": 0, "groupings": {"7": "damaged"}}])
    words.append()
    words.pipeline.batch()
    assert sum(json.loads(Offset.from_json(words.pipeline.offset).states[7].packed)["load"]) == 1200


def test_another_key_grouping_starts_in_the_next_batch(
    redis_client: "redis.Redis", redis_url: str
) -> None:
    """And ends again; every record counts once."""
    words = Words(redis_client, redis_url, "")
    for grouping in ("shuffle", "rate_aware", "key", "consistent_grouping"):
        words.append()
        words.pipeline.publish(SetKeyGrouping(7, grouping_text(grouping)))
        words.pipeline.batch(repeat=2)
        texts = {state.text for state in Offset.from_json(words.pipeline.offset).states.values()}
        assert texts == ({grouping_text(grouping)} - {""})
    while words.pipeline.batch():
        continue
    assert words.counted() == words.appended


def test_idle_batches_change_no_offset(redis_client: "redis.Redis", redis_url: str) -> None:
    """Spark plans a batch all the time: equal offsets are not a batch."""
    words = Words(redis_client, redis_url, grouping_text("consistent_grouping"))
    words.append()
    while words.pipeline.batch():
        continue
    offset = words.pipeline.offset
    assert Offset.from_json(offset).states
    assert words.pipeline.reader.latestOffset(offset, None) == offset


def test_keys_are_sampled_until_the_query_ends(redis_client: "redis.Redis", redis_url: str) -> None:
    words = Words(redis_client, redis_url, grouping_text("partial_key"))
    words.append()
    row = words.pipeline.batch()
    found = key_samples.read(redis_client, "c", 7, 0)
    assert [(sample.batch, sample.split, sample.records) for sample in found] == [
        (row["batch"], 0, 300), (row["batch"], 1, 300),
    ]  # fmt: skip
    assert all(sample.labels[0].startswith("w") for sample in found)
    assert sum(sum(sample.task_records) for sample in found) == 600
    words.pipeline.publish(RemoveQuery(7))
    # Nodes visit the pages of their state in turn.
    for _ in range(PAGES):
        words.append(1)
        words.pipeline.batch()
    assert key_samples.read(redis_client, "c", 7, 0) == []
