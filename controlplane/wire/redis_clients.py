"""The only factory of connections to Redis: each has a time-out for connecting and for reading.

redis-py's own default (5 s) ends commands that block on the server for that long, and a client
without one waits for ever for a server that is stopped but not ended. So the time-out of a read is
the time that a response may take plus the time that its command blocks.

One immediate retry replaces an idle connection that the server has closed. A time-out is not
retried: redis-py's own default, three retries with pauses, would multiply it. Only the data plane
waits for a Redis that is away (`OutageProofRedis`): its batch would have to be run again.
"""

import math
import socket
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import redis
from redis.asyncio import ConnectionPool
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.client import Pipeline
from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import AuthenticationError, NoScriptError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from controlplane.wire.cancellable import make_cancellable
from controlplane.wire.network.destinations import addresses, check_whole

_T = TypeVar("_T")
# Five seconds: a page reports a lost Redis before its reader leaves.
READ_S: Final = 5.0
CONNECT_S: Final = 2.0
# Of the data plane and of background work, which retry a whole batch.
PATIENT_READ_S: Final = 20.0
PATIENT_CONNECT_S: Final = 5.0
# So long the data plane waits for a Redis that is away before a batch fails, and so often it tries.
OUTAGE_S: Final = 60.0
OUTAGE_POLL_S: Final = 0.25
# So long for one that rejects the login: it restarted and the agent has not yet created the user
# again, or another agent has taken the cluster over.
REFUSED_S: Final = 15.0
_AWAY: Final = (RedisConnectionError, RedisTimeoutError)
# The longest command of Channels (`RedisChannelLayer.brpop_timeout`) blocks for this time.
CHANNEL_BLOCK_S: Final = 5.0


class _Checked(Connection):
    """Connects to an address that the site allows."""

    protocol_name = "redis"

    def _connect(self) -> socket.socket:
        name, failure = self.host, OSError()
        for address in addresses(self.protocol_name, name, self.port):
            # The class connects to its host; TLS verifies the certificate of the name.
            self.host = address
            try:
                return super()._connect()  # type: ignore[no-untyped-call,no-any-return]
            except OSError as error:
                failure = error
            finally:
                self.host = name
        raise failure


class _CheckedTls(SSLConnection, _Checked):
    protocol_name = "rediss"


class _CheckedUnix(UnixDomainSocketConnection):
    def _connect(self) -> socket.socket:
        check_whole(f"unix://{self.path}")
        return super()._connect()  # type: ignore[no-untyped-call,no-any-return]


_CHECKED: Final = {kind.__base__: kind for kind in (_Checked, _CheckedTls, _CheckedUnix)}


class OutageProofRedis(redis.Redis):
    """A client whose commands wait up to `OUTAGE_S` for a Redis that is away, hangs or loads.

    A command whose response was lost is sent again, so each must be idempotent.
    """

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Execute a command as soon as Redis responds. Raises `redis.RedisError`."""
        execute: Callable[..., Any] = super().execute_command
        return _wait_out(lambda: execute(*args, **options), _AWAY)

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Pipeline:
        """Return a pipeline that waits as well."""
        return _OutageProofPipeline(
            self.connection_pool, self.response_callbacks, transaction, shard_hint
        )


class _OutageProofPipeline(Pipeline):
    def execute(self, raise_on_error: bool = True) -> list[Any]:
        commands, scripts = self.command_stack, self.scripts

        def attempt() -> list[Any]:
            # Each execution empties the pipeline; a Redis that restarted has no scripts.
            self.command_stack, self.scripts = commands, scripts
            return super(_OutageProofPipeline, self).execute(raise_on_error)

        return _wait_out(attempt, (*_AWAY, NoScriptError))


def _wait_out(attempt: Callable[[], _T], errors: tuple[type[Exception], ...]) -> _T:
    start, refused = time.monotonic(), math.inf
    while True:
        try:
            return attempt()
        except errors as error:
            now = time.monotonic()
            # A Redis that was away may lack the user for a moment more.
            refused = min(refused, now) if isinstance(error, AuthenticationError) else math.inf
            if now - start > OUTAGE_S or now - refused > REFUSED_S:
                raise
        time.sleep(OUTAGE_POLL_S)


def connect(
    url: str,
    *,
    read_s: float = READ_S,
    connect_s: float = CONNECT_S,
    block_s: float = 0.0,
    client: type[redis.Redis] = redis.Redis,
    **options: Any,
) -> "redis.Redis":
    """Return a client; `block_s`: the longest time that a command blocks on the server."""
    options.setdefault("retry", Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)))
    pool = redis.ConnectionPool.from_url(
        url, socket_timeout=read_s + block_s, socket_connect_timeout=connect_s, **options
    )
    pool.connection_class = _CHECKED[pool.connection_class]
    return client.from_pool(pool)


def connect_patiently(url: str, **options: Any) -> "redis.Redis":
    """Return a client of the data plane or of background work."""
    return connect(url, read_s=PATIENT_READ_S, connect_s=PATIENT_CONNECT_S, **options)


def connect_async(url: str, *, block_s: float = 0.0) -> AsyncRedis:
    """Return a client of an event loop; `block_s` as in `connect`."""
    pool = ConnectionPool.from_url(
        url, socket_timeout=READ_S + block_s, socket_connect_timeout=CONNECT_S, retry=_once_more()
    )
    return AsyncRedis.from_pool(make_cancellable(pool))


def channel_host(url: str) -> dict[str, Any]:
    """Return the host of a channel layer, with the time-outs and the retry of its connections."""
    return {
        "address": url,
        "socket_timeout": READ_S + CHANNEL_BLOCK_S,
        "socket_connect_timeout": CONNECT_S,
        "retry": _once_more(),
    }


def _once_more() -> AsyncRetry:
    return AsyncRetry(NoBackoff(), 1, supported_errors=(RedisConnectionError,))
