"""A topic read in place: every window equals DuckDB's over the messages, however batches cut it."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
import redis

from algorithms.admission.strategies import Profile
from controlplane.planners.admission.inputs import AdmissionInput, AdmittedStream
from controlplane.planners.admission.problem import Outlook, actions_of, plan_with_room
from controlplane.wire import keys
from controlplane.wire.dead_letters import Reason, read_counts
from controlplane.wire.network.destinations import LIST
from controlplane.wire.producer import Producer
from controlplane.wire.routing.cluster_actions import (
    AssignPartition,
    AssignStream,
    SetSchema,
    SetSource,
)
from controlplane.wire.routing.publication import read_table
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.topics.definitions import Definition, avro_body
from controlplane.wire.topics.places import Place
from controlplane.wire.topics.registry import with_prefix
from tests.support.pipeline import Pipeline
from tests.support.registry import running_registry
from tests.support.topics import running_broker, wait_until
from tests.workers.pipeline.sources.sales import (
    HOUR_MS,
    QUERY,
    REVENUE_TEXT,
    SALES,
    START_MS,
    STREAM,
    Messages,
    windows_of,
)
from workers.pipeline.sources import plan

OWN, PARTITIONS = 8, 4


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with running_broker() as address:
        yield address


class Sales(Messages):
    """Messages, and a pipeline that reads them."""

    def __init__(self, pipeline: Pipeline, address: str, topic: str, seed: int) -> None:
        super().__init__(address, topic, seed, PARTITIONS)
        self.pipeline = pipeline

    def publish(self, splits: int) -> None:
        """Let two split nodes share the partitions, beside a stream of Weir's own log."""
        self.pipeline.publish(
            *(AssignStream(STREAM + n, n % splits) for n in range(2)),
            SetSchema(STREAM, SALES), SetSchema(OWN, SALES), SetSource(STREAM, self.source),
            AddQuery(QUERY, 0, 0, (STREAM,), REVENUE_TEXT),
        )  # fmt: skip

    def finish(self, extra: int = 0) -> None:
        """Process batches until all messages are read and no batch follows."""
        total = len(self.sent) + self.bad + extra

        def is_done() -> bool:
            row = self.pipeline.batch(repeat=2)
            places = _places(self.pipeline)
            return not row and sum(place[0] for place in places.values()) == total

        wait_until(is_done, "every message is read", 300)

    def windows(self) -> object:
        """Return the windows that the pipeline has."""
        return windows_of(self.pipeline.client, self.pipeline.cluster)


def test_every_window_equals_that_of_duckdb_in_avro_of_two_schemas(
    broker: str, redis_client: "redis.Redis", redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registry has both; the second one has a column more, and is used by some messages."""
    with running_registry() as registry:
        monkeypatch.setenv(LIST, f"{os.environ[LIST]} {registry.url}")
        pipeline = Pipeline(redis_client, redis_server, splits=2, max_records=90)
        sales = Sales(pipeline, broker, "avro", 7)
        sales.source = replace(sales.source, format="avro", registry=registry.url)
        time = {"type": "long", "logicalType": "timestamp-millis"}
        amount = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
        types = {"at": time, "country": ["null", "string"], "amount": amount, "items": "int"}
        schemas = []
        for names in (types, types | {"more": ["null", "string"]}):
            fields = [{"name": name, "type": kind} for name, kind in names.items()]
            text = json.dumps({"type": "record", "name": "Sale", "fields": fields})
            schemas.append((registry.add("avro-value", text), Definition((text,))))

        def encode(row: dict[str, object]) -> bytes:
            number, definition = schemas[int(sales.rng.integers(2))]
            known = {name: row[name] for name in types} | {"amount": Decimal(str(row["amount"]))}
            return with_prefix(number, avro_body(definition, known | {"more": "x"} if number > 1
                                                 else known))  # fmt: skip

        sales.encode = encode
        sales.send(60)
        sales.publish(2)
        sales.finish()
        sales.send(200)
        sales.finish()
        assert sales.windows() == sales.expected()
        assert read_counts(redis_client, "c")[STREAM] == {Reason.MESSAGE: sales.bad}
        assert len(registry.requests) == 2, "each schema once"


def test_records_of_one_partition_are_late_by_the_slowest_partition_only(
    broker: str, redis_client: "redis.Redis", redis_server: str
) -> None:
    """The watermark is the least of all partitions; a record behind it is late, at every node."""
    pipeline = Pipeline(redis_client, redis_server, splits=2)
    sales = Sales(pipeline, broker, "late", 3)
    sales.publish(2)
    row = {"country": "DE", "amount": "1.00", "items": 1}
    for partition in range(PARTITIONS):
        for _ in range(3):
            sales.producer.send(partition, row | {"at": START_MS + (5 + partition) * HOUR_MS})
    sales.producer.flush()
    sales.finish(3 * PARTITIONS)
    sales.producer.send(3, row | {"at": START_MS + 5 * HOUR_MS - 119_000})
    sales.producer.send(3, row | {"at": START_MS + 4 * HOUR_MS})
    sales.producer.flush()
    sales.finish(3 * PARTITIONS + 2)
    rows = windows_of(redis_client, "c").items()
    counts = {(start_ms - START_MS) // HOUR_MS: values[0] for (start_ms, _), values in rows}
    assert counts == {4: 1, 5: 3, 6: 3, 7: 3, 8: 3}


def test_a_partition_that_is_added_is_read_from_its_start(
    broker: str, redis_client: "redis.Redis", redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then nobody lists it."""
    pipeline = Pipeline(redis_client, redis_server, splits=2)
    sales = Sales(pipeline, broker, "grown", 4)
    sales.publish(2)
    latest = "workers.pipeline.sources.topic.latest.places_of"
    with monkeypatch.context() as hidden:
        hidden.setattr(latest, lambda *_: [Place("grown", 0), Place("grown", 1)])
        sales.send(50)
        wait_until(
            lambda: not pipeline.batch() and len(_places(pipeline)) == 2, "two partitions", 120
        )
    sales.finish()
    assert sales.windows() == sales.expected()


def test_records_of_the_log_that_are_appended_again_join_those_of_the_topic(
    broker: str, redis_client: "redis.Redis", redis_server: str
) -> None:
    """A dead letter is replayed into the log of the cluster."""
    pipeline = Pipeline(redis_client, redis_server, splits=2)
    sales = Sales(pipeline, broker, "again", 5)
    sales.publish(2)
    sales.send(30)
    sales.finish()
    last = {"at": sales.clocks[0], "country": "DE", "amount": "2.00", "items": 1, "part": 0}
    with Producer(redis_server, "c", schemas={STREAM: SALES}) as producer:
        producer.append({STREAM: [last]})
    pipeline.batch()
    sales.sent.append(last)
    assert sales.windows() == sales.expected()


def test_partitions_that_a_plan_redirects_are_read_once(
    broker: str, redis_client: "redis.Redis", redis_server: str
) -> None:
    """The plan has the parts of partitions that the driver reports of what has arrived."""
    pipeline = Pipeline(redis_client, redis_server, splits=2)
    sales = Sales(pipeline, broker, "redirected", 11)
    sales.publish(2)
    sales.finish()
    # Partitions 0 and 2 are read by split node 0.
    row = {"country": "DE", "amount": "1.00", "items": 1}
    for number in range(200):
        part = 2 * (number % 2) if number < 180 else 1
        sales.clocks[part] += 1000
        sales.sent.append(row | {"at": sales.clocks[part], "part": part})
        sales.producer.send(part, row | {"at": sales.clocks[part]})
    sales.producer.flush()
    sales.finish()

    def loads() -> dict[int, float]:
        result = dict.fromkeys(range(2), 0.0)
        for number, part in parts:
            result[table.assignment.of(STREAM, number)] += part
        return result

    told: Any = redis_client.hget(keys.sources_key("c"), str(STREAM))
    recent = {p["number"]: p["recent"] for p in json.loads(told)["partitions"]}
    parts = [(number, count / sum(recent.values())) for number, count in recent.items()]
    table = read_table(redis_client, "c", pipeline.version)
    assert loads() == pytest.approx({0: 0.9, 1: 0.1}, abs=0.02)
    given = AdmissionInput(10, 100.0, {}, [
        AdmittedStream(STREAM, "sales", [150.0] * 9, {}, {}, parts),
        AdmittedStream(STREAM + 1, "log", [1.0] * 9, {}, {}),
    ])  # fmt: skip
    split, plan = plan_with_room(Profile(foresee=True).solve, given, table.assignment, Outlook())
    actions = actions_of(split, plan, 2)
    assert any(isinstance(action, AssignPartition) for action in actions)
    pipeline.publish(*actions)
    table = read_table(redis_client, "c", pipeline.version)
    assert 150 * max(loads().values()) <= 100
    sales.send(120)
    sales.finish()
    assert sales.windows() == sales.expected()


def test_no_batch_takes_more_than_its_limit(
    broker: str, redis_client: "redis.Redis", redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size of messages is unknown before the first ones are read."""
    monkeypatch.setattr(plan, "FIRST_MESSAGES", 10)
    pipeline = Pipeline(redis_client, redis_server, max_records=25)
    sales = Sales(pipeline, broker, "bounded", 6)
    sales.send(100)
    sales.publish(1)
    read: list[int] = []

    def is_done() -> bool:
        row = pipeline.batch()
        read.append(row.get("in", 0))
        return sum(read) == len(sales.sent)

    wait_until(is_done, "all is read", 120)
    filled = [count for count in read if count]
    assert filled[0] <= 10
    assert max(filled) <= 25


def _places(pipeline: Pipeline) -> dict[str, list[int]]:
    found: dict[str, list[int]] = (
        pipeline.offset["sources"].get(str(STREAM), {}).get("partitions", {})
    )
    return found
