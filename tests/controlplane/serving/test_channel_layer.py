"""A consumer that ends stops to receive, whenever it is cancelled."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from channels.layers import get_channel_layer

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
        await layer.group_send("readers", {"type": "sample"})
        await client.client_kill_filter(_type="normal", skipme=True)
        await layer.group_add("others", channel)
        assert await layer.receive(channel) == {"type": "sample"}
    finally:
        await client.aclose()


async def test_a_blocking_command_can_be_cancelled_at_each_step(redis_url: str) -> None:
    client = connect_async(redis_url, block_s=60)
    try:
        assert await steps_that_lose_it(lambda: client.bzpopmin("nothing", timeout=60)) == []
    finally:
        await client.aclose()
