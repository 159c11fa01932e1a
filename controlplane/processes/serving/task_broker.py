"""The transport of Celery's tasks in Redis, which skips messages that are not tasks.

Without it, a list entry that is not JSON, or JSON of another form, ends the worker that takes it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty
from typing import Any

from kombu.transport import redis as kombu_redis
from redis import RedisError

from controlplane.connections import redis_client
from controlplane.wire.foreign.entries import SITE, EntryLocation, skip


@contextmanager
def _skipping() -> Iterator[None]:
    try:
        yield
    except (Empty, RedisError, OSError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever a message of another form causes
        skip(redis_client(), SITE, EntryLocation.TASKS, error, object())


class _Unacknowledged(kombu_redis.QoS):
    """The messages that workers hold; one that cannot be restored is forgotten."""

    def restore_by_tag(self, tag: Any, client: Any = None, leftmost: bool = False) -> None:
        with _skipping():
            super().restore_by_tag(tag, client, leftmost)
            return
        with self.pipe_or_acquire() as pipe:
            self._remove_from_indices(tag, pipe).execute()


class Channel(kombu_redis.Channel):
    """A channel that takes the next message after one that is not JSON."""

    QoS = _Unacknowledged

    def _brpop_read(self, **options: Any) -> Any:
        with _skipping():
            return super()._brpop_read(**options)  # type: ignore[misc]
        return True


class Transport(kombu_redis.Transport):
    """A transport that takes the next message after one of another form than a task's."""

    Channel = Channel

    def _deliver(self, message: Any, queue: str | None) -> None:
        with _skipping():
            super()._deliver(message, queue)
            return
        with _skipping():
            tag = message["properties"]["delivery_tag"]
            for channel in self.channels:
                if tag in channel.qos._delivered:  # noqa: SLF001 - of the base class
                    # It must not hold the place of another one.
                    channel.basic_reject(tag, requeue=False)
