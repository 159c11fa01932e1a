"""The address of a log: parsing and checks of its URL."""

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

from redis.connection import parse_url

from controlplane.wire.errors import BadLogUrl
from controlplane.wire.network.destinations import PORTS, addresses, check_whole, place_of

REDIS_SCHEMES: Final = ("redis", "rediss", "unix")
KAFKA_SCHEME: Final = "kafka"
# The options of the Kafka client that a URL may set. Others could make it load code or read files.
KAFKA_OPTIONS: Final = frozenset(
    {
        "compression.type", "delivery.timeout.ms", "message.max.bytes", "sasl.mechanisms",
        "security.protocol", "socket.timeout.ms", "ssl.ca.location",
    }
)  # fmt: skip
# The options of a Redis client that a URL may set. Others could change its place and time limits.
REDIS_OPTIONS: Final = frozenset(
    {"db", "username", "password", "protocol", "ssl_ca_certs", "ssl_cert_reqs"}
)
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SERVER: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})")


def is_server(text: str) -> bool:
    """Return whether a text is `host:port`."""
    match = _SERVER.fullmatch(text)
    return match is not None and 0 < int(match[2]) < 2**16


def is_topic(text: str) -> bool:
    """Return whether a text is a name of a Kafka topic."""
    return _TOPIC.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """A topic of a Kafka cluster.

    `servers`: "host:port,…"; `options`: settings of the client. `skip_lost`: whether to continue
    behind what Kafka deleted before it was read.
    """

    servers: str
    topic: str
    options: dict[str, str] = field(default_factory=dict)
    skip_lost: bool = False


def check_url(url: str) -> None:
    """Raise `BadLogUrl` unless `url` can be the address of a log."""
    scheme = url.partition("://")[0]
    try:
        if scheme == KAFKA_SCHEME:
            kafka_address(url, "cluster")
        elif scheme not in REDIS_SCHEMES or "://" not in url:
            raise BadLogUrl("begins with redis://, rediss://, unix:// or kafka://")
        elif unknown := parse_qs(urlsplit(url).query).keys() - REDIS_OPTIONS:
            raise BadLogUrl(f"unknown option {min(unknown)!r}")
        else:
            parse_url(url)  # type: ignore[no-untyped-call]
    except ValueError as error:
        raise BadLogUrl(f"is not a URL: {error}") from None


def check_destination(url: str) -> None:
    """Raise `NotAllowed` unless the site may connect to the servers of a log, and `OSError`.

    They are resolved, and connected to later: each connection is checked again.
    """
    parts = urlsplit(url)
    if parts.scheme == "unix":
        check_whole(place_of(url))
    elif parts.scheme != KAFKA_SCHEME:
        addresses(parts.scheme, parts.hostname or "localhost", parts.port or PORTS[parts.scheme])
    else:
        for server in kafka_address(url, "cluster").servers.split(","):
            host, _, port = server.rpartition(":")
            addresses(KAFKA_SCHEME, host, int(port))


def log_identity(url: str) -> str:
    """Return the identity of a log: its URL without login and options."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def kafka_address(url: str, cluster: str) -> KafkaAddress:
    """Return the address in `kafka://[user:password@]host:9092[,…][/topic][?options]`.

    Without a topic it is `weir-<cluster>`. Raises `BadLogUrl`.
    """
    parts = urlsplit(url)
    login, _, servers = parts.netloc.rpartition("@")
    for server in servers.split(","):
        if not is_server(server):
            raise BadLogUrl(f"{server!r} is not host:port, as in kafka://broker:9092/topic")
    topic = unquote(parts.path.strip("/")) or f"weir-{cluster}"
    if not is_topic(topic):
        raise BadLogUrl(f"{topic!r} is not a name of a Kafka topic")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    skip = options.pop("lost", "refuse")
    if skip not in {"refuse", "skip"}:
        raise BadLogUrl(f"lost={skip} must be refuse or skip")
    if unknown := sorted(options.keys() - KAFKA_OPTIONS):
        allowed = ", ".join(sorted(KAFKA_OPTIONS))
        raise BadLogUrl(f"unknown option {unknown[0]!r}; known are lost, {allowed}")
    return KafkaAddress(servers, topic, options | _login(login), skip == "skip")


def _login(login: str) -> dict[str, str]:
    if not login:
        return {}
    user, _, password = login.partition(":")
    return {"sasl.username": unquote(user), "sasl.password": unquote(password)}
