"""Schemas of results in Protobuf: numbers of fields, refusals, and answers of a registry."""

import base64
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from threading import Thread
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from controlplane.sinks.columns import ResultColumn, ResultTable, ValueType
from controlplane.sinks.destination import DestinationAway, RefusedByDestination
from controlplane.sinks.kinds.kafka import AvroRows
from controlplane.sinks.kinds.protobuf import ProtobufRows
from controlplane.sinks.kinds.settings import KafkaSettings
from controlplane.wire.errors import LogUnavailable
from controlplane.wire.network.destinations import LIST
from controlplane.wire.schema import ColumnSpec, StreamSchema
from controlplane.wire.topics.base import BadSource
from controlplane.wire.topics.registry import RegistryClient
from controlplane.wire.topics.source import TopicSource
from tests.support.registry import Registry, running_registry
from workers.pipeline.sources.topic.decode import decode
from workers.pipeline.sources.topic.messages import Fetched

SUBJECT = "t-value"
NOW = datetime(2026, 5, 1, 12, 30, 0, 123456, UTC)
INT, TEXT, FLOAT = ValueType.INT, ValueType.TEXT, ValueType.FLOAT
MORE = (ColumnSpec("window_end", "timestamp(us)", nullable=False), ColumnSpec("seq", "int64"))


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    with running_registry() as running:
        monkeypatch.setenv(LIST, f"{os.environ[LIST]} {running.url}")
        yield running


def table(**values: ValueType) -> ResultTable:
    key = (ResultColumn("station", TEXT, is_key=True),)
    return ResultTable("q", 60_000, key, tuple(map(ResultColumn, values, values.values())), {})


def encoder(registry: Registry, **values: ValueType) -> ProtobufRows:
    return ProtobufRows(settings(registry), table(**values))


def settings(registry: Registry, kind: str = "protobuf") -> KafkaSettings:
    given = {"servers": "b:9092", "topic": "t", "format": kind, "registry": registry.url}
    return KafkaSettings.model_validate(given)


def row(*values: Any) -> tuple[Any, ...]:
    return (NOW, NOW, "a", *values, None, 1.0, True, NOW, 7)


def newest(registry: Registry) -> FileDescriptorProto:
    return FileDescriptorProto.FromString(base64.b64decode(registry.schemas(SUBJECT)[-1]))


def numbers(registry: Registry) -> dict[str, int]:
    return {field.name: field.number for field in newest(registry).message_type[0].field}


def read(registry: Registry, values: list[bytes], **types: str) -> list[dict[str, Any]]:
    """Return messages as a stream of these columns reads them."""
    columns = (*(ColumnSpec(name, kind) for name, kind in types.items()), *MORE)
    source = TopicSource("b:9092", "t", "protobuf", registry=registry.url)
    none = [0] * len(values)
    fetched = Fetched(0, none, values, [None] * len(values), none)
    decoded = decode(fetched, source, StreamSchema(columns, "window_end"))
    assert not decoded.faults
    return [{name: found[name] for name in types} for found in decoded.records.to_pylist()]


def test_a_stream_reads_every_type_and_null_exactly(registry: Registry) -> None:
    kinds = {kind.value: kind for kind in ValueType}
    types = {
        "int": "int64", "float": "float64", "decimal": "decimal(38, 9)", "bool": "bool",
        "text": "string", "time": "timestamp(us)", "date": "date", "json": "string",
    }  # fmt: skip
    given = {
        "int": -(2**63), "float": 0.1, "decimal": Decimal("-12345678901234567890.000000001"),
        "bool": False, "text": "", "time": NOW, "date": date(2026, 1, 31), "json": "[1]",
    }  # fmt: skip
    encode = encoder(registry, **kinds)
    ordered = [given[name] for name in kinds]
    early = given | {"time": datetime(1970, 1, 1, tzinfo=UTC)}
    rows = [given, dict.fromkeys(types), early]
    values = [encode(row(*(values[name] for name in kinds))) for values in rows]
    assert read(registry, values, **types) == rows
    for wrong in (2**63, "\ud800"):
        with pytest.raises(RefusedByDestination):
            encode(row(*[wrong if type(wrong) is type(value) else value for value in ordered]))


def test_fields_keep_their_numbers_when_a_query_is_edited(registry: Registry) -> None:
    """A column that is gone keeps its number, also if it returns; readers read old and new."""
    values = [encoder(registry, n=INT, total=FLOAT)(row(5, 1.5))]
    first = numbers(registry)
    assert sorted(first.values()) == [*range(1, len(first) + 1)]
    values.append(encoder(registry, n=INT, total=FLOAT)(row(6, 2.5)))
    assert len(registry.schemas(SUBJECT)) == 1, "the same columns have the same schema"
    values.append(encoder(registry, top=TEXT, total=FLOAT)(row("x", 3.5)))
    assert numbers(registry) == first | {"top": len(first) + 1}
    values.append(encoder(registry, n=INT)(row(7)))
    assert len(registry.schemas(SUBJECT)) == 2
    nothing = {"n": None, "total": None, "top": None}
    assert read(registry, values, n="int64", total="float64", top="string") == [
        nothing | {"n": 5, "total": 1.5}, nothing | {"n": 6, "total": 2.5},
        nothing | {"top": "x", "total": 3.5}, nothing | {"n": 7},
    ]  # fmt: skip


def test_two_sinks_of_one_topic_add_their_columns_one_after_the_other(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one begins while the first one registers its schema."""
    register = RegistryClient.register
    second = Thread(target=encoder, args=(registry,), kwargs={"b": INT})

    def with_another(client: RegistryClient, subject: str, text: str) -> int:
        monkeypatch.setattr(RegistryClient, "register", register)
        second.start()
        second.join(0.5)
        return register(client, subject, text)

    monkeypatch.setattr(RegistryClient, "register", with_another)
    encoder(registry, a=INT)
    second.join()
    assert {"a", "b"} <= {*numbers(registry)}
    assert len({*numbers(registry).values()}) == len(numbers(registry))


def _without_optional(file: FileDescriptorProto) -> None:
    file.message_type[0].field[-1].proto3_optional = False


def _with_reserved_name(file: FileDescriptorProto) -> None:
    file.message_type[0].reserved_name.append("top")


def _in_proto2(file: FileDescriptorProto) -> None:
    file.syntax = "proto2"


def _with_large_number(file: FileDescriptorProto) -> None:
    file.message_type[0].reserved_range.add(start=10_000, end=10_001)


@pytest.mark.parametrize(
    ("change", "columns", "reason"),
    [
        (None, {"n": FLOAT}, "has n as int64, the results as double"),
        (_without_optional, {"n": INT}, "has seq without `optional`"),
        (_with_reserved_name, {"n": INT, "top": TEXT}, "reserves the name top"),
        (_in_proto2, {"n": INT}, "is not proto3"),
        (_with_large_number, {"n": INT, "top": TEXT}, "has used the numbers up to 10,000"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_and_stays(
    registry: Registry, change: Any, columns: dict[str, ValueType], reason: str
) -> None:
    encoder(registry, n=INT)
    if change is not None:
        file = newest(registry)
        change(file)
        registry.add(SUBJECT, base64.b64encode(file.SerializeToString()).decode(), "PROTOBUF")
    before = registry.schemas(SUBJECT)
    with pytest.raises(DestinationAway, match=f"{SUBJECT} in the registry {reason}"):
        encoder(registry, **columns)
    assert registry.schemas(SUBJECT) == before


def test_two_columns_of_one_field_are_refused(registry: Registry) -> None:
    two = replace(table(), key=tuple(ResultColumn(name, TEXT) for name in ("a.b", "a_b")))
    for encode, kind in ((ProtobufRows, "protobuf"), (AvroRows, "avro")):
        with pytest.raises(DestinationAway, match=r"a.b and a_b would be one field"):
            encode(settings(registry, kind), two)
    assert registry.schemas(SUBJECT) == []


def test_a_subject_of_another_format_is_refused(registry: Registry) -> None:
    AvroRows(settings(registry, "avro"), table())
    with pytest.raises(BadSource, match="is one of AVRO, not of PROTOBUF"):
        encoder(registry)


@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_the_sink_waits_for_a_registry_that_refuses_or_answers_too_much(
    registry: Registry, kind: str
) -> None:
    encode = AvroRows if kind == "avro" else ProtobufRows
    registry.refusal = "incompatible with an earlier schema"
    with pytest.raises(LogUnavailable, match="incompatible with an earlier"):
        encode(settings(registry, kind), table())
    registry.refusal, registry.padding = "", 5 * 2**20
    with pytest.raises(LogUnavailable, match=r"more than 4,194,304 bytes"):
        encode(settings(registry, kind), table())
    registry.padding = 0
    encode(settings(registry, kind), table())
