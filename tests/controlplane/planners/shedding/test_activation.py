"""Activation of a rung for a bounded time: roles, bounds, the routing table, its end."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.background.reconcile import reconcile_cluster
from controlplane.errors import Conflict, Invalid
from controlplane.models import ArmedLadder, AuditEntry, Cluster, RoutingVersion
from controlplane.planners.shedding.activation import activate, end_expired, release
from controlplane.planners.shedding.arming import arm
from controlplane.planners.shedding.report import ladder_report
from controlplane.topology.rows import current_table
from tests.support.cluster import replayed_table

pytestmark = pytest.mark.django_db(transaction=True)


def least(cluster: Cluster) -> float:
    ladder = current_table(cluster.pk).ladder
    assert ladder is not None
    assert replayed_table(cluster).ladder == ladder
    return ladder.least


def test_a_rung_is_active_until_its_time_is_over(operator: Actor, busy: Cluster) -> None:
    armed = arm(operator, busy, "needed")
    row = activate(operator, busy, 1, 15, "a test")
    assert least(busy) == 1.0
    # It is still the ladder that was armed.
    assert (row.set_at, row.reason, row.snapshot_id) == (
        armed.set_at, "needed", armed.snapshot_id,
    )  # fmt: skip
    report = ladder_report(busy)
    assert (report.active_rung, report.active_by, report.active_reason) == (
        1, operator.name, "a test",
    )  # fmt: skip
    assert report.drift is not None
    assert report.drift.reasons == ()
    assert AuditEntry.objects.get(action="ladder.activate").after == {"rung": 1, "minutes": 15}
    now = timezone.now()
    assert not end_expired(busy, now + timedelta(minutes=14))
    busy.refresh_from_db()
    reconcile_cluster(busy, now + timedelta(minutes=16))
    assert least(busy) == 0.0
    assert ladder_report(busy).active_until is None
    assert "is over" in RoutingVersion.objects.filter(cluster=busy).latest("version").reason
    assert ArmedLadder.objects.get(cluster=busy).reason == "needed"


def test_it_is_released_earlier(operator: Actor, busy: Cluster) -> None:
    arm(operator, busy, "needed")
    activate(operator, busy, 1, 15, "a test")
    release(operator, busy, "enough")
    assert least(busy) == 0.0
    assert AuditEntry.objects.get(action="ladder.release").before == {"rung": 1}
    with pytest.raises(Conflict) as conflict:
        release(operator, busy)
    assert conflict.value.code == "not_active"


def test_arming_again_ends_it(operator: Actor, busy: Cluster) -> None:
    arm(operator, busy, "needed")
    activate(operator, busy, 1, 15, "a test")
    assert arm(operator, busy, "again").reason == "again"
    assert least(busy) == 0.0


@pytest.mark.parametrize(
    ("rung", "minutes", "reason", "fields"),
    [
        (0, 15, "a test", ["rung"]),
        (99, 0, "", ["rung", "minutes", "reason"]),
        (1, 24 * 60 + 1, "a test", ["minutes"]),
    ],
)
def test_bounds(
    operator: Actor, busy: Cluster, rung: int, minutes: int, reason: str, fields: list[str]
) -> None:
    arm(operator, busy, "needed")
    with pytest.raises(Invalid) as invalid:
        activate(operator, busy, rung, minutes, reason)
    assert list(invalid.value.fields) == fields
    assert least(busy) == 0.0


def test_only_an_armed_ladder_is_activated(operator: Actor, busy: Cluster) -> None:
    with pytest.raises(Conflict) as conflict:
        activate(operator, busy, 1, 15, "a test")
    assert conflict.value.code == "not_armed"
