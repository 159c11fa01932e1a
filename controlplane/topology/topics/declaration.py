"""Sources of streams: what is wrong with the declaration of a topic."""

from collections.abc import Mapping
from typing import Any

from controlplane.errors import Fields
from controlplane.wire.errors import BadLogUrl
from controlplane.wire.network.destinations import addresses
from controlplane.wire.schema import StreamSchema
from controlplane.wire.topics.definitions import check_definition
from controlplane.wire.topics.registry import check_registry
from controlplane.wire.topics.source import BadSource, TopicSource, faults_with_schema


def source_of(row: Mapping[str, Any]) -> TopicSource | None:
    """Return the source that a row has, None for a stream in the log of the cluster."""
    return TopicSource.from_json(row) if row else None


def source_faults(row: Mapping[str, Any], schema: StreamSchema | None) -> Fields:
    """Return why a stream of this schema cannot be read from a source, by field.

    `schema`: None if the stream keeps its own. The brokers must be in the list of the site; they
    are not asked.
    """
    try:
        source = TopicSource.from_json(row)
        check_definition(source)
    except BadSource as error:
        return {f"source.{name}": [_sentence(why)] for name, why in error.fields.items()}
    faults = {} if schema is None else faults_with_schema(source, schema)
    fields = {f"source.{name}": [_sentence(why)] for name, why in faults.items()}
    return fields | _refused(source)


def _refused(source: TopicSource) -> Fields:
    try:
        for server in source.servers.split(","):
            host, _, port = server.rpartition(":")
            addresses("kafka", host, int(port))
    except (OSError, BadLogUrl) as error:
        return {"source.servers": [str(error)]}
    try:
        if source.registry:
            check_registry(source.registry)
    except OSError as error:
        return {"source.registry": [str(error)]}
    return {}


def _sentence(why: str) -> str:
    return why[0].upper() + why[1:]
