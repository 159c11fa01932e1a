"""The lifespan of a web process: a heartbeat from its event loop while it serves."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from django.conf import settings
from redis.exceptions import RedisError

from controlplane.processes.runtime.beats import BEATS, beat_field, now_ms
from controlplane.processes.runtime.process_kinds import WEB
from controlplane.wire.redis_clients import connect_async

Message = Mapping[str, Any]


async def lifespan(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[..., Awaitable[None]]
) -> None:
    """Write heartbeats from start-up until shutdown, as the ASGI server announces them."""
    await receive()
    beating = asyncio.create_task(_beat_for_ever())
    await send({"type": "lifespan.startup.complete"})
    await receive()
    beating.cancel()
    with suppress(asyncio.CancelledError):
        await beating
    await send({"type": "lifespan.shutdown.complete"})


async def _beat_for_ever() -> None:
    field = beat_field(WEB.name, str(os.getpid()))
    client = connect_async(settings.REDIS_URL)
    try:
        while True:
            # Pages report a lost Redis; heartbeats continue with its return.
            with suppress(RedisError, OSError):
                await client.hset(BEATS, field, str(now_ms()))
            await asyncio.sleep(WEB.period_s)
    finally:
        await client.aclose()
