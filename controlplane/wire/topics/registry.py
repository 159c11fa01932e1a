"""Schemas of messages from a schema registry, by their identifiers.

A message of the registry's wire format begins with a zero byte and the identifier of its schema.
"""

import struct
import time
from functools import cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx

from controlplane.wire.errors import LogUnavailable
from controlplane.wire.network.destinations import PORTS, NotAllowed, addresses
from controlplane.wire.topics.clients import secret
from controlplane.wire.topics.definitions import Definition, named_file
from controlplane.wire.topics.source import REGISTRY_SECRET, MessageFormat, TopicSource

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

_PREFIX: Final = struct.Struct(">bI")
_TIMEOUT_S: Final = 5.0
# So long an identifier that the registry does not know is not asked for again.
_UNKNOWN_S: Final = 30.0
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
        self._known: dict[int, Definition] = {}
        self._unknown: dict[int, float] = {}

    def definition(self, number: int) -> Definition | None:
        """Return the schema with an identifier, None if the registry has none.

        Raises `LogUnavailable`.
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
        """Return the newest schema of a subject with its identifier, None if it has none."""
        schema = _requested(lambda: self._client.get_version(subject, fmt=self._form))
        return (
            None if schema is None else (schema.schema_id, Definition(self._parts(schema.schema)))
        )

    def _parts(self, schema: Any) -> tuple[str, ...]:
        """Return the text of a schema behind those that it refers to, each once."""
        parts, seen = dict[str, None](), set[tuple[str, int]]()

        def add(item: Any, name: str = "") -> None:
            for reference in item.references or ():
                place = reference.subject, reference.version
                if place not in seen and len(seen) < _MOST_REFERENCES:
                    seen.add(place)
                    schema = _requested(partial(self._client.get_version, *place, fmt=self._form))
                    if schema is None:
                        raise LogUnavailable(f"the registry has no {place[0]} {place[1]}")
                    add(schema.schema, reference.name)
            parts[named_file(item.schema_str, name) if self._form else item.schema_str] = None

        add(schema)
        return tuple(parts)


def _requested(ask: Any) -> Any:
    """Return what the registry answers, None if it does not have it. Raises `LogUnavailable`."""
    from confluent_kafka.schema_registry import SchemaRegistryError  # noqa: PLC0415 - slow to load

    try:
        return ask()
    except SchemaRegistryError as error:
        if error.http_status_code == HTTPStatus.NOT_FOUND:
            return None
        raise LogUnavailable(f"the schema registry refuses: {error}") from error
    except (httpx.HTTPError, OSError) as error:
        raise LogUnavailable(f"the schema registry does not respond: {error}") from error


@cache
def registry_of(source: TopicSource) -> RegistryClient:
    """Return this process's client of the registry of a source. Raises `BadSource`."""
    return open_registry(
        source.registry, source.secrets.get(REGISTRY_SECRET, ""),
        is_protobuf=source.format == MessageFormat.PROTOBUF,
    )  # fmt: skip


def open_registry(url: str, secret_name: str = "", *, is_protobuf: bool = False) -> RegistryClient:
    """Return a client of a registry; `secret_name`: of its "user:password". Raises `BadSource`."""
    # Loads a client of single sign-on.
    from confluent_kafka.schema_registry import SchemaRegistryClient  # noqa: PLC0415

    client = SchemaRegistryClient({"url": url, "max.retries": 1, "timeout": _TIMEOUT_S})
    rest = client._rest_client  # noqa: SLF001 - its settings have no hook and no address
    login = secret(secret_name).partition(":") if secret_name else None
    rest.session = httpx.Client(
        auth=(login[0], login[2]) if login else None, timeout=_TIMEOUT_S, trust_env=False,
        event_hooks={"request": [_pin]},
    )  # fmt: skip
    return RegistryClient(client, is_protobuf=is_protobuf)


def check_registry(url: str) -> None:
    """Raise `NotAllowed` or `OSError` unless the list of the site has the registry."""
    parts = urlsplit(url)
    addresses(parts.scheme, parts.hostname or "", parts.port or PORTS[parts.scheme])


def _pin(request: httpx.Request) -> None:
    """Let a request go to the address that was checked; TLS verifies the name."""
    url, host = request.url, request.url.host
    try:
        address = addresses(url.scheme, host, url.port or PORTS[url.scheme])[0]
    except NotAllowed as refusal:
        raise httpx.ConnectError(str(refusal)) from None
    request.url = url.copy_with(host=address)
    request.extensions = {**request.extensions, "sni_hostname": host}
