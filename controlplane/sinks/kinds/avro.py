"""Results as Avro records, with the id of their schema in a registry if one is given."""

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import fastavro

from controlplane.sinks.columns import ResultTable, ValueType
from controlplane.sinks.destination import RefusedByDestination
from controlplane.sinks.kinds.arrow import scaled
from controlplane.sinks.kinds.schemas import field_names, open_sink_registry
from controlplane.sinks.kinds.settings import KafkaSettings
from controlplane.wire.topics.registry import subject_of, with_prefix

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
