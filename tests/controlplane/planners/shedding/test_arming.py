"""Arming and disarming a ladder: roles, reasons, audit, the routing table."""

import pytest

from controlplane.access.roles import Actor
from controlplane.catalog.query_settings import set_shedding
from controlplane.errors import Conflict
from controlplane.models import ArmedLadder, AuditEntry, Cluster, Query
from controlplane.planners.shedding import arming
from controlplane.planners.shedding.arming import ComputedLadder, arm, compute, disarm
from controlplane.planners.shedding.inputs import SheddingInput
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.rows import current_table
from controlplane.wire.routing.cluster_actions import SetCapacity

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_operator_arms_and_disarms(operator: Actor, busy: Cluster) -> None:
    row = arm(operator, busy, "the sale begins")
    assert (row.set_by, row.reason) == (operator.name, "the sale begins")
    assert current_table(busy.pk).ladder == row.value == compute(busy).ladder
    assert row.snapshot is not None
    assert row.snapshot.value().input(SheddingInput) is not None
    entry = AuditEntry.objects.get(action="ladder.arm")
    assert (entry.reason, entry.after["limit"]) == ("the sale begins", 1.0)
    assert len(entry.after["rungs"]) == len(row.value.rungs)
    # The same ladder is of the new snapshot from now on, without another routing version.
    again = arm(operator, busy, "still needed")
    assert (again.since_version, again.reason) == (row.since_version, "still needed")
    set_shedding(operator, Query.objects.get(name="low"), weight=50.0)
    changed = arm(operator, busy, "weights changed")
    assert changed.since_version == row.since_version + 1
    assert changed.value != row.value
    disarm(operator, busy, "the sale is over")
    assert current_table(busy.pk).ladder is None
    assert not ArmedLadder.objects.exists()
    assert AuditEntry.objects.get(action="ladder.disarm").before["edges"] > 0
    assert AuditEntry.objects.filter(action="ladder.arm").count() == 3


def test_what_cannot_be_armed_is_named(operator: Actor, sf: Cluster) -> None:
    with pytest.raises(Conflict) as conflict:
        arm(operator, sf, "needed")
    assert conflict.value.code == "no_query"
    with pytest.raises(Conflict) as conflict:
        disarm(operator, sf, "not needed")
    assert conflict.value.code == "not_armed"


def test_a_change_while_it_is_computed_is_noticed(
    operator: Actor, busy: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer is first once: the ladder is then computed for the later version."""
    computed: list[int] = []

    def compute_late(cluster: Cluster) -> ComputedLadder:
        result = compute(cluster)
        if not computed:
            apply(
                Cluster.objects.get(pk=cluster.pk), [SetCapacity(3, 700.0, emulated=False)],
                TopologyChange("another change"),
            )  # fmt: skip
        computed.append(result.snapshot.version)
        return result

    monkeypatch.setattr(arming, "compute", compute_late)
    row = arm(operator, busy, "needed")
    assert (len(computed), row.since_version) == (2, computed[0] + 2)
    assert AuditEntry.objects.filter(action="ladder.arm").count() == 1
