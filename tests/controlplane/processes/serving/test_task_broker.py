"""Messages in a queue of tasks that are not tasks: the worker takes the next one."""

import json
from collections.abc import Iterator
from typing import Any, Final
from uuid import uuid4

import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker
from django.conf import settings
from redis import Redis

from controlplane.wire.foreign.entries import SITE, EntryLocation, skipped_entries

TAG: Final = {"delivery_tag": "t1", "delivery_info": {"exchange": "", "routing_key": "q"}}
ODD: Final[list[bytes]] = [
    b"", b"\xff", b"null", b"[]", b"7", b'"text"', b"[" * 100_000, b"9" * 5000, b"{}",
    b'{"properties": null}', b'{"properties": {"delivery_tag": []}}',
    json.dumps({"properties": {"delivery_tag": "t0", "delivery_info": {}}}).encode(),
    json.dumps({"properties": TAG}).encode(),
    json.dumps({"properties": TAG, "headers": [], "body": "e30="}).encode(),
    json.dumps({"properties": TAG | {"body_encoding": "?"}, "body": 5, "headers": {}}).encode(),
    json.dumps({"properties": TAG, "headers": {"task": "test.note", "id": 5}, "body": "x",
                "content-type": "application/json", "content-encoding": "utf-8"}).encode(),
    json.dumps({"properties": TAG, "headers": {"task": ["x"], "eta": {}}, "body": "x",
                "content-type": "application/x-python-serialize"}).encode(),
]  # fmt: skip


@pytest.fixture
def app(redis_url: str) -> Iterator[Celery]:
    """An application on the transport of the site, with a task that notes its argument."""
    built = Celery("odd", broker=redis_url, set_as_current=False)
    built.conf.update(
        broker_transport=settings.CELERY_BROKER_TRANSPORT, task_default_queue="q",
        task_ignore_result=True, task_acks_late=True, worker_prefetch_multiplier=1,
        accept_content=["json"],
    )  # fmt: skip
    yield built
    built.close()


def test_a_worker_takes_the_task_after_any_messages(app: Celery, redis_url: str) -> None:
    noted = f"noted-{uuid4().hex}"

    @app.task(name="test.note")
    def note(value: Any) -> None:
        with Redis.from_url(redis_url) as client:
            client.rpush(noted, str(value))

    @app.task(name="celery.ping")
    def ping() -> str:
        return "pong"

    with Redis.from_url(redis_url) as client:
        # What a worker finds at its start.
        client.zadd("unacked_index", {"lost": 1, "odd": 1})
        client.hset("unacked", mapping={"lost": b"\xff", "odd": b'["x", 1, {}]'})
        with start_worker(app, perform_ping_check=False, shutdown_timeout=60):
            for number, message in enumerate(ODD):
                client.lpush("q", message)
                note.delay(number)
            values = [client.blpop([noted], timeout=60) for _ in ODD]
            assert [value and int(value[1]) for value in values] == list(range(len(ODD)))
        assert client.zcard("unacked_index") == 0
        skipped = {row.place: row.count for row in skipped_entries(client, SITE)}
        assert skipped[EntryLocation.TASKS] >= 10
