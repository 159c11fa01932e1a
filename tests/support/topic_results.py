"""Results that a sink has written to a topic, as a consumer of another team reads them."""

import json
import uuid
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.cimpl import KafkaError

from controlplane.models import Query
from controlplane.sinks.columns import result_table
from controlplane.sinks.network import derived_schema
from controlplane.wire.topics.source import TopicSource
from workers.pipeline.sources.topic.decode import decode
from workers.pipeline.sources.topic.messages import Fetched, message_rows

KEY = ("station", "open", "stream")


def messages_in(address: str, topic: str) -> list[Any]:
    """Return all messages of a topic that a reader of committed transactions is given."""
    consumer = Consumer({
        "bootstrap.servers": address, "group.id": uuid.uuid4().hex, "log_level": 0,
        "isolation.level": "read_committed", "enable.partition.eof": True,
    })  # fmt: skip
    partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    found, waiting = [], set(partitions)
    while waiting:
        message = consumer.poll(60)
        assert message is not None, topic
        error = message.error()
        if error is None:
            found.append(message)
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            waiting.discard(message.partition())
    consumer.close()
    return found


def results_in(
    address: str, topic: str, read: Callable[[list[bytes]], list[dict[str, Any]]] | None = None
) -> list[dict[str, Any]]:
    """Return the results in a topic; `read`: returns the rows of values that are no JSON."""
    messages = messages_in(address, topic)
    results = (read or _of_json)([message.value() for message in messages])
    for message, row in zip(messages, results, strict=True):
        assert json.loads(message.key()) == {name: row[name] for name in KEY}
        headers = dict(message.headers())
        assert int(headers["seq"]) == row["seq"]
        assert datetime.fromisoformat(headers["window"].decode()) == row["window_start"]
    return results


def rows_by(source: TopicSource, query: str, values: list[bytes]) -> list[dict[str, Any]]:
    """Return results of a query as a stream of Weir reads them from a topic."""
    found = Query.objects.get(name=query)
    schema = derived_schema(found, result_table(found), "final_only")
    none = [0] * len(values)
    decoded = decode(Fetched(0, none, values, [None] * len(values), none), source, schema)
    assert not decoded.faults
    # No column of a stream can have this name.
    streams = [row["stream"] for row in message_rows(values, source, [], {})]
    rows = zip(streams, decoded.records.to_pylist(), strict=True)
    return [row | {"stream": stream} for stream, row in rows]


def _of_json(values: list[bytes]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [json.loads(value) for value in values]
    for row in rows:
        row["window_start"] = datetime.fromisoformat(row["window_start"])
        row["total"] = None if row["total"] is None else Decimal(row["total"])
    return rows
