"""Connections to Redis whose tasks can be cancelled.

redis-py sends each command in `asyncio.wait_for`, which loses a cancellation on Python before 3.12
if the sending ends in the same step of the event loop. The task then waits for a response that may
never come: the socket of a closed page, or the shutdown of a process.
"""

import asyncio
from functools import cache
from typing import Any, cast

from redis.asyncio import ConnectionPool
from redis.asyncio.connection import AbstractConnection


def make_cancellable(pool: ConnectionPool) -> ConnectionPool:
    """Let tasks that use a pool's future connections be cancelled; return the pool."""
    # Classes are hashable; mypy looks at the hash of their instances.
    pool.connection_class = _cancellable(pool.connection_class)  # type: ignore[arg-type]
    return pool


@cache
def _cancellable(kind: type[AbstractConnection]) -> type[AbstractConnection]:
    class Cancellable(kind):  # type: ignore[misc, valid-type]
        async def send_packed_command(self, *arguments: Any, **options: Any) -> None:
            """Send a command. Raises `CancelledError` if the task was cancelled meanwhile."""
            task = asyncio.current_task()
            before = task.cancelling() if task else 0
            await super().send_packed_command(*arguments, **options)
            if task and task.cancelling() > before:
                # Its response would be read as that of the next command.
                await self.disconnect(nowait=True)
                raise asyncio.CancelledError

    return cast("type[AbstractConnection]", Cancellable)
