"""Disarming a ladder for a bounded time: it is armed again by itself."""

from datetime import datetime, timedelta

import pytest

from controlplane.access.roles import Actor
from controlplane.background.reconcile import reconcile_cluster
from controlplane.errors import Conflict, Invalid
from controlplane.models import ArmedLadder, AuditEntry, Cluster, DisarmedLadder
from controlplane.planners.shedding.activation import activate
from controlplane.planners.shedding.arming import MOST_MINUTES, arm, arm_due, disarm
from controlplane.planners.shedding.report import ladder_report
from controlplane.topology.rows import current_table

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_disarmed_ladder_is_armed_again(operator: Actor, busy: Cluster, now: datetime) -> None:
    armed = arm(operator, busy, "needed")
    activate(operator, busy, 1, 15, "a test")
    row = disarm(operator, busy, "a load test", 60)
    assert row is not None
    assert row.arm_at - now >= timedelta(minutes=60)
    assert current_table(busy.pk).ladder is None
    report = ladder_report(busy)
    assert (report.armed, report.arm_at, report.disarmed_by) == (False, row.arm_at, operator.name)
    reconcile_cluster(busy, row.arm_at - timedelta(seconds=1))
    assert not ArmedLadder.objects.exists()
    reconcile_cluster(busy, row.arm_at)
    again = ArmedLadder.objects.get(cluster=busy)
    # The same ladder with its snapshot, without the activation.
    assert (again.value, again.snapshot_id) == (armed.value, armed.snapshot_id)
    assert (again.set_by, again.reason) == ("", "a load test")
    assert current_table(busy.pk).ladder == armed.value
    assert not DisarmedLadder.objects.exists()
    assert not arm_due(busy, row.arm_at + timedelta(days=1))
    assert AuditEntry.objects.get(action="ladder.disarm").after == {"minutes": 60}


def test_without_a_time_it_stays_disarmed(operator: Actor, busy: Cluster, now: datetime) -> None:
    arm(operator, busy, "needed")
    assert disarm(operator, busy, "over") is None
    assert not arm_due(busy, now + timedelta(days=365))
    assert ladder_report(busy).arm_at is None


def test_the_time_changes_or_never_comes(operator: Actor, busy: Cluster, now: datetime) -> None:
    armed = arm(operator, busy, "needed")
    disarm(operator, busy, "a load test", 60)
    version = Cluster.objects.get(pk=busy.pk).routing_version
    later = disarm(operator, busy, "a long load test", 600)
    assert later is not None
    assert (later.value, later.reason) == (armed.value, "a long load test")
    assert not arm_due(busy, now + timedelta(minutes=61))
    assert disarm(operator, busy, "never") is None
    assert not DisarmedLadder.objects.exists()
    assert Cluster.objects.get(pk=busy.pk).routing_version == version
    with pytest.raises(Conflict) as conflict:
        disarm(operator, busy, "never")
    assert conflict.value.code == "not_armed"


def test_arming_before_then_is_the_end_of_it(operator: Actor, busy: Cluster, now: datetime) -> None:
    arm(operator, busy, "needed")
    disarm(operator, busy, "a load test", 60)
    assert arm(operator, busy, "it is over").set_by == operator.name
    assert not arm_due(busy, now + timedelta(hours=2))
    assert ArmedLadder.objects.get(cluster=busy).reason == "it is over"


@pytest.mark.parametrize(
    ("reason", "minutes", "fields"),
    [("why", -1, ["minutes"]), (" ", MOST_MINUTES + 1, ["minutes", "reason"])],
)
def test_bounds(
    operator: Actor, busy: Cluster, reason: str, minutes: int, fields: list[str]
) -> None:
    arm(operator, busy, "needed")
    with pytest.raises(Invalid) as invalid:
        disarm(operator, busy, reason, minutes)
    assert list(invalid.value.fields) == fields
    assert ArmedLadder.objects.exists()
