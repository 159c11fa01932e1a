"""Results that a sink has written to a topic, as a consumer of another team reads them."""

import io
import json
import struct
import uuid
from datetime import datetime
from decimal import Decimal
from typing import Any

import fastavro
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.cimpl import KafkaError

from tests.support.schema_registry import SchemaRegistry

# Before a record of Avro: zero, and the id of its schema.
HEAD = struct.Struct(">bI")
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
    address: str, topic: str, registry: SchemaRegistry | None = None
) -> list[dict[str, Any]]:
    """Return the results in a topic, in Avro if there is a registry."""
    results = []
    for message in messages_in(address, topic):
        if registry is None:
            row = json.loads(message.value())
            row["window_start"] = datetime.fromisoformat(row["window_start"])
            row["total"] = None if row["total"] is None else Decimal(row["total"])
        else:
            buffer = io.BytesIO(message.value())
            zero, number = HEAD.unpack(buffer.read(HEAD.size))
            assert zero == 0
            row = fastavro.schemaless_reader(buffer, registry.schema(number), None)
        assert json.loads(message.key()) == {name: row[name] for name in KEY}
        headers = dict(message.headers())
        assert int(headers["seq"]) == row["seq"]
        assert datetime.fromisoformat(headers["window"].decode()) == row["window_start"]
        results.append(row)
    return results
