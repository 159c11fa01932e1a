"""Schemas of messages from a schema registry, by their identifiers.

A message of the registry's wire format begins with a zero byte and the identifier of its schema.
"""

import struct
import time
from functools import lru_cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import httpx

from controlplane.wire.errors import SourceUnavailable
from controlplane.wire.network.destinations import address_of
from controlplane.wire.network.requests import send
from controlplane.wire.topics.base import BadSource
from controlplane.wire.topics.clients import secret_of
from controlplane.wire.topics.definitions import Definition, named_file
from controlplane.wire.topics.source import REGISTRY_SECRET, MessageFormat, TopicSource

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

_PREFIX: Final = struct.Struct(">bI")
# Of an answer: a schema has at most 1 MB by default.
_MOST_BYTES: Final = 4 * 2**20
# So long an identifier that the registry does not know is not asked for again.
_UNKNOWN_S: Final = 30.0
# Clients that a process keeps: of a preview, each change of a form is another declaration.
_MOST_CLIENTS: Final = 64
# References of a schema, also of its references, that are followed.
_MOST_REFERENCES: Final = 200


def prefix_of(value: bytes) -> int | None:
    """Return the identifier of the schema that a message begins with, None without one."""
    if len(value) < _PREFIX.size or value[0]:
        return None
    number: int = _PREFIX.unpack_from(value)[1]
    return number


def with_prefix(number: int, body: bytes) -> bytes:
    """Return a message that begins with the identifier of its schema."""
    return _PREFIX.pack(0, number) + body


def body_of(value: bytes) -> bytes:
    """Return a message without the identifier of its schema."""
    return value[_PREFIX.size :]


class RegistryClient:
    """A schema registry; what it has answered is kept, as a schema never changes."""

    def __init__(self, client: "SchemaRegistryClient", *, is_protobuf: bool) -> None:
        self._client, self._form = client, "serialized" if is_protobuf else None
        self._kind = "PROTOBUF" if is_protobuf else "AVRO"
        self._known: dict[int, Definition] = {}
        self._unknown: dict[int, float] = {}

    def definition(self, number: int) -> Definition | None:
        """Return the schema with an identifier, None if the registry has none.

        Raises `SourceUnavailable`, and `BadSource` for one that cannot be read.
        """
        if number in self._known:
            return self._known[number]
        if time.monotonic() - self._unknown.get(number, -_UNKNOWN_S) < _UNKNOWN_S:
            return None
        schema = _requested(lambda: self._client.get_schema(number, fmt=self._form))
        if schema is None:
            self._unknown[number] = time.monotonic()
            return None
        return self._known.setdefault(number, Definition(self._parts(schema)))

    def latest(self, subject: str) -> tuple[int, Definition] | None:
        """Return the newest schema of a subject with its identifier, None if it has none.

        Raises `SourceUnavailable`, and `BadSource` for one that cannot be read.
        """
        schema = _requested(lambda: self._client.get_version(subject, fmt=self._form))
        return (
            None if schema is None else (schema.schema_id, Definition(self._parts(schema.schema)))
        )

    def register(self, subject: str, text: str) -> int:
        """Return the identifier that the registry gives a schema, or has given it before.

        Raises `SourceUnavailable`, also if the registry refuses the schema.
        """
        from confluent_kafka.schema_registry import Schema  # noqa: PLC0415 - slow to load

        schema = Schema(text, self._kind)
        number: int | None = _requested(lambda: self._client.register_schema(subject, schema))
        if number is None:
            raise SourceUnavailable(f"the schema registry has no subject {subject}")
        return number

    def _parts(self, schema: Any) -> tuple[str, ...]:
        """Return the text of a schema behind those that it refers to, each once."""
        parts, seen = dict[str, None](), set[tuple[str, int]]()

        def add(item: Any, name: str = "") -> None:
            if item.schema_type != self._kind:
                raise BadSource({"schema": f"is one of {item.schema_type}, not of {self._kind}"})
            for reference in item.references or ():
                place = reference.subject, reference.version
                if place not in seen and len(seen) < _MOST_REFERENCES:
                    seen.add(place)
                    schema = _requested(partial(self._client.get_version, *place, fmt=self._form))
                    if schema is None:
                        raise SourceUnavailable(f"the registry has no {place[0]} {place[1]}")
                    add(schema.schema, reference.name)
            parts[named_file(item.schema_str, name) if self._form else item.schema_str] = None

        add(schema)
        return tuple(parts)


def _requested(ask: Any) -> Any:
    """Return what the registry answers, None if it does not have it. Raises `SourceUnavailable`."""
    from confluent_kafka.schema_registry import SchemaRegistryError  # noqa: PLC0415 - slow to load

    try:
        return ask()
    except SchemaRegistryError as error:
        if error.http_status_code == HTTPStatus.NOT_FOUND:
            return None
        raise SourceUnavailable(f"the schema registry refuses: {error}") from error
    except (httpx.HTTPError, OSError) as error:
        raise SourceUnavailable(f"the schema registry does not respond: {error}") from error
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise SourceUnavailable(f"the schema registry returns no schema: {error}"[:300]) from error


def registry_of(source: TopicSource) -> RegistryClient:
    """Return this process's client of the registry of a source. Raises `BadSource`."""
    login, is_protobuf = secret_of(source, REGISTRY_SECRET), source.format == MessageFormat.PROTOBUF
    return kept_registry(source.registry, login, is_protobuf)


@lru_cache(maxsize=_MOST_CLIENTS)
def kept_registry(url: str, login: str, is_protobuf: bool) -> RegistryClient:
    """Return a client with the schemas that it has read, until its login changes."""
    return open_registry(url, login, is_protobuf=is_protobuf)


def open_registry(url: str, login: str = "", *, is_protobuf: bool = False) -> RegistryClient:
    """Return a client of a registry; `login`: "user:password"."""
    # Loads a client of single sign-on.
    from confluent_kafka.schema_registry import SchemaRegistryClient  # noqa: PLC0415

    client = SchemaRegistryClient({"url": url, "max.retries": 1})
    rest = client._rest_client  # noqa: SLF001 - its settings have no transport
    user, _, password = login.partition(":")
    rest.session = httpx.Client(
        auth=(user, password) if login else None, transport=_CheckedTransport(),
        headers={"Accept-Encoding": "identity"},
    )  # fmt: skip
    return RegistryClient(client, is_protobuf=is_protobuf)


def subject_of(topic: str) -> str:
    """Return the subject of the values of a topic."""
    return f"{topic}-value"


class _CheckedTransport(httpx.BaseTransport):
    """Sends a request to an address of the list of the site; time and size are bounded."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer. Raises `httpx.TransportError`."""
        url, is_secret = str(request.url), "authorization" in request.headers
        try:
            status, body = send(
                request.method, url, address_of(url, is_secret=is_secret), request.headers.raw,
                request.read(), _MOST_BYTES + 1,
            )  # fmt: skip
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        if len(body) > _MOST_BYTES:
            raise httpx.ReadError(f"an answer has more than {_MOST_BYTES:,} bytes")
        return httpx.Response(status, content=body)
