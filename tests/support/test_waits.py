"""The law of transactions fires: at each door, and only inside the code's own transactions."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import transaction
from redis import Redis

from controlplane.topology.versions import retry_when_moved
from tests.support import waits

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def recorded() -> Iterator[list[str]]:
    """What the law found in a test that breaks it on purpose."""
    yield waits.waits
    waits.waits.clear()


async def nothing() -> None:
    """Do nothing in an event loop."""


def listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()


DOORS: dict[str, Callable[[], object]] = {
    "sleep": lambda: time.sleep(0),
    "open": lambda: Path(__file__).read_text(),
    "Popen": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
    "connect": listen,
    "AsyncToSync": async_to_sync(nothing),
}


def in_own_transaction(work: Callable[[], object]) -> None:
    """Run work in a transaction of a module that is not a test."""
    code: dict[str, object] = {"transaction": transaction, "work": work, "__name__": "product"}
    exec("with transaction.atomic():\n    work()", code)


@pytest.mark.parametrize("door", DOORS)
def test_a_wait_in_a_transaction_is_found(door: str, recorded: list[str]) -> None:
    in_own_transaction(DOORS[door])
    assert any(door in found.partition("\n")[0] for found in recorded), recorded


def test_redis_and_tasks_in_a_transaction_are_found(
    redis_client: Redis, redis_url: str, recorded: list[str]
) -> None:
    in_own_transaction(redis_client.ping)
    assert any("socket" in found for found in recorded)
    recorded.clear()
    from workers.celery import app  # noqa: PLC0415

    in_own_transaction(lambda: app.send_task("weir.nothing", queue="lab"))
    assert any("send_task" in found for found in recorded)


def test_a_decorated_function_is_a_transaction_of_its_module(recorded: list[str]) -> None:
    work: dict[str, object] = {"time": time, "__name__": "product"}
    exec("def work():\n    time.sleep(0)", work)
    retry_when_moved(work["work"])()  # type: ignore[arg-type]
    assert any("sleep" in found for found in recorded)


def test_work_after_the_commit_and_transactions_of_tests_may_wait() -> None:
    """The fixture of every test fails if not."""
    with transaction.atomic():
        time.sleep(0)
    in_own_transaction(lambda: transaction.on_commit(lambda: time.sleep(0)))
    in_own_transaction(User.objects.count)
    time.sleep(0)
