"""`python -m workers.relay`: relay telemetry until a signal."""

import asyncio
import os
import signal

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
django.setup()

from django.conf import settings  # noqa: E402 - needs the set-up above

from workers.relay.relay import Relay  # noqa: E402


async def main() -> None:
    """Run until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await Relay(settings.REDIS_URL).run(stop)


if __name__ == "__main__":
    asyncio.run(main())
