"""The process of sinks is killed at seeded moments while it writes files and tables of files."""

import os
import random
import signal
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Sink
from controlplane.sinks import service
from controlplane.sinks.service import SinkSpec
from controlplane.sinks.status import statuses_of
from tests.support.cluster import actor, small_cluster
from tests.support.destinations import list_destinations
from tests.support.lake import FILES, MINUTES_OF_DAY, Place
from tests.support.nightly import NIGHTLY
from tests.support.sink_process import environment_of, sinks_running, until
from tests.support.sinks import Meters

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
def operator(db: None, redis_url: str) -> Actor:
    return actor("operator")


@pytest.mark.nightly("losses", by_day=True)
@pytest.mark.parametrize("seed", range(6 if NIGHTLY else 1))
def test_files_and_tables_have_each_result_once(
    operator: Actor, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """With kills in batches and in compactions, corrections, a pause, and a replay of one sink."""
    list_destinations(monkeypatch, tmp_path.as_uri())
    meters = Meters.submitted(operator, small_cluster(operator), seed=seed)
    admin, draw = actor("admin"), random.Random(seed)
    places = {kind: open_place(tmp_path / kind) for kind, open_place in FILES.items()}
    for kind, place in places.items():
        spec = SinkSpec(kind, kind, place.settings, mode="every_change", start="oldest")
        service.add(admin, meters.query, spec)
    environment = environment_of(redis_url, tmp_path, tmp_path.as_uri())
    for _ in range(5 if NIGHTLY else 1):
        meters.batch += MINUTES_OF_DAY // 2
        with sinks_running(environment) as process:
            killed = draw.choice([*FILES])
            before = written(killed)
            # Changes come in all the time.
            for _ in range(draw.randint(1, 4)):
                meters.next(20)
            meters.correct()
            until(partial(has_written, killed, before))
            time.sleep(draw.uniform(0, 0.3))
            os.kill(process.pid, signal.SIGKILL)
    paused = Sink.objects.get(name=draw.choice([*FILES]))
    service.set_paused(admin, paused, paused=True)
    meters.batch += MINUTES_OF_DAY
    meters.next(20)
    meters.correct()
    service.set_paused(admin, paused, paused=False)
    replayed = draw.choice([*FILES])
    service.replay(admin, Sink.objects.get(name=replayed), "oldest")
    meters.end()
    with sinks_running(environment):
        until(is_done)
    for kind, place in places.items():
        check(place, meters, is_replayed=kind == replayed)


def check(place: Place, meters: Meters, *, is_replayed: bool) -> None:
    """Check contents, that no row is there twice, and that files were joined."""
    assert place.newest() == meters.expected(), place.kind
    versions = Counter((row["seq"], row["is_final"]) for row in place.rows())
    assert max(versions.values()) <= (2 if is_replayed else 1), place.kind
    assert place.files("1970-01-01") == 1, place.kind


def written(kind: str) -> int:
    return Sink.objects.get(name=kind).written


def has_written(kind: str, before: int) -> bool:
    return written(kind) > before


def is_done() -> bool:
    """Return whether all sinks have written what is final."""
    sinks = [*Sink.objects.select_related("query__cluster")]
    waiting: list[Any] = [status.waiting for status in statuses_of(sinks)]
    return not any(waiting) and not any(sink.error for sink in sinks)
