"""What the records of Avro and of Protobuf have in common: names of fields, and the registry."""

from controlplane.sinks.columns import ResultTable, plain_name
from controlplane.sinks.destination import DestinationAway
from controlplane.sinks.kinds.settings import KafkaSettings
from controlplane.wire.network.secrets import SecretOf, named_secret
from controlplane.wire.topics.registry import RegistryClient, open_registry
from controlplane.wire.topics.source import REGISTRY_SECRET


def field_names(table: ResultTable) -> list[str]:
    """Return the name of the field of each column. Raises `DestinationAway` for two of one name."""
    names = dict[str, str]()
    for column in table.columns:
        other = names.setdefault(plain_name(column.name), column.name)
        if other != column.name:
            text = f"{other} and {column.name} would be one field: name one of them otherwise"
            raise DestinationAway(text)
    return list(names)


def open_sink_registry(settings: KafkaSettings) -> RegistryClient:
    """Return a client of the registry of a sink. Raises `NoSecret`."""
    name = settings.secrets.get(REGISTRY_SECRET)
    login = named_secret(SecretOf.SINKS, name) if name else ""
    return open_registry(settings.registry, login, is_protobuf=settings.format == "protobuf")
