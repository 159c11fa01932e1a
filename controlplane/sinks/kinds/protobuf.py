"""Results as messages of Protobuf, whose fields keep the numbers of the registered schema."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache
from threading import Lock
from typing import Any, Final

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as _Kind

from controlplane.results.values import decimal_text
from controlplane.sinks.columns import START, ResultTable, ValueType
from controlplane.sinks.destination import DestinationAway, RefusedByDestination
from controlplane.sinks.kinds.schemas import field_names, open_sink_registry
from controlplane.sinks.kinds.settings import KafkaSettings
from controlplane.wire.topics.definitions import Definition, protobuf_class
from controlplane.wire.topics.registry import subject_of, with_prefix

_TIMESTAMP: Final = "google/protobuf/timestamp.proto"
_TYPES: Final[Mapping[ValueType, "_Kind.Type.ValueType"]] = {
    ValueType.INT: _Kind.TYPE_INT64,
    ValueType.FLOAT: _Kind.TYPE_DOUBLE,
    ValueType.DECIMAL: _Kind.TYPE_STRING,
    ValueType.BOOL: _Kind.TYPE_BOOL,
    ValueType.TEXT: _Kind.TYPE_STRING,
    ValueType.TIME: _Kind.TYPE_MESSAGE,
    ValueType.DATE: _Kind.TYPE_STRING,
    ValueType.JSON: _Kind.TYPE_STRING,
}
# The place of the type in its file, behind the identifier of the schema: it is the first one.
_FIRST: Final = b"\0"
# Protobuf reserves the numbers from 19,000 on.
_MOST_NUMBER: Final = 10_000
# By registry and subject: sinks that write to one topic add their columns one after the other.
_registering: Final = dict[tuple[str, str], Lock]()


class ProtobufRows:
    """Encodes results; adds to the registered schema the columns that it lacks."""

    def __init__(self, settings: KafkaSettings, table: ResultTable) -> None:
        registry, subject = open_sink_registry(settings), subject_of(settings.topic)
        with _registering.setdefault((settings.registry, subject), Lock()):
            newest = registry.latest(subject)
            number, text = (0, "") if newest is None else (newest[0], newest[1].parts[-1])
            file, is_new = result_file(table, subject, text)
            text = b64encode(file.SerializeToString(deterministic=True)).decode()
            if is_new:
                number = registry.register(subject, text)
        self._message = protobuf_class(Definition((text,)), (0,))
        self._head = with_prefix(number, _FIRST)
        kinds = [column.type for column in table.columns]
        names = [*enumerate(zip(field_names(table), kinds, strict=True))]
        self._fields = [(place, name, _CONVERSIONS.get(kind))
                        for place, (name, kind) in names if kind is not ValueType.TIME]  # fmt: skip
        self._times = [(place, name) for place, (name, kind) in names if kind is ValueType.TIME]
        self._timestamp = lru_cache(maxsize=4096)(self._new_timestamp)

    def __call__(self, row: Sequence[Any]) -> bytes:
        """Return a result as bytes. Raises `RefusedByDestination` for a number out of range."""
        try:
            message = self._message(**{
                name: row[place] if convert is None else convert(row[place])
                for place, name, convert in self._fields if row[place] is not None
            })  # fmt: skip
        except (ValueError, OverflowError, ArithmeticError, TypeError) as error:
            raise RefusedByDestination(f"{type(error).__name__}: {error}") from None
        for place, name in self._times:
            if row[place] is not None:
                getattr(message, name).CopyFrom(self._timestamp(row[place]))
        return self._head + bytes(message.SerializeToString())

    def _new_timestamp(self, value: datetime) -> Any:
        # Its class is that of the type's own pool of descriptors.
        result = type(getattr(self._message(), START.name))()
        result.FromDatetime(value)
        return result


def result_file(
    table: ResultTable, subject: str, registered: str
) -> tuple[FileDescriptorProto, bool]:
    """Return the descriptor of the results, and whether it is another than the registered one.

    `registered`: the newest descriptor of the subject (base64), "" without one. Its fields keep
    their numbers and stay, also those without a column, so that no number has two meanings. Raises
    `DestinationAway` if a column and its field differ.
    """
    file = _read(registered, subject) if registered else _new_file()
    (message, *_), is_new = file.message_type, not registered
    fields = {field.name: field for field in message.field}
    for name, column in zip(field_names(table), table.columns, strict=True):
        kind = _TYPES[column.type]
        if name in fields:
            _check_field(fields[name], kind, subject)
        elif name in message.reserved_name:
            raise _misfit(subject, f"reserves the name {name}")
        else:
            _add_field(message, name, kind, subject)
            is_new = True
    return file, is_new


def _new_file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="result.proto", package="weir", syntax="proto3")
    file.dependency.append(_TIMESTAMP)
    file.message_type.add(name="Result")
    return file


def _read(text: str, subject: str) -> FileDescriptorProto:
    file = FileDescriptorProto.FromString(b64decode(text))
    if file.syntax != "proto3" or not file.message_type or [*file.dependency] != [_TIMESTAMP]:
        raise _misfit(subject, f"is not proto3 with a message that imports only {_TIMESTAMP}")
    return file


def _check_field(field: _Kind, kind: "_Kind.Type.ValueType", subject: str) -> None:
    """Raise `DestinationAway` unless a field can have the values of a column, and none."""
    has, wanted = _type_name(field), _type_name(_field(field.name, kind, field.number))
    if has != wanted:
        raise _misfit(subject, f"has {field.name} as {has}, the results as {wanted}")
    is_message = kind == _Kind.TYPE_MESSAGE and not field.HasField("oneof_index")
    if not (field.proto3_optional or is_message):
        raise _misfit(subject, f"has {field.name} without `optional`, which nulls need")


def _type_name(field: _Kind) -> str:
    name = field.type_name.lstrip(".") or _Kind.Type.Name(field.type).removeprefix("TYPE_").lower()
    return f"repeated {name}" if field.label == _Kind.LABEL_REPEATED else name


def _add_field(
    message: DescriptorProto, name: str, kind: "_Kind.Type.ValueType", subject: str
) -> None:
    used = [field.number for field in message.field]
    used += [some.end - 1 for some in message.reserved_range]
    used += [some.end - 1 for some in message.extension_range]
    number = max(used, default=0) + 1
    if number > _MOST_NUMBER:
        raise _misfit(subject, f"has used the numbers up to {number - 1:,}")
    field = _field(name, kind, number)
    if kind != _Kind.TYPE_MESSAGE:
        # What `optional` is in a descriptor.
        field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")
    message.field.append(field)


def _field(name: str, kind: "_Kind.Type.ValueType", number: int) -> _Kind:
    field = _Kind(name=name, number=number, label=_Kind.LABEL_OPTIONAL, type=kind)
    if kind == _Kind.TYPE_MESSAGE:
        field.type_name = ".google.protobuf.Timestamp"
    return field


def _misfit(subject: str, why: str) -> DestinationAway:
    text = f"The schema of {subject} in the registry {why}"
    return DestinationAway(f"{text}: name the column otherwise, or write to another topic")


_CONVERSIONS: Final[Mapping[ValueType, Callable[[Any], Any]]] = {
    ValueType.DECIMAL: decimal_text,
    ValueType.DATE: date.isoformat,
}
