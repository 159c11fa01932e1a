"""Ladders of quiet clusters: provisional until costs are measured, then replaced."""

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Conflict
from controlplane.models import ArmedLadder, Cluster, SeriesPeriod, Task
from controlplane.planners.shedding import arming, loop
from controlplane.planners.shedding.arming import arm
from controlplane.planners.shedding.inputs import CostSource
from controlplane.planners.shedding.loop import refine_provisional
from controlplane.planners.shedding.observation import read_input
from controlplane.planners.shedding.report import ladder_report
from controlplane.planners.shedding.staleness import StaleCode
from controlplane.policies.store import update_policy
from controlplane.telemetry import time_series
from controlplane.watch import watch_cluster
from dashboard.planners.shedding.status import provisional_text
from tests.support.cluster import actor

pytestmark = pytest.mark.django_db(transaction=True)

# Per delivered record; the fixed time of a batch is 40 times that of its records.
COST_S, FIXED_S = 0.00002, 0.1


def store(cluster: Cluster, now: datetime, records: Any, changing: int = 4) -> None:
    """Store samples of quiet batches, one a second, with so many records on each node.

    `changing`: the first nodes; the others have equal batches.
    """
    SeriesPeriod.objects.filter(cluster=cluster, seconds=1).delete()
    rows = []
    for age, count in enumerate(records[::-1].tolist(), start=1):
        t, counts = now - timedelta(seconds=age), [count] * changing + [500.0] * (4 - changing)
        busy = [FIXED_S + COST_S * one for one in counts]
        values = {
            "t": round(t.timestamp() * 1000), "span_s": 1.0, "tasks": [3] * 4,
            "loads": counts, "busy": busy, "work_ms": 400 + 1_000 * busy[0],
        }  # fmt: skip
        rows.append(values)
    time_series.record(cluster, rows)


@pytest.fixture
def quiet(busy: Cluster, now: datetime) -> Cluster:
    """A cluster of constant rates whose nodes are busy for a tenth of their time."""
    store(busy, now, np.full(60, 500.0))
    return busy


def test_a_quiet_cluster_has_a_provisional_ladder(operator: Actor, quiet: Cluster) -> None:
    preview = ladder_report(quiet)
    assert (preview.missing_code, preview.provisional) == ("", True)
    assert {node.source for node in preview.nodes} == {CostSource.ASSUMED}
    row = arm(operator, quiet, "before the sale")
    # 0.11 s of a node and 0.4 s besides: what a batch takes now.
    assert row.value.empty_batch_ms == 510
    report = ladder_report(quiet)
    assert (report.armed, report.provisional, report.drift.reasons) == (True, True, ())  # type: ignore[union-attr]
    assert not refine_provisional(quiet)


def test_a_provisional_ladder_is_replaced_when_costs_are_measured(
    operator: Actor, quiet: Cluster, now: datetime
) -> None:
    arm(operator, quiet, "before the sale")
    store(quiet, now, np.linspace(100.0, 1_000.0, 60))
    (node, *_) = read_input(quiet).nodes
    assert node.source is CostSource.SLOPE
    assert (node.seconds, node.fixed_s) == pytest.approx((COST_S, FIXED_S))
    drift = ladder_report(quiet).drift
    assert drift is not None
    assert drift.reasons[0].code == StaleCode.PROVISIONAL
    Cluster.objects.filter(pk=quiet.pk).update(last_sample_at=now)
    quiet.refresh_from_db()
    boss = actor("admin", "boss")
    update_policy(boss, quiet, {"watch": "off"})
    watch_cluster(quiet, now)
    assert ArmedLadder.objects.get(cluster=quiet).value.is_provisional
    update_policy(boss, quiet, {"watch": "recommend"})
    watch_cluster(quiet, now)
    row = ArmedLadder.objects.get(cluster=quiet)
    assert (row.value.is_provisional, row.reason) == (False, "before the sale")
    report = ladder_report(quiet)
    assert not report.provisional
    assert report.drift is not None
    assert report.drift.reasons == ()
    assert {node.source for node in report.nodes} == {CostSource.SLOPE}
    # Of four seconds, half a second is fixed.
    assert report.nodes[0].usable == pytest.approx(0.875)
    assert report.empty_batch_s == pytest.approx(0.5)
    assert report.longest_batch_s == 4.0
    assert report.is_bound_kept
    update_policy(boss, quiet, {"latency_ms": 2_000})
    assert arm(operator, quiet, "shorter").value.drain_ms == 1_600
    assert not ladder_report(quiet).is_bound_kept
    assert not refine_provisional(quiet)


@pytest.mark.parametrize(("batches", "changing", "measured"), [(60, 1, 1), (60, 2, 3), (15, 4, 0)])
def test_a_cost_of_one_node_or_of_few_batches_is_assumed(
    operator: Actor, quiet: Cluster, now: datetime, batches: int, changing: int, measured: int
) -> None:
    """The other nodes get no copy of what may be a slow node; two measured ones give it."""
    for index, name in enumerate(("low", "high", "both")):
        own = Task.objects.filter(query__cluster=quiet, query__name=name)
        own.update(node=quiet.nodes.get(index=index))
    arm(operator, quiet, "before the sale")
    store(quiet, now, np.linspace(100.0, 1_000.0, batches), changing)
    assert refine_provisional(quiet) is (measured == 3)
    assert ArmedLadder.objects.get(cluster=quiet).value.is_provisional is (measured < 3)
    arming.disarm(operator, quiet, "look")
    report = ladder_report(quiet)
    assumed = [node.name for node in report.nodes if node.source is CostSource.ASSUMED]
    assert (report.provisional, len(assumed)) == (measured < 3, 3 - measured)
    text = provisional_text(report)
    assert all(name in text for name in assumed)


def test_a_ladder_beyond_the_limits_is_refused_and_not_tried_again_at_once(
    operator: Actor, quiet: Cluster, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process survives it: a child computes ladders."""
    monkeypatch.setattr(loop, "_next_attempt", {})
    armed = arm(operator, quiet, "before the sale")
    store(quiet, now, np.linspace(100.0, 1_000.0, 60))
    with monkeypatch.context() as patch:
        patch.setattr(arming, "compute_ladder", lambda _: np.ones(2**33))
        with pytest.raises(Conflict) as refused:
            arm(operator, quiet, "now")
        assert refused.value.code == "out_of_memory"
        assert refused.value.data["limit"] > 0
        assert not refine_provisional(quiet)
    assert not refine_provisional(quiet)
    assert ArmedLadder.objects.get(cluster=quiet).set_at == armed.set_at
    loop._next_attempt.clear()
    assert refine_provisional(quiet)
