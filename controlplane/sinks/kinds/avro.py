"""Results as Avro records, with the id of their schema in a registry if one is given."""

import io
import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import fastavro

from controlplane.integrations import outbound
from controlplane.sinks.columns import ResultTable, ValueType
from controlplane.sinks.destination import DestinationAway, RefusedByDestination, named_secret
from controlplane.sinks.kinds.arrow import scaled
from controlplane.sinks.kinds.settings import KafkaSettings
from controlplane.wire.topics.registry import with_prefix

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
_REGISTRY: Final = "application/vnd.schemaregistry.v1+json"


def avro_schema(table: ResultTable) -> dict[str, Any]:
    """Return the schema of the results of a query; names have letters, digits and _ only."""
    fields = [{"name": re.sub(r"\W", "_", column.name, flags=re.ASCII),
               "type": ["null", _TYPES[column.type]], "default": None}
              for column in table.columns]  # fmt: skip
    return {"type": "record", "name": "Result", "namespace": "weir", "fields": fields}


class AvroRows:
    """Encodes results."""

    def __init__(self, settings: KafkaSettings, table: ResultTable) -> None:
        schema = avro_schema(table)
        self._schema = fastavro.parse_schema(schema)
        self._names = [field["name"] for field in schema["fields"]]
        self._decimals = [index for index, column in enumerate(table.columns)
                          if column.type is ValueType.DECIMAL]  # fmt: skip
        self._head = with_prefix(_registered(settings, schema), b"") if settings.registry else b""

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


def _registered(settings: KafkaSettings, schema: Mapping[str, Any]) -> int:
    """Return the id that the registry gives a schema, or has given it before."""
    url = f"{settings.registry.rstrip('/')}/subjects/{settings.topic}-value/versions"
    headers = {"Content-Type": _REGISTRY, "Accept": _REGISTRY}
    if settings.registry_secret:
        login = b64encode(named_secret(settings.registry_secret).encode()).decode()
        headers["Authorization"] = f"Basic {login}"
    body = json.dumps({"schema": json.dumps(schema), "schemaType": "AVRO"}).encode()
    try:
        status, answer = outbound.post(outbound.resolved(url), headers, body)
        if status == HTTPStatus.OK:
            return int(json.loads(answer)["id"])
    except (outbound.AddressRejected, outbound.AddressUnreachable) as error:
        raise DestinationAway(f"The registry of schemas does not respond: {error}") from error
    except (ValueError, KeyError, TypeError):
        status = HTTPStatus.OK
    raise DestinationAway(f"The registry of schemas responds {status}: {answer}")
