"""The declaration of a topic as the source of a stream: brokers, topic, format, start, security."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from controlplane.wire.errors import WireError
from controlplane.wire.log.address import is_server, is_topic
from controlplane.wire.network.secrets import is_secret_name
from controlplane.wire.schema import StreamSchema

# Settings of the client that a declaration may set; others could load code or read files.
OPTIONS: Final = frozenset(
    {"sasl.mechanisms", "sasl.username", "security.protocol", "socket.timeout.ms",
     "ssl.endpoint.identification.algorithm"}
)  # fmt: skip
# Settings whose values are secrets or certificates, which a declaration only refers to.
SECRETS: Final = frozenset(
    {"sasl.password", "ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem", "ssl.key.password"}
)
# The secret with the login of the registry, "user:password", which no client of brokers has.
REGISTRY_SECRET: Final = "registry"  # noqa: S105 - no secret, but what it is for
_MAX_PARTITIONS: Final = 10_000
_MAX_OFFSET: Final = 2**53
_MAX_DEFINITION: Final = 256 * 1024
_REGISTRY: Final = re.compile(r"https?://[A-Za-z0-9.\[\]:_-]+(/[A-Za-z0-9._~/-]*)?")
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class MessageFormat(StrEnum):
    """How a message's value is read.

    An object of JSON, a line of CSV, a record of Avro, a message of Protobuf, or the text of one
    column.
    """

    JSON = "json"
    CSV = "csv"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    STRING = "string"

    @property
    def has_fields(self) -> bool:
        """Return whether a message names its fields, so that it may be in an envelope."""
        return self not in {MessageFormat.CSV, MessageFormat.STRING}


class MessageEnvelope(StrEnum):
    """What is around the record of a message: nothing, or a change as Debezium writes it."""

    NONE = "none"
    DEBEZIUM = "debezium"


class OnChange(StrEnum):
    """What an update or a deletion is: a record, or nothing that is read, but counted."""

    RECORD = "record"
    SKIP = "skip"


class Metadata(StrEnum):
    """What of a message besides its value a column can have."""

    TIMESTAMP = "timestamp"
    PARTITION = "partition"
    OFFSET = "offset"
    KEY = "key"
    OPERATION = "operation"


class OnLoss(StrEnum):
    """What happens if unread messages are gone: the partition stops, or they are counted."""

    STOP = "stop"
    SKIP = "skip"


class BadSource(WireError):
    """An invalid declaration of a source: messages by field."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = dict(fields)
        super().__init__("; ".join(f"{name}: {why}" for name, why in fields.items()))


@dataclass(frozen=True)
class TopicSource:
    """A topic that is read in place.

    `servers`: "host:port,…". `start`: earliest, latest, or an ISO 8601 time with a zone; `offsets`:
    where partitions start that do not start there. `metadata`: column by what it has of a message.
    `group`: the consumer group to which offsets are committed, empty for a default. `on_loss`:
    `OnLoss`. `options`: settings of the client; `secrets`: by setting the name of its secret, which
    the environment of the site has. `registry`: the URL of a schema registry, empty for none;
    `definition`: the schema of messages without one: of Avro as JSON, of Protobuf a compiled
    descriptor set in base64, whose type is `message`, of CSV its columns.
    `envelope`: `MessageEnvelope`, with what `updates` and `deletes` are (`OnChange`). `produce`:
    the least role that may write a message, empty for nobody. Raises `BadSource`.
    """

    servers: str
    topic: str
    format: str = MessageFormat.JSON
    start: str = "earliest"
    offsets: Mapping[str, int] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    on_loss: str = OnLoss.STOP
    options: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    registry: str = ""
    definition: str = ""
    message: str = ""
    envelope: str = MessageEnvelope.NONE
    updates: str = OnChange.RECORD
    deletes: str = OnChange.SKIP
    produce: str = ""

    def __post_init__(self) -> None:
        if faults := {name: why for name, why in _faults(self) if why}:
            raise BadSource(faults)

    def __hash__(self) -> int:
        return hash(self.to_text())

    @property
    def start_ms(self) -> int | None:
        """Return the time (ms) at which reading starts, None for earliest and latest."""
        if self.start in {"earliest", "latest"}:
            return None
        return round(datetime.fromisoformat(self.start).astimezone(UTC).timestamp() * 1000)

    @property
    def identity(self) -> str:
        """Return what makes offsets of two declarations offsets of the same messages."""
        return f"{self.servers}/{self.topic}"

    @property
    def is_decoded(self) -> bool:
        """Return whether a message is more than the JSON of a record."""
        plain = self.format == MessageFormat.JSON and self.envelope == MessageEnvelope.NONE
        return not plain or bool(self.registry)

    def group_of(self, cluster: str, stream: int) -> str:
        """Return the consumer group of a stream."""
        return self.group or f"weir-{cluster}-{stream}"

    def to_json(self) -> dict[str, Any]:
        """Return the declaration as JSON values, without defaults. It has no secret."""
        return {name: value for name, value in asdict(self).items() if value != _DEFAULTS.get(name)}

    def to_text(self) -> str:
        """Return the declaration as canonical JSON."""
        return json.dumps(self.to_json(), separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "TopicSource":
        """Return the source that `to_json` wrote. Raises `BadSource`."""
        return cls.from_text(json.dumps(row, sort_keys=True))

    @staticmethod
    @lru_cache(maxsize=1024)
    def from_text(text: str) -> "TopicSource":
        """Return the cached source of a text by `to_text`. Raises `BadSource`."""
        try:
            return TopicSource(**json.loads(text))
        except (TypeError, AttributeError) as error:
            raise BadSource({"source": f"is not as it should be: {error}"[:200]}) from error


_DEFAULTS: Final[Mapping[str, Any]] = {
    "format": "json", "start": "earliest", "offsets": {}, "metadata": {}, "group": "",
    "on_loss": "stop", "options": {}, "secrets": {}, "registry": "", "definition": "",
    "message": "", "envelope": "none", "updates": "record", "deletes": "skip", "produce": "",
}  # fmt: skip


def faults_with_schema(source: TopicSource, schema: StreamSchema) -> dict[str, str]:
    """Return by field why messages of a source cannot be records of a schema."""
    faults: dict[str, str] = {}
    types = {column.name: column.type for column in schema.columns}
    for name, kind in source.metadata.items():
        if types.get(name) != _TYPES[Metadata(kind)]:
            faults[f"metadata.{name}"] = f"must be a column of type {_TYPES[Metadata(kind)]}"
    if not schema.event_time:
        faults["event_time"] = "a topic needs one: a column, or one with the message's timestamp"
    values = [column for column in schema.columns if column.name not in source.metadata]
    if source.format == MessageFormat.STRING and [column.type for column in values] != ["string"]:
        faults["format"] = "text needs one column of type string besides those of metadata"
    return faults


_TYPES: Final = {
    Metadata.TIMESTAMP: "timestamp(ms)",
    Metadata.PARTITION: "int32",
    Metadata.OFFSET: "int64",
    Metadata.KEY: "string",
    Metadata.OPERATION: "string",
}


def _faults(source: TopicSource) -> Iterable[tuple[str, str]]:
    servers = source.servers.split(",")
    wrong = [server for server in servers if not is_server(server)]
    yield "servers", f"{wrong[0][:100]!r} is not host:port" if wrong else ""
    yield "topic", "" if is_topic(source.topic) else "is not a name of a topic"
    yield "format", _not_in(source.format, MessageFormat)
    yield "on_loss", _not_in(source.on_loss, OnLoss)
    yield "start", "" if _is_start(source.start) else "must be earliest, latest or a time with zone"
    yield "offsets", "" if _are_offsets(source.offsets) else "must be an offset by partition"
    yield "metadata", next((t for v in source.metadata.values() if (t := _not_in(v, Metadata))), "")
    yield "group", "must have at most 249 characters" if len(source.group) > 249 else ""  # noqa: PLR2004
    yield "options", _unknown(source.options, OPTIONS)
    yield "secrets", _unknown(source.secrets, SECRETS | {REGISTRY_SECRET})
    names = [name for name in source.secrets.values() if not is_secret_name(str(name))]
    yield "secrets", "a secret's name has small letters, digits, hyphens and _" if names else ""
    yield from _faults_of_format(source)


def _faults_of_format(source: TopicSource) -> Iterable[tuple[str, str]]:
    for name, kind in (("envelope", MessageEnvelope), ("updates", OnChange), ("deletes", OnChange)):
        yield name, _not_in(getattr(source, name), kind)
    is_url = not source.registry or _REGISTRY.fullmatch(source.registry)
    yield "registry", "" if is_url else "must be http(s)://host:port/path, without a login"
    is_long = len(source.definition) > _MAX_DEFINITION
    yield "definition", f"must have at most {_MAX_DEFINITION:,} characters" if is_long else ""
    is_named = len(source.message) <= 249 and not (source.message and source.registry)  # noqa: PLR2004
    yield "message", "" if is_named else "is a name, and belongs to a definition"
    if source.format in {MessageFormat.AVRO, MessageFormat.PROTOBUF}:
        is_known = bool(source.registry) != bool(source.definition)
        yield "definition", "" if is_known else "give the schema of messages, or a registry"
    if source.format == MessageFormat.PROTOBUF and source.definition:
        yield "message", "" if source.message else "name the type of messages"
    if source.envelope != MessageEnvelope.NONE and source.format in list(MessageFormat):
        has = MessageFormat(source.format).has_fields
        yield "envelope", "" if has else f"messages of {source.format} have none"
    roles = {"", "operator", "admin"}
    yield "produce", "" if source.produce in roles else "must be operator, admin or empty"


def _not_in(value: str, kind: type[StrEnum]) -> str:
    return "" if value in list(kind) else f"must be {' or '.join(kind)}"


def _unknown(given: Mapping[str, str], known: frozenset[str]) -> str:
    unknown = sorted(given.keys() - known)
    if unknown:
        return f"unknown setting {unknown[0][:60]!r}; known are {', '.join(sorted(known))}"
    return "" if all(isinstance(value, str) for value in given.values()) else "must be texts"


def _is_start(text: str) -> bool:
    if text in {"earliest", "latest"}:
        return True
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _are_offsets(offsets: Mapping[str, int]) -> bool:
    return len(offsets) <= _MAX_PARTITIONS and all(
        name.isdecimal() and isinstance(offset, int) and 0 <= offset <= _MAX_OFFSET
        for name, offset in offsets.items()
    )
