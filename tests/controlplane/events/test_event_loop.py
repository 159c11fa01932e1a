"""One loop for all coroutines that synchronous code runs."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from controlplane.events import event_loop


async def loop_of() -> tuple[int, str]:
    """Return the loop that runs this, and its thread."""
    return id(asyncio.get_running_loop()), threading.current_thread().name


def test_all_threads_share_one_loop() -> None:
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: event_loop.run(loop_of()), range(16)))
    assert len(found) == 1
    assert found.pop()[1] == "event-loop"


def test_an_error_of_the_coroutine_is_raised() -> None:
    async def broken() -> None:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        event_loop.run(broken())
    assert event_loop.run(loop_of())[1] == "event-loop"


def test_a_forked_process_starts_its_own() -> None:
    """As Celery's workers are."""
    event_loop.run(loop_of())
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, event_loop.run(loop_of())[1].encode())
        os._exit(0)
    os.close(writer)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(reader, 100) == b"event-loop"
    os.close(reader)
