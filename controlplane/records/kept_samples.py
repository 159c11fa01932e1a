"""The sample from which a user has declared a stream, kept for a day to be appended by one click.

A user has one sample at most: a new one replaces it. Without Redis no sample is kept.
"""

import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast

from redis.exceptions import RedisError

from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from controlplane.errors import Conflict
from controlplane.models import Stream
from controlplane.records.append import AppendResult
from controlplane.records.bodies import Format
from controlplane.records.requests import OnBad, append_body
from controlplane.wire.log.values import IdempotencyToken

KEPT_S: Final = 24 * 3600
_NOT_KEPT: Final = "The sample is no longer kept: upload the file"


@dataclass(frozen=True)
class KeptSample:
    """A kept sample: the name of its file, and its size in bytes."""

    file: str
    size: int


def keep_sample(actor: Actor, file: str, body: bytes, kind: Format) -> str:
    """Keep a sample of the actor; return its secret name, "" if it is not kept."""
    name = secrets.token_urlsafe(16)
    row: dict[Any, Any] = {
        "name": name,
        "file": file[:200],
        "kind": kind.value,
        "size": len(body),
        "body": body,
    }
    with suppress(RedisError):
        pipe = redis_client().pipeline()
        pipe.delete(_key(actor))
        pipe.hset(_key(actor), mapping=row)
        pipe.expire(_key(actor), KEPT_S)
        pipe.execute()
        return name
    return ""


def assign_sample(actor: Actor, name: str, stream: Stream) -> None:
    """Note that a stream was declared from the actor's sample with this name."""
    with suppress(RedisError):
        if name and _read(actor, "name") == [name.encode()]:
            redis_client().hset(_key(actor), "stream", stream.pk)


def sample_of(actor: Actor, stream: Stream) -> KeptSample | None:
    """Return the sample from which the actor has declared a stream, None if it is not kept."""
    with suppress(RedisError):
        declared, file, size = _read(actor, "stream", "file", "size")
        if declared == str(stream.pk).encode() and file is not None and size is not None:
            return KeptSample(file.decode(), int(size))
    return None


def append_sample(actor: Actor, stream: Stream) -> AppendResult:
    """Append the sample from which the actor has declared a stream, and keep it no longer.

    A repetition appends nothing. Raises `Conflict` (no_sample), and as `append_body` does.
    """
    name, declared, kind, body = _read(actor, "name", "stream", "kind", "body")
    if declared != str(stream.pk).encode() or name is None or kind is None or body is None:
        raise Conflict("no_sample", _NOT_KEPT)
    token = IdempotencyToken(f"sample-{name.decode()}", 0)
    done = append_body(actor, stream, body, Format(kind.decode()), token, OnBad.DEAD_LETTER)
    with suppress(RedisError):
        redis_client().delete(_key(actor))
    return done


def _key(actor: Actor) -> str:
    return f"weir:sample:{actor.user.pk}"


def _read(actor: Actor, *fields: str) -> list[bytes | None]:
    return cast("list[bytes | None]", redis_client().hmget(_key(actor), list(fields)))
