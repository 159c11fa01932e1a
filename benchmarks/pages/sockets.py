"""Many sockets of one cluster: how old the oldest message is."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any, Final

from django.conf import settings
from websockets.asyncio.client import connect

# Between two connections, for all of them, and before messages count.
_APART_S: Final = 0.02
_CONNECT_S: Final = 180.0
_WARM_S: Final = 3.0


def oldest_message_s(url: str, cookies: Sequence[str], sockets: int, seconds: float) -> float:
    """Return the largest age (s) of a sample on its arrival at one of so many sockets.

    `cookies`: of the sessions that share the sockets. Raises `RuntimeError` if a socket received
    no sample.
    """
    ages = asyncio.run(_listen(url, cookies, sockets, seconds))
    if not all(ages):
        raise RuntimeError(f"{sum(not own for own in ages)} of {sockets} sockets got no sample")
    return max(max(own) for own in ages)


async def _listen(
    url: str, cookies: Sequence[str], sockets: int, seconds: float
) -> list[list[float]]:
    """Connect the sockets one after the other; messages count once all are connected."""
    period = _Period(sockets)
    listeners = [
        asyncio.create_task(_ages(url, cookies[i % len(cookies)], _APART_S * i, period))
        for i in range(sockets)
    ]
    await asyncio.wait_for(period.connected.wait(), _CONNECT_S)
    period.start = time.time() + _WARM_S
    await asyncio.sleep(_WARM_S + seconds)
    period.is_over = True
    return list(await asyncio.gather(*listeners))


class _Period:
    """When messages count: after `start`, until it is over."""

    def __init__(self, sockets: int) -> None:
        self.missing = sockets
        self.connected = asyncio.Event()
        self.start = float("inf")
        self.is_over = False

    def connect(self) -> None:
        """Note that a further socket is connected."""
        self.missing -= 1
        if not self.missing:
            self.connected.set()


async def _ages(url: str, cookie: str, wait_s: float, period: _Period) -> list[float]:
    """Return the ages (s) of the samples that arrive on a socket in the period."""
    await asyncio.sleep(wait_s)
    headers = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={cookie}"}
    address = f"{url.replace('http', 'ws', 1)}/ws/clusters/sf/"
    ages: list[float] = []
    options: Any = {"origin": url, "additional_headers": headers, "open_timeout": _CONNECT_S}
    async with connect(address, **options) as socket:
        period.connect()
        while not period.is_over:
            try:
                text = await asyncio.wait_for(socket.recv(), 1.0)
            except TimeoutError:
                continue
            now, message = time.time(), json.loads(text)
            if message["type"] == "sample" and now >= period.start:
                ages.append(now - message["sample"]["emitted_ms"] / 1000)
    return ages
