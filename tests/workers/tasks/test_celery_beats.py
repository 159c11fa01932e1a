"""Celery's processes send heartbeats, and tasks carry the time at which they were sent."""

import pytest
from celery.schedules import schedule

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
