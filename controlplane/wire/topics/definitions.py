"""Schemas of messages in Avro and Protobuf: compiled, and messages written by them."""

import binascii
import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from io import BytesIO
from typing import Any, Final, NamedTuple

import fastavro
from fastavro.schema import SchemaParseException, UnknownType
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from controlplane.wire.topics.base import BadSource
from controlplane.wire.topics.source import MessageFormat, TopicSource

# Annotations whose values are read as they are: milliseconds, and text.
_AS_STORED: Final = frozenset({"timestamp-millis", "time-millis", "time-micros", "uuid"})
# Files that every file may import, which no registry has.
_IMPORTED: Final = ("timestamp", "duration", "wrappers", "struct", "any", "empty", "field_mask")


class Definition(NamedTuple):
    """The schema of messages, behind those that it refers to.

    Avro: texts of JSON. Protobuf: descriptors of files in base64, or with the name of a `message`
    one set of files.
    """

    parts: tuple[str, ...]
    message: str = ""


def declared_definition(source: TopicSource) -> Definition:
    """Return the schema that is declared with a source."""
    return Definition((source.definition,), source.message)


def check_definition(source: TopicSource) -> None:
    """Raise `BadSource` if the schema that is declared with a source cannot be read."""
    if source.definition and source.format == MessageFormat.AVRO:
        avro_schema(declared_definition(source))
    elif source.definition and source.format == MessageFormat.PROTOBUF:
        protobuf_class(declared_definition(source), ())


def named_file(text: str, name: str) -> str:
    """Return a descriptor of a file (base64) with the name by which others import it.

    Raises `BadSource` if it is none.
    """
    try:
        file = FileDescriptorProto.FromString(b64decode(text, validate=True))
    except (DecodeError, binascii.Error) as error:
        raise BadSource(
            {"schema": f"is not a serialized descriptor of Protobuf: {error}"}
        ) from error
    file.name = name or file.name or "message.proto"
    return b64encode(file.SerializeToString()).decode()


@lru_cache(maxsize=256)
def avro_schema(definition: Definition) -> Any:
    """Return a parsed schema of Avro. Raises `BadSource` if it is none."""
    known: dict[str, Any] = {}
    parsed: Any = None
    try:
        for text in definition.parts:
            parsed = fastavro.parse_schema(_as_stored(json.loads(text)), named_schemas=known)
    except (SchemaParseException, UnknownType, ValueError, LookupError, TypeError,
            RecursionError) as error:  # fmt: skip
        raise BadSource({"definition": f"is not a schema of Avro: {error}"[:300]}) from error
    return parsed


def _as_stored(schema: Any) -> Any:
    """Return a schema without annotations that Weir reads as the numbers and texts below them."""
    if isinstance(schema, list):
        return [_as_stored(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    is_plain = schema.get("logicalType") in _AS_STORED
    return {
        name: _as_stored(value) if name in {"type", "items", "values", "fields"} else value
        for name, value in schema.items()
        if not (is_plain and name == "logicalType")
    }


def avro_body(definition: Definition, row: Mapping[str, Any]) -> bytes:
    """Return a row as Avro. Raises ValueError with the reason if the schema does not take it."""
    stream = BytesIO()
    try:
        schema = avro_schema(definition)
        fastavro.schemaless_writer(stream, schema, _typed(row, schema), strict=True)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise ValueError(str(error)[:300] or type(error).__name__) from error
    return stream.getvalue()


def _typed(value: Any, schema: Any) -> Any:
    """Return a value of JSON as Avro's writer takes it: decimals, dates, times and floats."""
    if isinstance(schema, list):
        schema = next((kind for kind in schema if kind != "null"), "null")
    inner = schema if isinstance(schema, dict) else {}
    if isinstance(value, Mapping):
        kinds = {field["name"]: field["type"] for field in inner.get("fields", ())}
        every = inner.get("values")
        return {name: _typed(item, kinds.get(name, every)) for name, item in value.items()}
    if isinstance(value, list):
        return [_typed(item, inner.get("items")) for item in value]
    kind = inner.get("logicalType", inner.get("type", schema))
    convert = _OF_JSON.get((type(value), str(kind)))
    return value if convert is None else convert(value)


_OF_JSON: Final[Mapping[tuple[type, str], Callable[[Any], Any]]] = {
    (str, "decimal"): Decimal, (int, "decimal"): Decimal, (str, "date"): date.fromisoformat,
    (str, "timestamp-micros"): datetime.fromisoformat, (Decimal, "float"): float,
    (Decimal, "double"): float,
}  # fmt: skip


def protobuf_body(definition: Definition, row: Mapping[str, Any]) -> bytes:
    """Return a row as the first type of a definition. Raises ValueError with the reason."""
    message = protobuf_class(definition, (0,))()
    try:
        json_format.ParseDict(dict(row), message)
    except json_format.ParseError as error:
        raise ValueError(str(error)[:300]) from error
    return bytes(message.SerializeToString())


@lru_cache(maxsize=256)
def protobuf_class(definition: Definition, place: Sequence[int]) -> Any:
    """Return the class of a message: of the named one, else of its place in the last file.

    `place`: the index of its type, and those of the types in it. Raises `BadSource`.
    """
    try:
        pool = DescriptorPool()
        files = _files(definition)
        for file in _known_files(files) + files:
            pool.AddSerializedFile(file.SerializeToString())
        if definition.message:
            kind = pool.FindMessageTypeByName(definition.message)
        else:
            last = pool.FindFileByName(files[-1].name)
            kind = last.message_types_by_name[files[-1].message_type[place[0]].name]
            for index in place[1:]:
                kind = kind.nested_types[index]
        return message_factory.GetMessageClass(kind)
    except (TypeError, LookupError, ValueError, DecodeError, binascii.Error) as error:
        raise BadSource(
            {"definition": f"is not a descriptor of Protobuf: {error}"[:300]}
        ) from error


def _files(definition: Definition) -> list[FileDescriptorProto]:
    if definition.message:
        return list(FileDescriptorSet.FromString(b64decode(definition.parts[0])).file)
    return [FileDescriptorProto.FromString(b64decode(part)) for part in definition.parts]


def _known_files(files: Sequence[FileDescriptorProto]) -> list[FileDescriptorProto]:
    """Return the files of Protobuf itself that others import and do not have."""
    from google.protobuf import descriptor_pool  # noqa: PLC0415 - its types register themselves

    names = {file.name for file in files}
    wanted = {name for file in files for name in file.dependency} - names
    result = []
    for kind in _IMPORTED:
        name = f"google/protobuf/{kind}.proto"
        if name in wanted:
            __import__(f"google.protobuf.{kind}_pb2")
            file = FileDescriptorProto()
            descriptor_pool.Default().FindFileByName(name).CopyToProto(file)
            result.append(file)
    return result
