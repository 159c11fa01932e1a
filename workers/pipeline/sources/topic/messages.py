"""Messages as rows of their format, without what is around a record: the changes of Debezium."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final, NamedTuple

from algorithms.strict_json import BadJson, check_bounds, object_of
from controlplane.wire.records.numbers import NumberText
from controlplane.wire.topics.base import BadSource
from controlplane.wire.topics.definitions import declared_definition
from controlplane.wire.topics.registry import body_of, prefix_of, registry_of
from controlplane.wire.topics.source import (
    MessageEnvelope,
    MessageFormat,
    Metadata,
    OnChange,
    TopicSource,
)
from workers.pipeline.sources.topic.rows import Row, Rows, avro_rows, csv_rows, protobuf_rows

# The operations of Debezium: insertions (also of a snapshot) and the others.
_INSERTIONS: Final = frozenset({"c", "r"})
_UPDATE: Final = "u"
DELETION: Final = "d"
# A table is emptied, or a message of the database: these have no record.
_OTHERS: Final = frozenset({"t", "m"})
_NOTHING: Final[Row] = {}


class Fetched(NamedTuple):
    """Messages of one partition of a `topic`.

    Values are bytes, `times_ms` of the broker or the producer.
    """

    partition: int
    offsets: Sequence[int]
    values: Sequence[bytes]
    keys: Sequence[bytes | None]
    times_ms: Sequence[int]
    topic: str = ""

    def only(self, index: int) -> "Fetched":
        """Return one of the messages."""
        own = slice(index, index + 1)
        return self._replace(
            offsets=self.offsets[own], values=self.values[own], keys=self.keys[own],
            times_ms=self.times_ms[own],
        )  # fmt: skip


class Changes(NamedTuple):
    """The operations of messages, "" without an envelope; `skipped`: those that are no records."""

    operations: Sequence[str]
    skipped: set[int]


def changes_of(operations: Sequence[str | None], source: TopicSource) -> Changes | None:
    """Return the changes with these operations, None if one is not known."""
    known = _INSERTIONS | _OTHERS | {_UPDATE, DELETION}
    if not known.issuperset(operations):
        return None
    unread = set(_OTHERS)
    unread |= {_UPDATE} if source.updates == OnChange.SKIP else set()
    unread |= {DELETION} if source.deletes == OnChange.SKIP else set()
    skipped = {place for place, name in enumerate(operations) if name in unread}
    return Changes([name or "" for name in operations], skipped)


def record_rows(
    messages: Fetched, source: TopicSource, names: Sequence[str], faults: dict[int, str]
) -> tuple[Rows, Changes]:
    """Return the records of messages as rows, with their changes; adds to `faults`.

    `names`: the columns of lines of CSV without declared ones. Raises `SourceUnavailable`.
    """
    rows = message_rows(messages.values, source, names, faults)
    if source.envelope == MessageEnvelope.NONE:
        return rows, Changes([""] * len(rows), set())
    operations = []
    for place, row in enumerate(rows):
        payload = row.get("payload") if isinstance(row.get("payload"), Mapping) else row
        assert payload is not None
        operation = payload.get("op")
        inner = payload.get("before" if operation == DELETION else "after")
        rows[place] = inner if isinstance(inner, Mapping) else _NOTHING
        is_known = isinstance(operation, str) and changes_of([operation], source) is not None
        if not is_known:
            faults.setdefault(place, "is not a change of Debezium: it has no known op")
        operations.append(operation if is_known else "c")
    changes = changes_of(operations, source)
    assert changes is not None
    for place, row in enumerate(rows):
        if row is _NOTHING and place not in changes.skipped:
            faults.setdefault(place, "is a change without a record")
    return rows, Changes(changes.operations, changes.skipped - faults.keys())


def message_rows(
    values: Sequence[bytes], source: TopicSource, names: Sequence[str], faults: dict[int, str]
) -> Rows:
    """Return messages as rows of their format, empty ones with a fault; as `record_rows`."""
    match MessageFormat(source.format):
        case MessageFormat.CSV:
            declared = source.definition.split(",") if source.definition else names
            return csv_rows(values, declared, faults)
        case MessageFormat.JSON:
            bodies = _bodies(values, faults) if source.registry else values
            return [_json_row(value, place, faults) for place, value in enumerate(bodies)]
        case MessageFormat.AVRO:
            return _by_schema(values, source, faults, avro_rows)
        case MessageFormat.PROTOBUF:
            return _by_schema(values, source, faults, protobuf_rows)
        case MessageFormat.STRING:
            return [{"text": value.decode("utf-8", "replace")} for value in values]


def _bodies(values: Sequence[bytes], faults: dict[int, str]) -> list[bytes]:
    for place, value in enumerate(values):
        if prefix_of(value) is None:
            faults[place] = "does not begin with the identifier of a schema"
    return [body_of(value) for value in values]


def _by_schema(
    values: Sequence[bytes],
    source: TopicSource,
    faults: dict[int, str],
    read: Callable[..., Rows],
) -> Rows:
    """Return messages as rows, those of each schema together."""
    if not source.registry:
        return read(values, declared_definition(source), faults, range(len(values)))
    rows: Rows = [_NOTHING] * len(values)
    bodies, places = _bodies(values, faults), dict[int, list[int]]()
    for place, value in enumerate(values):
        number = prefix_of(value)
        if number is not None:
            places.setdefault(number, []).append(place)
    for number, own in places.items():
        try:
            definition = registry_of(source).definition(number)
            if definition is None:
                raise BadSource({"schema": f"the registry has no schema {number}"})
            own_rows = read([bodies[place] for place in own], definition, faults, own)
        except BadSource as error:
            faults |= dict.fromkeys(own, str(error)[:200])
            continue
        for place, row in zip(own, own_rows, strict=True):
            rows[place] = row
    return rows


def letter_data(messages: Fetched, index: int, source: TopicSource, names: Sequence[str]) -> bytes:
    """Return what a dead letter keeps of a message: its record as JSON, with its metadata.

    It can be appended again when the schema has changed. A message that cannot be read, and one of
    JSON that is a record as it is, stay as they are.
    """
    own, faults = messages.only(index), dict[int, str]()
    value = messages.values[index]
    is_record = (source.envelope, source.registry, source.format) == ("none", "", "json")
    if source.format == MessageFormat.STRING or (is_record and not source.metadata):
        return value
    (row,), changes = record_rows(own, source, names, faults)
    if faults:
        return value
    key = own.keys[0]
    values = {
        Metadata.TIMESTAMP: own.times_ms[0], Metadata.PARTITION: own.partition,
        Metadata.OFFSET: own.offsets[0], Metadata.OPERATION: changes.operations[0],
        Metadata.KEY: None if key is None else key.decode("utf-8", "replace"),
        Metadata.TOPIC: own.topic,
    }  # fmt: skip
    metadata = {name: values[Metadata(kind)] for name, kind in source.metadata.items()}
    return row_text({**row, **metadata}).encode()


def row_text(row: Mapping[str, Any], number: Callable[[str], Any] = str) -> str:
    """Return a row as JSON; `number`: makes a value of a number with all its digits."""
    return json.dumps(_json_value(row, number), ensure_ascii=False)


def _json_value(value: Any, number: Callable[[str], Any]) -> Any:
    match value:
        case Mapping():
            return {str(name): _json_value(item, number) for name, item in value.items()}
        case list() | tuple():
            return [_json_value(item, number) for item in value]
        case NumberText():
            return number(value)
        case bytes():
            return b64encode(value).decode()
        case None | bool() | int() | float():
            return value
    return value.isoformat() if isinstance(value, datetime | date) else str(value)


def _json_row(value: bytes, place: int, faults: dict[int, str]) -> Row:
    """Return the object of a message, an empty one with a fault if it has none."""
    if place in faults:
        return _NOTHING
    try:
        check_bounds(value)
        row = _decoder.decode(value.decode())
    except (ValueError, RecursionError) as error:
        faults[place] = f"is not JSON: {error}"[:200]
        return _NOTHING
    if not isinstance(row, dict):
        faults[place] = "is not an object of JSON"
        return _NOTHING
    return row


def _no_constant(name: str) -> Any:
    raise BadJson("number", f"{name} is not JSON")


_decoder: Final = json.JSONDecoder(
    parse_float=NumberText, parse_constant=_no_constant, object_pairs_hook=object_of
)
