"""A real worker carries out what the Lab is asked for."""

import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.db import connection
from django.utils import timezone

from controlplane import lab
from controlplane.child_processes.trees import is_alive
from controlplane.lab import execution
from controlplane.models import LabRun
from controlplane.processes.runtime.children import Place, service_children
from tests.support.cluster import actor
from tests.workers.tasks.test_worker import until
from workers.celery import app

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("lab")]
TINY = {"queries": 2000, "servers": 10, "seeds": 1}


def is_in(state: str, run: LabRun) -> bool:
    return LabRun.objects.filter(pk=run.pk, state=state).exists()


def test_a_requested_run_is_carried_out_by_the_worker(celery_worker: None) -> None:
    """Through the broker, on the Lab's queue, as JSON."""
    run = lab.request(actor(), "placement", "fig4a", TINY, [2.0], ["least_cost", "on_rand"])
    until(lambda: is_in("done", run))
    run.refresh_from_db()
    assert len(run.table["rows"]) == 2


def test_a_migration_is_run_by_the_worker_too(celery_worker: None) -> None:
    """Looking ahead reports while it learns, before the first migration."""
    small = {"seeds": 1, "migrations": 5, "known": 40, "tasks": 16, "rounds": 2, "paths": 2}
    run = lab.request(actor(), "migration", "fig9", small, [1.2], ["single_step", "mtm"])
    until(lambda: is_in("done", run))
    run.refresh_from_db()
    assert {row[1] for row in run.table["rows"]} == {"single_step", "mtm"}


def test_the_beat_wakes_the_worker_for_a_run_whose_message_was_lost(
    redis_url: str, request: pytest.FixtureRequest
) -> None:
    """Asked for while the broker was away, or given back by a worker that ended."""
    run = lab.request(actor(), "placement", "fig4a", TINY, [2.0], ["on_rand"])
    with app.connection_for_write() as broker:
        channel: Any = broker.default_channel
        assert channel.queue_purge("lab") == 1
    request.getfixturevalue("celery_worker")
    lab.requeue_lost(timezone.now() + execution.MESSAGE_LOST_AFTER)
    until(lambda: is_in("done", run))


def test_a_worker_that_is_asked_to_end_gives_its_run_back(
    redis_url: str, transactional_db: None, tmp_path: Path
) -> None:
    """The process as Weir starts it, ended as Weir ends it, well within its patience."""
    long = lab.request(actor(), "placement", "fig4a", {"seeds": 100, "queries": 20_000})
    place = Place(tmp_path, "127.0.0.1", 1, redis_url, tmp_path)
    spec = next(one for one in service_children(place, 3) if one.name == "lab")
    database = connection.settings_dict["NAME"]
    environment = place.environment() | {"DATABASE_URL": f"sqlite:///{database}"}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(spec.command, env=environment, stdout=log, stderr=log)
    try:
        until(lambda: LabRun.objects.filter(pk=long.pk, progress__gt=0).exists(), seconds=180)
        assert psutil.Process(process.pid).nice() > psutil.Process().nice()
        process.terminate()
        assert process.wait(timeout=spec.patience_s) == 0, (tmp_path / "log").read_text()
    finally:
        process.kill()
    assert is_in("queued", long)


def test_a_worker_survives_what_its_children_do(
    redis_url: str, transactional_db: None, tmp_path: Path
) -> None:
    """One worker: a run is cancelled within a second, one runs out of memory, one loses it."""
    by = actor()
    place = Place(tmp_path, "127.0.0.1", 1, redis_url, tmp_path)
    spec = next(item for item in service_children(place, 3) if item.name == "lab")
    database = connection.settings_dict["NAME"]
    limits = {"DATABASE_URL": f"sqlite:///{database}", "WEIR_LAB_MEMORY_MB": "200"}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            spec.command, env=place.environment() | limits, stdout=log, stderr=log
        )
    try:
        # Compiled code works for minutes between two reports of progress.
        long = lab.request(by, "placement", "fig4a", {"seeds": 1, "queries": 2_000_000}, [2.0])
        until(lambda: is_in("running", long))
        worker = psutil.Process(process.pid)
        until(lambda: bool(worker.children()))
        (child,) = worker.children()
        lab.cancel(by, long)
        cancelled = time.monotonic()
        until(lambda: not is_alive(child))
        # Two million queries take minutes.
        assert time.monotonic() - cancelled < 30
        large = lab.request(
            by, "placement", "fig3a", {"seeds": 1, "queries": 1_000_000, "sources_per_query": 8},
            [2.0], ["mms"],
        )  # fmt: skip
        until(lambda: is_in("failed", large))
        large.refresh_from_db()
        assert (large.error_code, large.attempts) == ("out_of_memory", 1)
        again = lab.request(by, "placement", "fig4a", {"seeds": 1, "queries": 1_900_000}, [2.0])
        until(lambda: bool(worker.children()))
        (child,) = worker.children()
        process.kill()
        until(lambda: not is_alive(child))
    finally:
        process.kill()
        process.wait()
    lab.requeue_lost(timezone.now() + execution.LOST_AFTER * 2)
    assert is_in("queued", again)
