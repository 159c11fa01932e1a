"""The web process answers in threads that stay, and so do their connections to the database."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.db.backends.signals import connection_created

from controlplane.pooled_handler import PooledHandler

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def opened() -> Iterator[list[Any]]:
    """The connections that are opened during the test."""
    found: list[Any] = []

    def note(connection: Any, **_: Any) -> None:
        found.append(connection)

    connection_created.connect(note)
    yield found
    connection_created.disconnect(note)


async def ask(handler: PooledHandler, path: str) -> tuple[int, dict[bytes, bytes]]:
    """Ask with a token that is not known: the database is asked for it."""
    scope = {
        "type": "http", "method": "GET", "path": path, "query_string": b"", "http_version": "1.1",
        "headers": [(b"host", b"localhost"), (b"authorization", b"Bearer weir_x")],
    }  # fmt: skip
    asked: Any = ApplicationCommunicator(handler, scope)  # type: ignore[no-untyped-call]
    await asked.send_input({"type": "http.request", "body": b""})
    begin = await asked.receive_output(10)
    await asked.receive_output(10)
    return begin["status"], dict(begin["headers"])


async def test_connections_stay_open_from_one_request_to_the_next(opened: list[Any]) -> None:
    """One after the other, or more at once than there are threads."""
    handler = PooledHandler(2)
    for _ in range(4):
        assert (await ask(handler, "/api/v1/me"))[0] == 401
    assert len(opened) <= 2
    await asyncio.gather(*(ask(handler, "/api/v1/me") for _ in range(8)))
    assert len(opened) <= 2


async def test_requests_of_one_thread_are_told_apart() -> None:
    """Each has an id of its own, though the thread is the same."""
    handler = PooledHandler(1)
    answers = await asyncio.gather(*(ask(handler, "/healthz") for _ in range(5)))
    assert len({headers[b"X-Request-ID"] for _, headers in answers}) == 5
