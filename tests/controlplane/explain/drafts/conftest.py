"""A cluster whose streams have records in the log, and a worker in the process of the test."""

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.support import cluster as made
from tests.support.previews import answer_at_once
from tests.support.records import append_at

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
    """Requests are computed at once; their bodies are returned."""
    return answer_at_once(monkeypatch)
