"""Formats of messages: Avro, Protobuf and CSV, by a registry or declared; changes of Debezium.

The registry is a real server; messages are written by the libraries of the formats.
"""

import base64
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import pytest
from google.protobuf.descriptor_pb2 import (
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from controlplane.records.bodies.letters import of_letter
from controlplane.wire.dead_letters import DeadLetter, Reason
from controlplane.wire.errors import LogUnavailable
from controlplane.wire.network.destinations import LIST
from controlplane.wire.schema import ColumnSpec, StreamSchema
from controlplane.wire.topics.base import BadSource
from controlplane.wire.topics.definitions import (
    Definition,
    avro_body,
    check_definition,
    protobuf_class,
)
from controlplane.wire.topics.registry import kept_registry, with_prefix
from controlplane.wire.topics.source import TopicSource
from tests.support.registry import Registry, running_registry
from workers.pipeline.sources.entries import Decoded
from workers.pipeline.sources.topic.decode import decode
from workers.pipeline.sources.topic.messages import Fetched, letter_data

SCHEMA: Final = StreamSchema(
    (
        ColumnSpec("at", "timestamp(ms)", nullable=False),
        ColumnSpec("country", "string"),
        ColumnSpec("amount", "decimal(12, 2)"),
        ColumnSpec("items", "int32"),
        ColumnSpec("place", "struct<x: int64>"),
    ),
    "at",
)
AT: Final = 1_772_359_200_123
MOMENT: Final = datetime.fromtimestamp(AT / 1000, UTC)
ROW: Final[dict[str, Any]] = {
    "at": AT, "country": "Köln", "amount": Decimal("12.50"), "items": 3, "place": {"x": 5},
}  # fmt: skip
PLACE: Final = {"type": "record", "name": "shop.Place", "fields": [
    {"name": "x", "type": "long"}, {"name": "more", "type": "string", "default": ""},
]}  # fmt: skip


def avro(*more: dict[str, Any], at: str = "timestamp-millis") -> str:
    """Return a schema of orders, whose place is of another schema."""
    fields = [
        {"name": "at", "type": {"type": "long", "logicalType": at}},
        {"name": "country", "type": ["null", "string"], "default": None},
        {"name": "amount", "type": {
            "type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "place", "type": ["null", "shop.Place"], "default": None}, *more,
    ]  # fmt: skip
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


ITEMS: Final = {"name": "items", "type": "int"}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """A registry with a login."""
    monkeypatch.setenv("WEIR_TOPIC_SECRET_SHOP", "weir:hidden")
    kept_registry.cache_clear()
    with running_registry("weir:hidden") as running:
        monkeypatch.setenv(LIST, f"{os.environ[LIST]} {running.url}")
        yield running


def by_registry(registry: Registry, kind: str, **more: Any) -> TopicSource:
    secrets = {"registry": "shop"}
    return TopicSource("b:9092", "t", kind, registry=registry.url, secrets=secrets, **more)


def read(source: TopicSource, *values: bytes, schema: StreamSchema = SCHEMA) -> Decoded:
    count = len(values)
    messages = Fetched(3, range(7, 7 + count), values, [b"k"] * count, [AT] * count)
    return decode(messages, source, schema)


def rows(decoded: Decoded) -> list[dict[str, Any]]:
    found = decoded.records.to_pylist()
    assert all(row["at"] == MOMENT for row in found)
    return [row | {"at": AT} for row in found]


def test_avro_is_read_by_the_schema_of_each_message_with_references(registry: Registry) -> None:
    """Schemas evolve: a topic has messages of several, and bytes that are of none."""
    registry.add("place-value", json.dumps(PLACE))
    reference = [{"name": "shop.Place", "subject": "place-value", "version": 1}]
    first = registry.add("t-value", avro(), references=reference)
    second = registry.add("t-value", avro(ITEMS, at="timestamp-micros"), references=reference)
    both = (json.dumps(PLACE), avro()), (json.dumps(PLACE), avro(ITEMS, at="timestamp-micros"))
    place = {"x": 5, "more": "y"}
    fields = {"at": AT, "country": "Köln", "amount": Decimal("12.50"), "place": place}
    old = avro_body(Definition(both[0]), fields)
    new = avro_body(Definition(both[1]), {
        "at": AT * 1000 + 456, "country": None, "amount": Decimal("12.50"), "place": None,
        "items": 3})  # fmt: skip
    values = [with_prefix(first, old), with_prefix(second, new), with_prefix(first, old + b"x"),
              with_prefix(first, old[:9]), with_prefix(99, old), b"{}", b""]  # fmt: skip
    result = read(by_registry(registry, "avro"), *values)
    assert rows(result) == [
        ROW | {"items": None}, ROW | {"country": None, "place": None},
    ]  # fmt: skip
    assert result.places.tolist() == [0, 1]
    assert set(result.faults) == {2, 3, 4, 5, 6}
    assert "another length" in result.faults[2]
    assert "no schema 99" in result.faults[4]
    assert "identifier of a schema" in result.faults[5]
    asked = len(registry.requests)
    read(by_registry(registry, "avro"), *values)
    assert len(registry.requests) == asked, "schemas never change"


def test_messages_wait_for_a_registry_that_does_not_respond(registry: Registry) -> None:
    """No message becomes a dead letter for it; the login is a secret by its name."""
    fields = [{"name": "at", "type": "long"}]
    text = json.dumps({"type": "record", "name": "o", "fields": fields})
    number = registry.add("t-value", text)
    value = with_prefix(number, avro_body(Definition((text,)), {"at": AT}))
    source = by_registry(registry, "avro")
    registry.is_away = True
    with pytest.raises(LogUnavailable, match="refuses"):
        read(source, value)
    registry.is_away = False
    assert len(rows(read(source, value))) == 1
    kept_registry.cache_clear()
    with pytest.raises(LogUnavailable, match="who are you"):
        read(replace(source, secrets={}), value)
    assert "hidden" not in source.to_text()


def test_avro_is_read_by_a_declared_schema() -> None:
    text = avro(ITEMS).replace('"shop.Place"', json.dumps(PLACE))
    source = TopicSource("b:9092", "t", "avro", definition=text)
    check_definition(source)
    row = ROW | {"place": {"x": 5, "more": ""}}
    assert rows(read(source, avro_body(Definition((text,)), row))) == [ROW]
    with pytest.raises(BadSource, match="not a schema of Avro"):
        check_definition(replace(source, definition='{"type": "unknown"}'))


def files() -> list[FileDescriptorProto]:
    """Return two compiled files of Protobuf: the second imports the first, and a time."""
    place = FileDescriptorProto(name="shop/place.proto", package="shop", syntax="proto3")
    kind = FieldDescriptorProto
    place.message_type.add(name="Place").field.add(
        name="x", number=1, type=kind.TYPE_INT64, label=kind.LABEL_OPTIONAL)  # fmt: skip
    file = FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.dependency.extend(["shop/place.proto", "google/protobuf/timestamp.proto"])
    file.message_type.add(name="Unused")
    order = file.message_type.add(name="Order")
    order.oneof_decl.add(name="_country")
    label = kind.LABEL_OPTIONAL
    types: dict[str, dict[str, Any]] = {
        "at": {"type": kind.TYPE_MESSAGE, "type_name": ".google.protobuf.Timestamp"},
        "country": {"type": kind.TYPE_STRING, "proto3_optional": True, "oneof_index": 0},
        "amount": {"type": kind.TYPE_STRING},
        "items": {"type": kind.TYPE_INT32},
        "place": {"type": kind.TYPE_MESSAGE, "type_name": ".shop.Place"},
    }  # fmt: skip
    for number, (name, more) in enumerate(types.items(), 1):
        order.field.add(name=name, number=number, label=label, **more)
    return [place, file]


def order(kind: Any) -> bytes:
    message = kind(country="Köln", amount="12.50", items=3)
    message.at.FromMilliseconds(AT)
    message.place.x = 5
    return bytes(message.SerializeToString())


def encoded(file: Any) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


def test_protobuf_is_read_by_a_declared_descriptor_set() -> None:
    definition = encoded(FileDescriptorSet(file=files()))
    source = TopicSource("b:9092", "t", "protobuf", definition=definition, message="shop.Order")
    check_definition(source)
    kind = protobuf_class(Definition((definition,), "shop.Order"), ())
    result = read(source, order(kind), b"\xff", kind(amount="1").SerializeToString())
    assert rows(result) == [ROW]
    assert set(result.faults) == {1, 2}
    assert result.faults[2] == "at is missing or null", "presence is kept"
    with pytest.raises(BadSource, match="not a descriptor"):
        check_definition(replace(source, message="shop.None"))


def test_protobuf_is_read_by_descriptors_of_the_registry(registry: Registry) -> None:
    """The message names its type by its place; the schema that it refers to is another subject."""
    place, file = files()
    place.name = "default"
    registry.add("place", encoded(place), "PROTOBUF")
    reference = [{"name": "shop/place.proto", "subject": "place", "version": 1}]
    number = registry.add("t-value", encoded(file), "PROTOBUF", reference)
    kind = protobuf_class(Definition((encoded(FileDescriptorSet(file=files())),), "shop.Order"), ())
    # The second type of the file: one index, of 1, in the zigzag coding.
    # Of another format, and as a registry has it that does not serialize.
    others = [registry.add("t-value", avro()),
              registry.add("t-value", 'syntax = "proto3";', "PROTOBUF")]  # fmt: skip
    result = read(by_registry(registry, "protobuf"), with_prefix(number, b"\x02\x02" + order(kind)),
                  with_prefix(number, b"\x02\x09" + order(kind)),
                  *(with_prefix(other, b"\0") for other in others))  # fmt: skip
    assert rows(result) == [ROW]
    assert set(result.faults) == {1, 2, 3}
    assert "is one of AVRO, not of PROTOBUF" in result.faults[2]
    assert "is not a serialized descriptor" in result.faults[3]


def test_csv_is_a_line_of_text_for_each_message() -> None:
    source = TopicSource("b:9092", "t", "csv", definition="country,at,amount,items")
    result = read(source, f'"Köln",{AT},12.50,3'.encode(), f"Köln,{AT},12.50\r\n".encode(),
                  f'"K\nö,""ln""",{AT},,3\n'.encode(), b"a\nb,1,2,3", b"\xff,1,2,3")  # fmt: skip
    plain = ROW | {"place": None}
    assert rows(result) == [plain, plain | {"country": 'K\nö,"ln"', "amount": None}]
    assert set(result.faults) == {1, 3, 4}
    assert result.faults[1] == "has 3 cells, not 4"
    own = StreamSchema(SCHEMA.columns[:2], "at")
    assert read(TopicSource("b:9092", "t", "csv"), f"{AT},DE".encode(), schema=own).records.num_rows


JSON_ROW: Final = ROW | {"amount": "12.50", "unknown": 1, "place": {"x": 5, "more": 1}}


@pytest.mark.parametrize("is_wrapped", [False, True])
@pytest.mark.parametrize("is_pretty", [False, True])
def test_changes_of_debezium_are_records_as_declared(*, is_wrapped: bool, is_pretty: bool) -> None:
    """By Arrow and row by row alike; the operation can be a column."""
    old = JSON_ROW | {"items": 2}
    changes = [
        {"op": "r", "before": None, "after": JSON_ROW, "source": {"lsn": 1}},
        {"op": "c", "after": JSON_ROW}, {"op": "u", "before": old, "after": JSON_ROW},
        {"op": "d", "before": old, "after": None}, {"op": "t"},
    ]  # fmt: skip
    wrapped = [{"schema": {}, "payload": row} if is_wrapped else row for row in changes]
    indent = 1 if is_pretty else None
    values = [json.dumps(row, indent=indent).encode() for row in wrapped]
    source = TopicSource("b:9092", "t", envelope="debezium", metadata={"op": "operation"})
    schema = StreamSchema((*SCHEMA.columns, ColumnSpec("op", "string")), "at")
    result = read(source, *values, schema=schema)
    assert rows(result) == [ROW | {"op": op} for op in "rcu"]
    assert (result.skipped, dict(result.faults)) == (2, {})
    every = replace(source, updates="skip", deletes="record")
    result = read(every, *values, schema=schema)
    assert [(row["op"], row["items"]) for row in rows(result)] == [("r", 3), ("c", 3), ("d", 2)]
    assert result.skipped == 2
    bad = read(source, *values, b'{"op": "x"}', b'{"op": "c"}', b"{}", schema=schema)
    assert (bad.records.num_rows, bad.skipped, set(bad.faults)) == (3, 2, {5, 6, 7})


def test_a_dead_letter_keeps_the_record_that_was_read_as_json() -> None:
    """With its metadata, so it can be appended again under another schema."""
    day = {"type": "int", "logicalType": "date"}
    types = {"at": "long", "day": day, "data": "bytes"}
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    text = json.dumps({"type": "record", "name": "o", "fields": fields})
    source = TopicSource("b:9092", "t", "avro", definition=text, metadata={"p": "partition"})
    value = avro_body(Definition((text,)), {"at": AT, "day": date(2026, 3, 1), "data": b"x"})
    messages = Fetched(3, [7, 8], [value, b"\xff"], [b"k", None], [AT, AT])
    kept = json.loads(letter_data(messages, 0, source, []))
    assert kept == {"at": AT, "day": "2026-03-01", "data": "eA==", "p": 3}
    assert letter_data(messages, 1, source, []) == b"\xff"
    letter = DeadLetter(1, "3-7", 0, Reason.MESSAGE, "", letter_data(messages, 0, source, []))
    columns = (SCHEMA.columns[0], ColumnSpec("data", "binary"))
    again = of_letter(letter, StreamSchema(columns, "at"), (), "")
    assert again.batch.to_pylist() == [{"at": MOMENT, "data": b"x"}], "other fields are ignored"
