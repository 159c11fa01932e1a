"""A consumer that ends stops to receive, whenever it is cancelled."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from channels.layers import get_channel_layer

from controlplane.connections import redis_client
from controlplane.wire.foreign.entries import SITE, skipped_entries
from controlplane.wire.redis_clients import connect_async

# The steps of the event loop after which a task is cancelled: connecting, sending, waiting.
STEPS = 40


async def steps_that_lose_it(make: Callable[[], Awaitable[object]]) -> list[int]:
    """Return the steps after which a cancellation did not end the task."""
    lost = []
    for steps in range(STEPS):
        task = asyncio.ensure_future(make())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        if (await asyncio.wait({task}, timeout=2))[1]:
            lost.append(steps)
            task.cancel()
            await asyncio.wait({task})
    return lost


@pytest.mark.usefixtures("redis_url")
async def test_receiving_can_be_cancelled_at_each_step() -> None:
    async def receive() -> None:
        layer = get_channel_layer()
        assert layer is not None
        await layer.receive(await layer.new_channel())

    assert await steps_that_lose_it(receive) == []


async def test_connections_that_redis_has_closed_are_replaced(redis_url: str) -> None:
    """As after its restart: the first message and the first socket afterwards are not lost."""
    layer, client = get_channel_layer(), connect_async(redis_url)
    assert layer is not None
    try:
        channel = await layer.new_channel()
        await layer.group_add("readers", channel)
        await client.client_kill_filter(_type="normal", skipme=True)
        await layer.group_send("readers", {"type": "cluster.sample"})
        await client.client_kill_filter(_type="normal", skipme=True)
        await layer.group_add("others", channel)
        assert await layer.receive(channel) == {"type": "cluster.sample"}
    finally:
        await client.aclose()


async def test_a_blocking_command_can_be_cancelled_at_each_step(redis_url: str) -> None:
    client = connect_async(redis_url, block_s=60)
    try:
        assert await steps_that_lose_it(lambda: client.bzpopmin("nothing", timeout=60)) == []
    finally:
        await client.aclose()


@pytest.mark.usefixtures("transactional_db")
@pytest.mark.parametrize(
    "message",
    [
        b"", b"\xff", b"x" * 100, *map(
            msgpack.packb,
            (
                None, 5, [], {}, {"type": 5}, {"type": "websocket.disconnect"}, {"type": "_x"},
                {"type": "cluster.event", "__asgi_channel__": {}},
                {"type": "cluster.event", "__asgi_channel__": [5]},
            ),
        ),
    ],
)  # fmt: skip
async def test_the_message_after_a_foreign_one_is_received(redis_url: str, message: bytes) -> None:
    """Which reaches no consumer, and counts."""
    layer: Any = get_channel_layer()
    channel = await layer.new_channel()
    key = layer.prefix + layer.non_local_name(channel)
    client = connect_async(redis_url)
    before = sum(row.count for row in skipped_entries(redis_client(), SITE))
    # Twelve random bytes come before the content.
    await client.zadd(key, {b"0" * 12 + message: time.time()})
    waiting = asyncio.create_task(layer.receive(channel))
    await layer.send(channel, {"type": "cluster.event", "event": 1})
    assert await asyncio.wait_for(waiting, 60) == {"type": "cluster.event", "event": 1}
    assert sum(row.count for row in skipped_entries(redis_client(), SITE)) == before + 1
    await client.aclose()
