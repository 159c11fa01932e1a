"""Sources of streams: what is wrong with a declaration."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field, create_model

from controlplane.errors import Fields
from controlplane.wire.schema import StreamSchema
from controlplane.wire.sources.kinds import fields_of_kinds, source_from_json
from controlplane.wire.topics.base import BadSource, StreamSource
from controlplane.wire.topics.definitions import check_definition
from controlplane.wire.topics.source import TopicSource


def source_of(row: Mapping[str, Any]) -> StreamSource | None:
    """Return the source that a row has, None for a stream in the log of the cluster."""
    return source_from_json(row) if row else None


def source_body(base: type[BaseModel]) -> Any:
    """Return a model with the fields of all kinds of sources."""
    columns: dict[str, Any] = {
        name: (item.type, Field(item.default, description=item.about))
        for name, item in fields_of_kinds().items()
    }
    return create_model("_Source", __base__=base, **columns)


def source_faults(
    row: Mapping[str, Any], schema: StreamSchema | None, *, resolves: bool = True
) -> Fields:
    """Return why a stream of this schema cannot be read from a source, by field.

    `schema`: None if the stream keeps its own. The list of the site must have the brokers or the
    directory; they are not asked. `resolves`: whether that is checked, which may wait for a name.
    """
    try:
        source = source_from_json(row)
        if isinstance(source, TopicSource):
            check_definition(source)
    except BadSource as error:
        return _fields(error.fields)
    faults = {} if schema is None else source.faults_with_schema(schema)
    return _fields(faults | (source.refusals() if resolves else {}))


def _fields(faults: Mapping[str, str]) -> Fields:
    return {f"source.{name}": [f"{why[0].upper()}{why[1:]}"] for name, why in faults.items()}
