"""The worker of webhooks as Weir starts it: receivers that answer slowly hold up no other."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from django.db import connection

from controlplane.access.roles import Actor
from controlplane.events import outbox
from controlplane.integrations import webhooks
from controlplane.models import Delivery, Webhook
from controlplane.processes.runtime.children import (
    WEBHOOK_THREADS,
    ChildSpec,
    Place,
    service_children,
)
from tests.support.cluster import actor
from tests.support.destinations import RECEIVERS, list_destinations
from tests.support.receiver import Receiver, receiving
from tests.workers.tasks.test_worker import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("requests")]


def spec_and_environment(data: Path, redis_url: str) -> tuple[ChildSpec, dict[str, str]]:
    place = Place(data, "127.0.0.1", 1, redis_url, data)
    spec = next(one for one in service_children(place, 0) if one.name == "webhooks")
    url = f"sqlite:///{connection.settings_dict['NAME']}"
    more = {"DATABASE_URL": url, "WEIR_DESTINATIONS": RECEIVERS}
    return spec, place.environment() | more


@pytest.fixture
def worker(
    redis_url: str, transactional_db: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[psutil.Process]:
    """The process; it ends well within its patience when it is asked to."""
    list_destinations(monkeypatch, RECEIVERS)
    spec, environment = spec_and_environment(tmp_path, redis_url)
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(spec.command, env=environment, stdout=log, stderr=log)
    try:
        yield psutil.Process(process.pid)
        process.terminate()
        assert process.wait(timeout=spec.patience_s) == 0, (tmp_path / "log").read_text()
    finally:
        process.kill()
        process.wait()


def test_slow_receivers_hold_up_no_other(worker: psutil.Process) -> None:
    """All threads but one wait for an answer at the same time; the last one goes on."""
    by = actor("admin")
    with ExitStack() as stack:
        slow, quick = (stack.enter_context(receiving()) for _ in range(2))
        slow.open.clear()
        held = [hook_to(by, slow, f"slow {i}") for i in range(int(WEBHOOK_THREADS) - 1)]
        outbox.write(held, outbox.TEST, {})
        until(lambda: slow.came.qsize() == len(held), seconds=30)
        outbox.write([hook_to(by, quick, "quick")], outbox.TEST, {})
        quick.came.get(timeout=30)
        assert Delivery.objects.filter(webhook__in=held, tries=0).count() == len(held)
        slow.open.set()
        until(lambda: not Delivery.objects.exclude(state="delivered").exists())
    # What planners need is not loaded: the process stays small.
    loaded = {one.path for one in worker.memory_maps()}
    assert any("_sqlite3" in path for path in loaded)
    assert not any(f"/{name}/" in path for path in loaded for name in ("scipy", "numba"))


def hook_to(by: Actor, receiver: Receiver, name: str) -> Webhook:
    return webhooks.create(by, webhooks.WebhookSpec(name, receiver.url))
