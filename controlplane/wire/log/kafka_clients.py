"""Clients of Kafka whose brokers, also those that a broker names, are destinations of the site.

librdkafka resolves names itself, each time it connects to a broker. Its C function
`rd_kafka_conf_set_resolve_cb` replaces that; the Python package does not offer it. So a client is
created without brokers, is given the resolver, and learns its brokers then.
"""

import ctypes
import os
import socket
from itertools import count
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, Producer, cimpl
from confluent_kafka.admin import AdminClient

from controlplane.wire.network.destinations import LIST, addresses

Client = TypeVar("Client", AdminClient, Consumer, Producer)

_library: Final = ctypes.CDLL(cimpl.__file__)
_library.rd_kafka_conf.restype = ctypes.c_void_p
_libc: Final = ctypes.CDLL(None)
_attempts: Final = count()


def _resolve(node: bytes | None, service: bytes, hints: int, answer: int, _: int) -> int:
    if node is None:
        _libc.freeaddrinfo(ctypes.c_void_p.from_address(answer))
        return 0
    try:
        allowed = addresses("kafka", node.decode(), int(service))
    except (OSError, ValueError):
        return int(socket.EAI_FAIL)
    # The client connects to this one; its next attempt gets the next one.
    address = allowed[next(_attempts) % len(allowed)].encode()
    return int(_libc.getaddrinfo(address, service, ctypes.c_void_p(hints), ctypes.c_void_p(answer)))


# It is never freed: threads of librdkafka may call it at any time.
_RESOLVE: Final = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, *[ctypes.c_void_p] * 3
)(_resolve)


def new_client(kind: type[Client], servers: str, settings: dict[str, Any]) -> Client:
    """Return a client of a Kafka cluster. Raises `KafkaException`."""
    if LIST not in os.environ:
        return kind({"bootstrap.servers": servers, **settings})
    client = kind(settings)
    # The first field of the package's C structure, behind the head of every Python object.
    handle = ctypes.c_void_p.from_address(id(client) + object.__basicsize__)
    conf = ctypes.c_void_p(_library.rd_kafka_conf(handle))
    _library.rd_kafka_conf_set_resolve_cb(conf, _RESOLVE)
    _library.rd_kafka_brokers_add(handle, servers.encode())
    return client
