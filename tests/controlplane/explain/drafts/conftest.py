"""A cluster whose streams have records in the log, and a worker in the process of the test."""

from typing import Any

import pytest

from controlplane.access.roles import Actor
from controlplane.events.task_names import PREVIEW_QUERY
from controlplane.explain.drafts import preview as previews
from controlplane.models import Cluster
from controlplane.processes.isolation import limits
from tests.support import cluster as made
from tests.support.records import append_at
from workers.preview import service

FIRST_MS = 1_000_000_000_000


@pytest.fixture
def by(operator: Actor) -> Actor:
    """Return an operator."""
    return operator


@pytest.fixture
def cluster(sf: Cluster) -> Cluster:
    """Three records of s0 and one of s1, a minute apart; s2 has none."""
    for minute in range(3):
        append_at(sf, made.stream_id(sf, "s0"), FIRST_MS + 60_000 * minute, records=1)
    append_at(sf, made.stream_id(sf, "s1"), FIRST_MS, records=1)
    return sf


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Requests are computed at once, by the code of the task; their bodies are returned."""
    bodies: list[str] = []

    def send(name: str, body: str, **_: Any) -> None:
        assert name == PREVIEW_QUERY
        bodies.append(body)
        service.run(body)

    monkeypatch.setattr(previews, "send_on_commit", send)
    # How long a busy machine takes for a child is not a matter of these tests.
    monkeypatch.setattr(limits, "PREVIEW_S", 60.0)
    return bodies
