"""A topic of Kafka: the rows of a batch and the position after them are one transaction.

The position is a record of a topic that only this sink writes: the last one that was committed
counts. The id of the transactions ends those of a process that wrote the sink before. Avro records
have the id of their schema in a registry if one is given.
"""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, Final

import fastavro
import pydantic_core
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from controlplane.errors import Invalid
from controlplane.results.feed import FeedPlace
from controlplane.sinks.columns import START, ResultTable, ValueType, json_rows
from controlplane.sinks.destination import DestinationAway, RefusedByDestination, SinkContext
from controlplane.sinks.kinds.arrow import scaled
from controlplane.sinks.kinds.protobuf import ProtobufRows
from controlplane.sinks.kinds.schemas import field_names, open_sink_registry
from controlplane.sinks.kinds.settings import KafkaSettings
from controlplane.topology.topics.declaration import source_faults
from controlplane.wire.errors import LogUnavailable
from controlplane.wire.log.kafka_clients import new_client
from controlplane.wire.log.kafka_reader import LOG_SETTINGS
from controlplane.wire.network.secrets import SecretOf, named_secret
from controlplane.wire.topics.clients import NoSuchTopic, partitions_of
from controlplane.wire.topics.registry import subject_of, with_prefix
from controlplane.wire.topics.source import SECRETS
from controlplane.wire.topics.tokens import with_tokens

_TYPES: Final[Mapping[ValueType, Any]] = {
    ValueType.INT: "long",
    ValueType.FLOAT: "double",
    ValueType.DECIMAL: {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9},
    ValueType.BOOL: "boolean",
    ValueType.TEXT: "string",
    ValueType.TIME: {"type": "long", "logicalType": "timestamp-micros"},
    ValueType.DATE: {"type": "int", "logicalType": "date"},
    ValueType.JSON: "string",
}


def avro_schema(table: ResultTable) -> dict[str, Any]:
    """Return the schema of the results of a query."""
    fields = [{"name": name, "type": ["null", _TYPES[column.type]], "default": None}
              for name, column in zip(field_names(table), table.columns, strict=True)]  # fmt: skip
    return {"type": "record", "name": "Result", "namespace": "weir", "fields": fields}


class AvroRows:
    """Encodes results."""

    def __init__(self, settings: KafkaSettings, table: ResultTable) -> None:
        schema = avro_schema(table)
        self._schema = fastavro.parse_schema(schema)
        self._names = [field["name"] for field in schema["fields"]]
        self._decimals = [index for index, column in enumerate(table.columns)
                          if column.type is ValueType.DECIMAL]  # fmt: skip
        self._head = b""
        if settings.registry:
            registry, subject = open_sink_registry(settings), subject_of(settings.topic)
            self._head = with_prefix(registry.register(subject, json.dumps(schema)), b"")

    def __call__(self, row: Sequence[Any]) -> bytes:
        """Return a result as bytes. Raises `RefusedByDestination` for a number out of range."""
        buffer, values = io.BytesIO(self._head), [*row]
        buffer.seek(len(self._head))
        try:
            for index in self._decimals:
                values[index] = scaled(values[index])
            record = dict(zip(self._names, values, strict=True))
            fastavro.schemaless_writer(buffer, self._schema, record)
        except (ValueError, OverflowError, ArithmeticError, TypeError) as error:
            raise RefusedByDestination(f"{type(error).__name__}: {error}") from None
        return buffer.getvalue()


_TIMEOUT_S: Final = 20.0
# Errors that another attempt with the same row has, too.
_REFUSALS: Final = frozenset(
    {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE, KafkaError.INVALID_RECORD}
)
# The newest committed position is among so many offsets, but after many aborted transactions.
_NEWEST: Final = 100
# Of formats other than JSON.
_ENCODERS: Final[Mapping[str, Callable[[KafkaSettings, ResultTable], Callable[[Any], bytes]]]] = {
    "avro": AvroRows,
    "protobuf": ProtobufRows,
}
_POSITIONS: Final = {"cleanup.policy": "compact", "segment.ms": "3600000"}


def check_destination(settings: KafkaSettings) -> None:
    """Raise `Invalid` for wrong options, and unless the site lists the brokers and the registry."""
    # What of a topic's settings is the same for a stream that reads it.
    row = settings.model_dump(include={"servers", "topic", "options", "secrets", "registry"})
    if faults := source_faults(row, None):
        raise Invalid({f"settings.{name.removeprefix('source.')}": faults[name] for name in faults})


def open_destination(settings: KafkaSettings, context: SinkContext) -> "KafkaTopic":
    """Connect, and end the transactions of an earlier process."""
    topic = KafkaTopic(settings, context)
    try:
        topic.connect()
    except KafkaException as error:
        raise topic.away(error) from error
    except LogUnavailable as error:
        raise topic.away(error.__cause__ or error) from error
    return topic


def positions_topic(settings: KafkaSettings, uid: str) -> str:
    """Return the name of the topic with the positions of a sink."""
    return f"{settings.topic}-weir-{uid}"


class KafkaTopic:
    """An open topic."""

    def __init__(self, settings: KafkaSettings, context: SinkContext) -> None:
        self._settings, self._context = settings, context
        self._positions = positions_topic(settings, context.uid)
        encoder = _ENCODERS.get(settings.format)
        self._encode = None if encoder is None else encoder(settings, context.table)
        self._errors: list[KafkaError] = []
        # The newest error of a connection: a timeout has no cause.
        self._cause = ""
        self._options = with_tokens({
            **LOG_SETTINGS, **settings.options,
            **{option: named_secret(SecretOf.SINKS, name)
               for option, name in settings.secrets.items() if option in SECRETS},
            "error_cb": self._note,
        })  # fmt: skip

    def connect(self) -> None:
        """Create the topic of positions and the producer. Raises as its client does."""
        self._create_positions()
        producer = {
            "transactional.id": f"weir-sink-{self._context.uid}", "linger.ms": 20,
            "compression.type": "lz4", "partitioner": "murmur2_random",
            "delivery.report.only.error": True, "on_delivery": self._delivered,
        }  # fmt: skip
        self._producer = new_client(Producer, self._settings.servers, self._options | producer)
        self._producer.init_transactions(_TIMEOUT_S)

    def position(self) -> FeedPlace | None:
        """Return the position of the newest committed transaction of this epoch."""
        with closing(self._consumer()) as consumer:
            try:
                state = json.loads(self._newest(consumer) or "{}")
            except KafkaException as error:
                raise self.away(error) from error
        if state.get("epoch") != self._context.epoch:
            return None
        return FeedPlace.read(state["position"])

    def write(self, rows: Sequence[tuple[Any, ...]], before: FeedPlace, after: FeedPlace) -> None:
        """Produce rows and the position after them in one transaction."""
        producer = self._producer
        self._errors.clear()
        try:
            producer.begin_transaction()
            if rows:
                self._produce(rows)
            # The position is last, for brokers that show what was aborted.
            if producer.flush(_TIMEOUT_S):
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - the client's own
            if not self._errors:
                state = {"epoch": self._context.epoch, "position": str(after)}
                producer.produce(self._positions, json.dumps(state), self._context.uid, partition=0)
            producer.commit_transaction(_TIMEOUT_S)
            if self._errors:
                raise KafkaException(self._errors[0])
        except (KafkaException, SystemError) as error:
            # The client raises SystemError for a fatal error while it reports a delivery, at times
            # without a cause.
            known = isinstance(error, KafkaException)
            cause = error if known else error.__cause__ or self._fatal() or error
            raise self._failure(cause) from error
        except RefusedByDestination:
            self._abort()
            raise

    def close(self) -> None:
        """Abort an open transaction, and release the producer."""
        with suppress(KafkaException):
            self._producer.abort_transaction(1)
        # Its method `close` would wait for brokers that are away.
        del self._producer

    def _produce(self, rows: Sequence[tuple[Any, ...]]) -> None:
        table, topic = self._context.table, self._settings.topic
        names = {START.name, *(column.name for column in table.key)}
        chosen = [(place, column) for place, column in enumerate(table.columns)
                  if self._encode is None or column.name in names]  # fmt: skip
        json_values = json_rows(
            [column for _, column in chosen], [[row[place] for place, _ in chosen] for row in rows]
        )
        for row, values in zip(rows, json_values, strict=True):
            value = self._encode(row) if self._encode else pydantic_core.to_json(values)
            key = pydantic_core.to_json({column.name: values[column.name] for column in table.key})
            headers: Any = [("window", values[START.name]), ("query", table.query),
                            ("seq", str(row[-1]))]  # fmt: skip
            try:
                self._producer.produce(topic, value, key, headers=headers)
            except BufferError:
                self._producer.flush(_TIMEOUT_S)
                self._producer.produce(topic, value, key, headers=headers)

    def _delivered(self, error: KafkaError | None, _: Any) -> None:
        if error is not None:
            self._errors.append(error)

    def away(self, error: BaseException) -> DestinationAway:
        """Return the exception for an error of a client, with its cause."""
        why = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        return DestinationAway(f"The brokers: {why}{self._cause and f'; {self._cause}'}")

    def _note(self, error: KafkaError) -> None:
        self._cause = error.str()

    def _failure(self, error: BaseException) -> Exception:
        """Return the exception for an error of the producer."""
        causes = [*error.args[:1], *self._errors] if isinstance(error, KafkaException) else []
        refusals = [cause for cause in causes if cause.code() in _REFUSALS]
        if not refusals:
            return self.away(error)
        self._abort()
        return RefusedByDestination(refusals[0].str())

    def _fatal(self) -> KafkaException | None:
        """Return the fatal error of the producer, which ends its transactions, None without one."""
        try:
            self._producer.abort_transaction(_TIMEOUT_S)
        except KafkaException as error:
            return error
        return None

    def _abort(self) -> None:
        try:
            self._producer.abort_transaction(_TIMEOUT_S)
        except KafkaException as error:
            raise self.away(error) from error

    def _consumer(self) -> Consumer:
        consumer = {
            "group.id": f"weir-sink-{self._context.uid}", "isolation.level": "read_committed",
            "enable.partition.eof": True, "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "allow.auto.create.topics": False,
            "fetch.wait.max.ms": 20,
        }  # fmt: skip
        return new_client(Consumer, self._settings.servers, self._options | consumer)

    def _create_positions(self) -> None:
        """Create the topic of positions unless there is one."""
        with closing(self._consumer()) as consumer, suppress(NoSuchTopic):
            partitions_of(consumer, self._positions)
            return
        admin = new_client(AdminClient, self._settings.servers, self._options)
        topic = NewTopic(self._positions, 1, -1, config=_POSITIONS)
        try:
            admin.create_topics([topic], request_timeout=_TIMEOUT_S)[topic.topic].result()
        except KafkaException as error:
            text = f"The topic {topic.topic} of positions cannot be created: {error.args[0].str()}"
            raise DestinationAway(f"{text}. Create it: 1 partition, compacted") from error

    def _newest(self, consumer: Consumer) -> bytes | str | None:
        """Return the value of the newest committed record of positions, None without one."""
        first, end = consumer.get_watermark_offsets(
            TopicPartition(self._positions, 0), timeout=_TIMEOUT_S
        )
        for start in (max(first, end - _NEWEST), first):
            consumer.assign([TopicPartition(self._positions, 0, start)])
            newest = None
            while (message := consumer.poll(_TIMEOUT_S)) is not None and message.error() is None:
                newest = message.value()
            if message is None:
                raise DestinationAway(f"The brokers do not return the topic {self._positions}")
            error = message.error()
            if error and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's own
                raise KafkaException(error)
            if newest is not None:
                return newest
        return None
