"""Computations wait in order, within limits, and end when they need too much."""

import sys
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.errors import Busy, TooExpensive
from controlplane.models import Cluster, Proposal
from controlplane.planning.load_model import LoadModel
from controlplane.processes.isolation.child import run_in_child
from controlplane.proposals import claims, comparisons, computation, decisions, requests
from controlplane.proposals.queue import computing_queue
from tests.support.cluster import actor
from tests.support.execution import prepared_scattered

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(name="scattered")
def fixture_scattered(operator: Actor, sf: Cluster) -> Cluster:
    """Queries that a plan moves."""
    return prepared_scattered(operator, sf)


def asked(by: Actor, cluster: Cluster, nu: float) -> Proposal:
    return requests.request(by, cluster, "mms", {"nu": nu})


def test_the_queue_has_order_and_estimated_start(operator: Actor, scattered: Cluster) -> None:
    """One is computed at a time, the others wait in the order of their requests."""
    first, second, third = (asked(operator, scattered, nu) for nu in (0.1, 0.2, 0.3))
    assert claims.claim_next() == first
    assert claims.claim_next() is None
    queue = computing_queue(scattered)
    assert [(entry.id, entry.position) for entry in queue] == [
        (first.pk, 0), (second.pk, 1), (third.pk, 2),
    ]  # fmt: skip
    starts = [entry.starts_in_s for entry in queue]
    assert starts == sorted(starts)
    assert starts[2] >= second.estimate["seconds"] > 0


def test_a_slot_is_free_again_when_its_computation_ends(
    operator: Actor, scattered: Cluster
) -> None:
    """Computed, cancelled or failed."""
    first, second, third = (asked(operator, scattered, nu) for nu in (0.1, 0.2, 0.3))
    computation.compute_next()
    first.refresh_from_db()
    assert (first.state, first.slot, first.attempts) == ("ready", None, 1)
    assert claims.claim_next() == second
    decisions.cancel(operator, second)
    assert claims.claim_next() == third


def test_a_child_imports_nothing_for_the_planner(
    operator: Actor, scattered: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker imports the optimizers once, not each of its children."""
    imported: set[str] = set()

    def watched(compute: Any, *rest: Any) -> Any:
        def watching(progress: Any) -> Any:
            before = set(sys.modules)
            return compute(progress), set(sys.modules) - before

        result, new = run_in_child(watching, *rest)
        imported.update(new)
        return result

    monkeypatch.setattr(computation, "run_in_child", watched)
    computation.compute(asked(operator, scattered, 0.1).pk)
    assert not {name for name in imported if name.startswith("scipy.")}


def test_equal_waiting_requests_are_one(operator: Actor, scattered: Cluster) -> None:
    """Of one user, and only while no worker has read the cluster for it."""
    first = asked(operator, scattered, 0.1)
    assert asked(operator, scattered, 0.1) == first
    assert asked(actor("operator", "other"), scattered, 0.1) != first
    assert claims.claim(first.pk) is not None
    assert asked(operator, scattered, 0.1) != first


def test_a_user_has_a_limit_where_a_comparison_counts_once(
    operator: Actor, scattered: Cluster, settings: Any
) -> None:
    """Another user is not affected; a request that has ended makes room."""
    settings.MAX_REQUESTS_PER_USER = 2
    comparisons.compare(operator, scattered, [("", "mms", {}), ("", "ic", {}), ("", "mqp", {})])
    single = asked(operator, scattered, 0.1)
    with pytest.raises(Busy) as refused:
        asked(operator, scattered, 0.2)
    assert refused.value.code == "too_many_requests"
    assert refused.value.data == {"count": 2, "limit": 2}
    assert refused.value.after_s > 0
    asked(actor("operator", "other"), scattered, 0.2)
    decisions.cancel(operator, single)
    asked(operator, scattered, 0.2)


def test_a_cluster_has_a_limit_of_computations(
    operator: Actor, scattered: Cluster, settings: Any
) -> None:
    """Each candidate of a comparison counts; nothing of a refused one remains."""
    settings.MAX_COMPUTATIONS_PER_CLUSTER = 2
    asked(operator, scattered, 0.1)
    with pytest.raises(Busy) as refused:
        comparisons.compare(operator, scattered, [("", "mms", {}), ("", "ic", {})])
    assert refused.value.code == "too_many_computations"
    assert Proposal.objects.count() == 1


def test_a_plan_beyond_the_limits_is_refused_with_what_to_reduce(
    operator: Actor, scattered: Cluster
) -> None:
    """The estimate, the limit and the parameter are data."""
    with pytest.raises(TooExpensive) as refused:
        requests.request(operator, scattered, "refined", {"seconds": 3600.0})
    data = refused.value.data
    assert data["estimate"]["seconds"] > data["limit"]["seconds"]
    assert data["reduce"] == ["seconds"]
    assert set(refused.value.fields) == {"seconds"}
    assert not Proposal.objects.exists()


def test_a_plan_that_needs_too_much_memory_fails_and_is_not_repeated(
    operator: Actor, scattered: Cluster, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker survives it."""
    proposal = asked(operator, scattered, 0.1)
    settings.PROPOSAL_MEMORY_MB = 100
    monkeypatch.setattr(LoadModel, "of", lambda _: np.ones(2**31))
    computation.compute_next()
    proposal.refresh_from_db()
    assert (proposal.state, proposal.error_code) == ("failed", "out_of_memory")
    assert claims.claim_next() is None


def test_the_proposal_of_a_lost_worker_is_computed_again_twice_at_most(
    operator: Actor, scattered: Cluster
) -> None:
    """It may well be what ends them."""
    proposal = asked(operator, scattered, 0.1)
    for attempt in range(1, claims.MAX_ATTEMPTS + 1):
        claimed = claims.claim_next()
        assert claimed is not None
        assert claimed.attempts == attempt
        computation.requeue_lost(timezone.now())
        assert claims.claim_next() is None
        silent = timezone.now() - claims.LOST_AFTER - timedelta(seconds=1)
        claims.owned(claimed).update(beat_at=silent)
        computation.requeue_lost(timezone.now())
    proposal.refresh_from_db()
    assert (proposal.state, proposal.error_code) == ("failed", "worker_lost")
