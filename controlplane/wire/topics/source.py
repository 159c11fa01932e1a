"""The declaration of a topic as the source of a stream: brokers, topic, format, start, security."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, Final

from controlplane.wire.errors import BadLogUrl
from controlplane.wire.log.address import is_server, is_topic
from controlplane.wire.network.destinations import address_of, addresses
from controlplane.wire.network.secrets import secret_names_fault
from controlplane.wire.schema import StreamSchema
from controlplane.wire.topics.base import TOPIC, BadSource, StreamSource, metadata_faults
from controlplane.wire.topics.places import STRIDE, pattern_fault
from controlplane.wire.topics.tokens import CLIENT, CLIENT_SECRET, ENDPOINT, MECHANISM, SCOPE

# Settings of the client that a declaration may set; others could load code or read files.
OPTIONS: Final = frozenset(
    {"sasl.mechanisms", "sasl.username", "security.protocol", "socket.timeout.ms",
     "ssl.endpoint.identification.algorithm", CLIENT, ENDPOINT, SCOPE}
)  # fmt: skip
# Settings whose values are secrets or certificates, which a declaration only refers to.
SECRETS: Final = frozenset(
    {
        "sasl.password",
        "ssl.ca.pem",
        "ssl.certificate.pem",
        "ssl.key.pem",
        "ssl.key.password",
        CLIENT_SECRET,
    }
)
# The secret with the login of the registry, "user:password", which no client of brokers has.
REGISTRY_SECRET: Final = "registry"  # noqa: S105 - no secret, but what it is for
_MAX_OFFSET: Final = 2**53
_MAX_DEFINITION: Final = 256 * 1024
_MAX_NAME: Final = 249
_URL: Final = re.compile(r"https?://[A-Za-z0-9.\[\]:_-]+(/[A-Za-z0-9._~/-]*)?")


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
    TOPIC = "topic"


class OnLoss(StrEnum):
    """What happens if unread messages are gone: the partition stops, or they are counted."""

    STOP = "stop"
    SKIP = "skip"


@dataclass(frozen=True, eq=False)
class TopicSource(StreamSource):
    """A topic, or all topics whose names match a pattern, that are read in place.

    `servers`: "host:port,…". `topic_pattern`: a regular expression (RE2) of whole names, instead of
    a `topic`; internal topics never match. `start`: earliest, latest, or an ISO 8601 time with a
    zone, for topics of the first answer; `offsets`: where partitions start that do not start there.
    `metadata`: column by what it has of a message.
    `group`: the consumer group to which offsets are committed, empty for a default. `on_loss`:
    `OnLoss`. `options`: settings of the client; `secrets`: by setting the name of its secret, which
    the environment of the site has. `registry`: the URL of a schema registry, empty for none;
    `definition`: the schema of messages without one: of Avro as JSON, of Protobuf a compiled
    descriptor set in base64, whose type is `message`, of CSV its columns.
    `envelope`: `MessageEnvelope`, with what `updates` and `deletes` are (`OnChange`). `produce`:
    the least role that may write a message, empty for nobody. Raises `BadSource`.
    """

    kind: ClassVar[str] = TOPIC
    about: ClassVar[Mapping[str, str]] = MappingProxyType({
        "servers": "`host:port,…` of the brokers",
        "topic": "the name of the topic",
        "topic_pattern": "instead: a regular expression of names of topics, also later ones",
        "format": "`json`, `csv`, `avro`, `protobuf` or `string`",
        "start": "`earliest`, `latest` or a time with a zone",
        "offsets": "by partition: where it starts instead",
        "metadata": "by column: `timestamp`, `partition`, `offset`, `key`, `operation` or `topic`",
        "group": "consumer group; empty: `weir-<cluster>-<stream id>`",
        "on_loss": "if unread messages are gone: `stop` or `skip`",
        "options": "settings of the client",
        "secrets": "by setting of the client: the name of a secret",
        "registry": "URL of a schema registry",
        "definition": "the schema of messages without a registry",
        "message": "the type of messages of Protobuf in the definition",
        "envelope": "`none` or `debezium`",
        "updates": "of an envelope: `record` or `skip`",
        "deletes": "of an envelope: `record` or `skip`",
        "produce": "the role that may write messages; empty: nobody",
    })  # fmt: skip

    servers: str
    topic: str = ""
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
    topic_pattern: str = ""

    def __post_init__(self) -> None:
        if faults := {name: why for name, why in _faults(self) if why}:
            raise BadSource(faults)

    @property
    def start_ms(self) -> int | None:
        """Return the time (ms) at which reading starts, None for earliest and latest."""
        if self.start in {"earliest", "latest"}:
            return None
        return round(datetime.fromisoformat(self.start).astimezone(UTC).timestamp() * 1000)

    @property
    def identity(self) -> str:
        """Return what makes offsets of two declarations offsets of the same messages."""
        return self.identity_of(self.topic or f"~{self.topic_pattern}")

    def identity_of(self, name: str) -> str:
        """Return the identity of another topic of the same brokers; it begins with that of ""."""
        return f"{self.servers}/{name}"

    @property
    def name(self) -> str:
        """Return the name of the topic, or the pattern."""
        return self.topic or self.topic_pattern

    @property
    def place(self) -> str:
        """Return what is read."""
        what = f"topic {self.topic}" if self.topic else f"topics that match {self.topic_pattern}"
        return f"{what} at {self.servers}"

    @property
    def is_decoded(self) -> bool:
        """Return whether a message is more than the JSON of a record."""
        plain = self.format == MessageFormat.JSON and self.envelope == MessageEnvelope.NONE
        return not plain or bool(self.registry)

    @property
    def stops_on_loss(self) -> bool:
        """Return whether a partition stops if unread messages are gone."""
        return self.on_loss == OnLoss.STOP

    def group_of(self, cluster: str, stream: int) -> str:
        """Return the consumer group of a stream."""
        return self.group or f"weir-{cluster}-{stream}"

    def faults_with_schema(self, schema: StreamSchema) -> dict[str, str]:
        """Return by field why messages of the topic cannot be records of a schema."""
        faults = metadata_faults(self.metadata, schema, _TYPES)
        if not schema.event_time:
            text = "a topic needs one: a column, or one with the message's timestamp"
            faults["event_time"] = text
        values = [column for column in schema.columns if column.name not in self.metadata]
        if self.format == MessageFormat.STRING and [column.type for column in values] != ["string"]:
            faults["format"] = "text needs one column of type string besides those of metadata"
        return faults

    def refusals(self) -> dict[str, str]:
        """Return that the list of the site does not have brokers, registry or token endpoint."""
        try:
            for server in self.servers.split(","):
                host, _, port = server.rpartition(":")
                addresses("kafka", host, int(port))
        except (OSError, BadLogUrl) as error:
            return {"servers": str(error)}
        places = (
            ("registry", self.registry, REGISTRY_SECRET in self.secrets),
            ("options", self.options.get(ENDPOINT), True),
        )
        for name, url, is_secret in places:
            try:
                _ = address_of(url, is_secret=is_secret) if url else ""
            except OSError as error:
                return {name: str(error)}
        return {}


_TYPES: Final = {
    Metadata.TIMESTAMP: "timestamp(ms)",
    Metadata.PARTITION: "int32",
    Metadata.OFFSET: "int64",
    Metadata.KEY: "string",
    Metadata.OPERATION: "string",
    Metadata.TOPIC: "string",
}


def _faults(source: TopicSource) -> Iterable[tuple[str, str]]:
    servers = source.servers.split(",")
    wrong = [server for server in servers if not is_server(server)]
    yield "servers", f"{wrong[0][:100]!r} is not host:port" if wrong else ""
    yield from _faults_of_name(source)
    yield "format", _not_in(source.format, MessageFormat)
    yield "on_loss", _not_in(source.on_loss, OnLoss)
    yield "start", "" if _is_start(source.start) else "must be earliest, latest or a time with zone"
    yield "offsets", "" if _are_offsets(source.offsets) else "must be an offset by partition"
    yield "metadata", next((t for v in source.metadata.values() if (t := _not_in(v, Metadata))), "")
    is_long = len(source.group) > _MAX_NAME
    yield "group", f"must have at most {_MAX_NAME} characters" if is_long else ""
    yield "options", _unknown(source.options, OPTIONS)
    yield "secrets", _unknown(source.secrets, SECRETS | {REGISTRY_SECRET})
    yield "secrets", secret_names_fault(source.secrets)
    if source.options.get("sasl.mechanisms") == MECHANISM:
        is_url = _URL.fullmatch(source.options.get(ENDPOINT, ""))
        yield "options", "" if is_url else f"{MECHANISM} needs {ENDPOINT}, a URL without a login"
        yield "options", "" if source.options.get(CLIENT) else f"{MECHANISM} needs {CLIENT}"
        is_secret = CLIENT_SECRET in source.secrets
        yield "secrets", "" if is_secret else f"{MECHANISM} needs {CLIENT_SECRET}"
    yield from _faults_of_format(source)


def _faults_of_name(source: TopicSource) -> Iterable[tuple[str, str]]:
    pattern = source.topic_pattern
    if bool(pattern) == bool(source.topic):
        yield "topic", "give the name of a topic, or a topic_pattern"
    elif source.topic:
        yield "topic", "" if is_topic(source.topic) else "is not a name of a topic"
    else:
        is_long = len(pattern) > _MAX_NAME
        why = f"must have at most {_MAX_NAME} characters" if is_long else pattern_fault(pattern)
        yield "topic_pattern", why
        yield "offsets", "need the name of one topic" if source.offsets else ""
        yield "produce", "needs the name of one topic" if source.produce else ""


def _faults_of_format(source: TopicSource) -> Iterable[tuple[str, str]]:
    for name, kind in (("envelope", MessageEnvelope), ("updates", OnChange), ("deletes", OnChange)):
        yield name, _not_in(getattr(source, name), kind)
    is_url = not source.registry or _URL.fullmatch(source.registry)
    yield "registry", "" if is_url else "must be http(s)://host:port/path, without a login"
    is_long = len(source.definition) > _MAX_DEFINITION
    yield "definition", f"must have at most {_MAX_DEFINITION:,} characters" if is_long else ""
    is_named = len(source.message) <= _MAX_NAME and not (source.message and source.registry)
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
    return len(offsets) <= STRIDE and all(
        name.isdecimal() and isinstance(offset, int) and 0 <= offset <= _MAX_OFFSET
        for name, offset in offsets.items()
    )
