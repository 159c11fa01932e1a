"""Celery's processes send heartbeats, and tasks carry the time at which they were sent."""

import time

import pytest
from celery.schedules import schedule
from django.db import connection

from controlplane.connections import redis_client
from controlplane.events.task_names import (
    PRUNE,
    QUEUES,
    RECONCILE_EXECUTIONS,
    RECONCILE_ROUTING,
    SEAL_AUDIT,
    queue_key,
)
from controlplane.health.liveness.readings import read_site
from controlplane.models import Cluster
from controlplane.processes.runtime.beats import BEATS, last_beat_ms
from controlplane.processes.runtime.leases import Leases
from controlplane.processes.runtime.process_kinds import PERIOD_S, PROCESSES
from tests.controlplane.processes.runtime.waiting import wait_for
from workers import celery_beats
from workers.celery import app
from workers.celery_beats import BeatingScheduler

SERVED = [kind.name for kind in PROCESSES if kind.queue in QUEUES and kind.queue]


@pytest.mark.django_db(transaction=True)
def test_a_worker_sends_heartbeats_of_the_kinds_whose_queues_it_serves(
    redis_url: str, request: pytest.FixtureRequest
) -> None:
    redis_client().delete(BEATS)
    request.getfixturevalue("celery_worker")
    wait_for(lambda: all(last_beat_ms(redis_client(), name) for name in SERVED))


@pytest.mark.django_db(transaction=True)
def test_the_beat_sends_a_heartbeat_and_nothing_to_a_full_queue(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """Without a worker, periodic tasks would fill Redis."""
    monkeypatch.setattr(celery_beats, "MOST_WAITING", 1)
    scheduler = BeatingScheduler(app=app, schedule_filename=f"{tmp_path}/schedule", lazy=True)
    client = redis_client()
    every = schedule(5.0)
    entries = {name: scheduler.Entry(name=name, task=name, schedule=every, app=app)
               for name in (RECONCILE_ROUTING, PRUNE)}  # fmt: skip
    assert scheduler.apply_async(entries[RECONCILE_ROUTING], advance=False) is not None
    assert scheduler.apply_async(entries[PRUNE], advance=False) is None
    assert client.llen(queue_key("weir")) == 1
    (queue,) = [row for row in read_site(fresh=True).queues if row.name == "weir"]
    assert queue.oldest_s is not None
    assert queue.oldest_s < 60
    scheduler.setup_schedule()
    assert scheduler.tick() <= PERIOD_S
    assert last_beat_ms(client, "beat") is not None
    scheduler.close()


@pytest.mark.django_db(transaction=True)
def test_tasks_without_work_are_sent_once_in_a_while(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """A deleted cluster, for example, leaves some."""
    redis_client().delete(queue_key("weir"))
    scheduler = BeatingScheduler(app=app, schedule_filename=f"{tmp_path}/schedule", lazy=True)
    names = (RECONCILE_ROUTING, RECONCILE_EXECUTIONS, SEAL_AUDIT, PRUNE)
    every = schedule(5.0)
    entries = [scheduler.Entry(name=name, task=name, schedule=every, app=app) for name in names]

    def sent() -> list[bool]:
        return [scheduler.apply_async(row, advance=False) is not None for row in entries]

    assert [sent(), sent()] == [[True] * 4, [False, False, False, True]]
    Cluster.objects.create(slug="ny", name="New York", slots=1)
    assert sent() == [True, False, False, True]
    monkeypatch.setattr(celery_beats, "QUIET_S", 0.0)
    assert sent() == [True] * 4


@pytest.mark.django_db(transaction=True)
def test_the_beat_sleeps_until_a_task_is_due(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """Celery's own pause ends before: the beat would look without a pause until it is due."""
    every = {PRUNE: {"task": PRUNE, "schedule": 0.3}}
    monkeypatch.setitem(app.conf, "beat_schedule", every)
    scheduler = BeatingScheduler(app=app, schedule_filename=f"{tmp_path}/schedule")
    scheduler.tick()
    for _ in range(5):
        while not (pause := scheduler.tick()):
            pass
        time.sleep(pause)
        assert scheduler.tick() == 0.0
    scheduler.close()


@pytest.mark.django_db(transaction=True)
def test_tasks_share_a_connection_to_the_database_until_it_is_old(
    redis_url: str, request: pytest.FixtureRequest
) -> None:
    """A new one reads the schema again."""
    seen = []

    @app.task(name="weir.connection")
    def note_connection(*, is_last: bool) -> None:
        connection.ensure_connection()
        seen.append(connection.connection)
        connection.close_at = time.monotonic() if is_last else None

    request.addfinalizer(lambda: app.tasks.unregister("weir.connection"))
    request.getfixturevalue("celery_worker")
    for is_last in (False, True, False):
        note_connection.delay(is_last=is_last)
    wait_for(lambda: len(seen) == 3)
    assert seen[0] is seen[1] is not seen[2]


@pytest.mark.django_db(transaction=True)
def test_one_of_several_schedulers_sends_tasks(redis_url: str, tmp_path: object) -> None:
    """The next one continues when it ends; both are alive meanwhile."""
    client = redis_client()
    client.delete(queue_key("weir"), BEATS)
    other = Leases(redis_url, "beat", "another-host", term_s=60.0, alone_s=60.0)
    assert other.step(["beat"])
    scheduler = BeatingScheduler(app=app, schedule_filename=f"{tmp_path}/schedule")
    scheduler.tick()
    assert client.llen(queue_key("weir")) == 0
    assert last_beat_ms(client, "beat") is not None
    other.leave()
    scheduler._beat_at = float("-inf")
    wait_for(lambda: scheduler.tick() >= 0 and client.llen(queue_key("weir")) > 0)
    scheduler.close()
    assert other.step(["beat"])
    other.leave()
